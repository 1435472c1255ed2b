"""The core of pytest-jaxexport, with no pytest in it: artifacts, goldens, readers, the matrix and its judgement."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.policy.load_check import LoadCheck, PlatformError, check
    from export_core.scripting import ExportError, KeywordError, WrittenGolden, export_artifact, write_golden

__all__ = [
    "ExportError",
    "KeywordError",
    "LoadCheck",
    "PlatformError",
    "WrittenGolden",
    "check",
    "export_artifact",
    "write_golden",
]

_MODULES = {
    **dict.fromkeys(("LoadCheck", "PlatformError", "check"), "export_core.policy.load_check"),
    **dict.fromkeys(
        ("ExportError", "KeywordError", "WrittenGolden", "export_artifact", "write_golden"), "export_core.scripting"
    ),
}


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # At its first use: who imports a room does not load another one with it. importlib takes 1 ms.
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), name)
