"""The error of this folder."""

from export_core.errors import ExportCompatError


class CompareError(ExportCompatError):
    """Outputs that cannot be compared in the way that was asked for."""
