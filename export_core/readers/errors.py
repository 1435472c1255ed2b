"""The errors of environments and placements."""

from export_core.base.errors import ExportCompatError, InfrastructureFault


class PlacementError(ExportCompatError):
    """A platform, mode or device that is unknown."""


class EnvironmentFailed(InfrastructureFault):
    """A reader's environment could not be built; the message ends with the builder's last lines."""


class UnknownEnvironment(ExportCompatError):  # noqa: N818 - it names what happened
    """A name that no environment in the cache folder has."""


def tried_twice(first: str, second: str) -> str:
    """The message of a cell, or an environment, whose two tries both failed."""
    if first == second:
        return f"infrastructure: tried twice, and each time {first}"
    return f"infrastructure: tried twice, first {first}\nthen {second}"


class WorkerDied(InfrastructureFault):
    """A worker ended while cells were still out."""
