"""The runs of a matrix and their files (plan, results, summary); runs that are continued, merged or judged again.

A name is imported from its module when it is first used: `jaxexport --help` imports this package, and must not import
numpy.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.run.errors import IncompleteResults, ResultsNotWritten, RunError
    from export_core.run.results import read_run
    from export_core.run.run import Run

__all__ = ["IncompleteResults", "ResultsNotWritten", "Run", "RunError", "read_run"]

if not TYPE_CHECKING:  # else every misspelled name would have a type

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from export_core.run import errors, results

        # `results` imports `Run`, and so has that name too.
        return next(getattr(module, name) for module in (results, errors) if hasattr(module, name))
