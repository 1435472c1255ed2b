"""The errors of this folder."""

from export_core.errors import ExportCompatError


class PlacementError(ExportCompatError):
    """A platform, mode or device that is not known."""


class InfrastructureFault(ExportCompatError):  # noqa: N818 - it names what happened
    """Something around a cell failed: nothing is known of the cell, and another try may succeed."""


class EnvironmentFailed(InfrastructureFault):
    """A reader's environment could not be built; the message ends with the builder's last lines."""


def twice(first: str, second: str) -> str:
    """What is told of a cell whose two tries both came to nothing."""
    if first == second:
        return f"infrastructure: tried twice, and each time {first}"
    return f"infrastructure: tried twice, first {first}\nthen {second}"
