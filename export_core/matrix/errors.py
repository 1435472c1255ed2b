"""The errors of this folder."""

from export_core.errors import ExportCompatError


class MatrixError(ExportCompatError):
    """A plan that cannot be made or run as asked."""


class EnvironmentFailed(ExportCompatError):  # noqa: N818 - it names what happened
    """A reader's environment could not be built; the message ends with the builder's last lines."""


class WorkerDied(ExportCompatError):  # noqa: N818 - it names what happened
    """A worker ended while cells were still out: nothing is known about them."""
