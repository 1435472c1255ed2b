"""The core of pytest-jaxexport, with no pytest in it: artifacts, goldens, readers, the matrix and its judgement."""

from __future__ import annotations

from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.artifact.errors import ArtifactError
    from export_core.base.errors import ExportCompatError
    from export_core.goldens.arrays import GoldenError
    from export_core.policy.load_check import LoadCheck, PlatformError, check
    from export_core.policy.source import PolicyError
    from export_core.releases.errors import ReleaseError
    from export_core.scripting import ExportError, KeywordError, WrittenGolden, export_artifact, write_golden

__all__ = [
    "ArtifactError",
    "ExportCompatError",
    "ExportError",
    "GoldenError",
    "KeywordError",
    "LoadCheck",
    "PlatformError",
    "PolicyError",
    "ReleaseError",
    "WrittenGolden",
    "check",
    "export_artifact",
    "write_golden",
]

_MODULES = {
    "ArtifactError": "export_core.artifact.errors",
    "ExportCompatError": "export_core.base.errors",
    "GoldenError": "export_core.goldens.arrays",
    "PolicyError": "export_core.policy.source",
    "ReleaseError": "export_core.releases.errors",
    **dict.fromkeys(("LoadCheck", "PlatformError", "check"), "export_core.policy.load_check"),
    **dict.fromkeys(
        ("ExportError", "KeywordError", "WrittenGolden", "export_artifact", "write_golden"), "export_core.scripting"
    ),
}


def __dir__() -> list[str]:
    return [*globals(), *__all__]


if not TYPE_CHECKING:  # else every misspelled name would have a type

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # At its first use: who imports a room does not load another one with it. importlib takes 1 ms.
        import importlib

        return getattr(importlib.import_module(_MODULES[name]), name)
