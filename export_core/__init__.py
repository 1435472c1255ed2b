"""The core of pytest-jaxexport, with no pytest in it: artifacts, goldens, readers, the matrix and its judgement."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.inspection.load_check import LoadCheck, check

__all__ = ["LoadCheck", "check"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # At its first use: who imports a room does not load another one with it.
    from export_core.inspection import load_check

    return getattr(load_check, name)
