"""The errors of environments and placements."""

from export_core.base.errors import ExportCompatError, InfrastructureFault


class PlacementError(ExportCompatError):
    """An error for a platform, mode or device that is unknown."""


class EnvironmentFailed(InfrastructureFault):
    """An error for a reader's environment that could not be built; the message ends with the builder's last lines."""


class UnknownEnvironment(ExportCompatError):  # noqa: N818 - it names what happened
    """An error for a name that no environment in the cache folder has."""


_TRIED_TWICE = "infrastructure: tried twice, "


def without_tries(message: str) -> str:
    """Return an error message without its opening words that say that something was tried twice.

    Lists that show only the beginning of a message use this, so that they show the reason.
    """
    reason = message.removeprefix(_TRIED_TWICE)
    return message if reason == message else reason.removeprefix("and each time ").removeprefix("first ")


def tried_twice(first: str, second: str) -> str:
    """Return the error message for a cell or an environment that failed twice, from the messages of both tries."""
    if first == second:
        return f"{_TRIED_TWICE}and each time {first}"
    return f"{_TRIED_TWICE}first {first}\nthen {second}"


STILL_STARTS = "did not start: it still runs"
"""The words in the message of a `WorkerDied` by which a worker is told that took longer than its time to start."""


class WorkerDied(InfrastructureFault):
    """An error for a worker that did not start, or ended while it had cells to run."""
