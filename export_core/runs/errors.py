"""The errors of this folder."""

from export_core.errors import ExportCompatError


class RunError(ExportCompatError):
    """The folder of a run that cannot be read, written or continued as asked."""


class ResultsNotWritten(RunError):  # noqa: N818 - it names what happened
    """There is no room for more results: the run is incomplete, and can be resumed."""

    exit_code = 3


class IncompleteResults(RunError):  # noqa: N818 - it names what happened
    """Planned cells have no result, or more than one: what the run says of the others is not its answer."""

    exit_code = 3
