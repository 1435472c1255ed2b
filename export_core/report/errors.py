"""The errors of this folder."""

from export_core.base.errors import ExportCompatError


class ReportError(ExportCompatError):
    """A report that cannot be written."""
