"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class RemoteError(ExportCompatError):
    """A cluster that cannot be reached, or that is not known."""
