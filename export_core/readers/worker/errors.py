"""The error of the worker's room."""

from export_core.base.errors import InfrastructureFault


class WorkerDied(InfrastructureFault):
    """A worker ended while cells were still out."""
