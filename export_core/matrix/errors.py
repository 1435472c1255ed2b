"""The errors of this folder."""

from export_core.errors import ExportCompatError


class MatrixError(ExportCompatError):
    """A plan that cannot be made or run as asked."""


class ResultsNotWritten(MatrixError):  # noqa: N818 - it names what happened
    """The folder of results takes no more: the run is incomplete, and can be resumed."""

    exit_code = 3


class InfrastructureFault(ExportCompatError):  # noqa: N818 - it names what happened
    """Something around a cell failed: nothing is known of the cell, and another try may succeed."""


class EnvironmentFailed(InfrastructureFault):
    """A reader's environment could not be built; the message ends with the builder's last lines."""


class WorkerDied(InfrastructureFault):
    """A worker ended while cells were still out."""


def twice(first: str, second: str) -> str:
    """What is told of a cell whose two tries both came to nothing."""
    if first == second:
        return f"infrastructure: tried twice, and each time {first}"
    return f"infrastructure: tried twice, first {first}\nthen {second}"
