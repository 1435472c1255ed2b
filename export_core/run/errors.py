"""The errors of this folder."""

from pathlib import Path

from export_core.base.errors import ExportCompatError, Problem

AGAIN = "Run the matrix again."  # What to do about most of them.


class RunError(ExportCompatError):
    """The folder of a run that cannot be read, written or continued as asked."""


class ResultsNotWritten(RunError):  # noqa: N818 - it names what happened
    """There is no room for more results: the run is incomplete, and can be resumed."""

    exit_code = 3


class IncompleteResults(RunError):  # noqa: N818 - it names what happened
    """Planned cells have no result, or more than one: what the run says of the others is not its answer."""

    exit_code = 3


def not_readable(path: Path, what: str, problem: str) -> RunError:
    """The error for a file of a run whose form this version does not know."""
    advice = f"Another version of pytest-jaxexport may have written it. {AGAIN}"
    return RunError.about(Problem(path, f"not {what} that this version reads: {problem}.", advice=advice))


def not_as_written(path: Path | str, text: str, key: str = "", *, line: int = 0) -> RunError:
    """Return the error for a file of a run that no run has written so: it was changed, or is of another run."""
    return RunError.about(Problem(path, text, key, line, AGAIN))
