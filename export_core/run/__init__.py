"""The files of a run: plan, journal, results, summary; and runs that are continued, merged or compared.

A name is imported from its module when it is first used: `jaxexport --help` loads this room, and must not load numpy.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.run.errors import IncompleteResults, RunError
    from export_core.run.results import read_run
    from export_core.run.run import Run

__all__ = ["IncompleteResults", "Run", "RunError", "read_run"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from export_core.run import errors, results

    # `results` has `Run` too.
    return next(getattr(module, name) for module in (results, errors) if hasattr(module, name))
