"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class CompareError(ExportCompatError):
    """Outputs that cannot be compared as the golden or its marker says."""
