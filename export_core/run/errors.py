"""The errors of this folder."""

from pathlib import Path

from export_core.base.errors import ExportCompatError, Problem

AGAIN = "Run the matrix again."  # The advice of most of these errors.


class RunError(ExportCompatError):
    """An error for the folder of a run that cannot be read, written or continued as asked."""


class ResultsNotWritten(RunError):  # noqa: N818 - it names what happened
    """An error for results that could not be written to the disk: the run is incomplete, and can be resumed."""

    exit_code = 3


class IncompleteResults(RunError):  # noqa: N818 - it names what happened
    """An error for planned cells that have no result, or more than one, so that the run gives no answer."""

    exit_code = 3


def not_readable(path: Path, what: str, problem: str) -> RunError:
    """Return the error for a file of a run whose format this version of pytest-jaxexport cannot read."""
    advice = f"Another version of pytest-jaxexport may have written it. {AGAIN}"
    return RunError.about(Problem(path, f"not {what} that this version reads: {problem}.", advice=advice))


def not_as_written(path: Path | str, text: str, key: str = "", *, line: int = 0) -> RunError:
    """Return the error for a file of a run that was changed after it was written, or belongs to a different run."""
    return RunError.about(Problem(path, text, key, line, AGAIN))
