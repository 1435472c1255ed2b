"""The errors of this folder."""

from pathlib import Path

from export_core.base.errors import ExportCompatError, Problem

AGAIN = "Run the matrix again."  # The advice of most of these errors.


class RunError(ExportCompatError):
    """An error of the folder of a run, which cannot be read, written or continued as asked."""


class ResultsNotWritten(RunError):  # noqa: N818 - it names what happened
    """An error for results without room on the disk: the run is incomplete, and can be resumed."""

    exit_code = 3


class IncompleteResults(RunError):  # noqa: N818 - it names what happened
    """An error for planned cells without a result, or with more than one: the others are no answer of the run."""

    exit_code = 3


def not_readable(path: Path, what: str, problem: str) -> RunError:
    """Return the error for a file of a run whose form this version does not know."""
    advice = f"Another version of pytest-jaxexport may have written it. {AGAIN}"
    return RunError.about(Problem(path, f"not {what} that this version reads: {problem}.", advice=advice))


def not_as_written(path: Path | str, text: str, key: str = "", *, line: int = 0) -> RunError:
    """Return the error for a file of a run that no run has written so: it was changed, or is of another run."""
    return RunError.about(Problem(path, text, key, line, AGAIN))
