"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class DeployingError(ExportCompatError):
    """What was asked about does not exist, or is in no place."""
