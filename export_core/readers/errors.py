"""The errors of environments and placements."""

from export_core.base.errors import ExportCompatError, InfrastructureFault


class PlacementError(ExportCompatError):
    """An error for a platform, mode or device that is unknown."""


class EnvironmentFailed(InfrastructureFault):
    """An error for a reader's environment that could not be built; the message ends with the builder's last lines."""


class UnknownEnvironment(ExportCompatError):  # noqa: N818 - it names what happened
    """An error for a name that no environment in the cache folder has."""


def tried_twice(first: str, second: str) -> str:
    """Return the error message for a cell, or an environment, that failed in both of its two tries."""
    if first == second:
        return f"infrastructure: tried twice, and each time {first}"
    return f"infrastructure: tried twice, first {first}\nthen {second}"


STILL_STARTS = "did not start: it still runs"
"""The words in the message of a `WorkerDied` by which a worker is told that took longer than its time to start."""


class WorkerDied(InfrastructureFault):
    """An error for a worker that did not start, or ended while it had cells to run."""
