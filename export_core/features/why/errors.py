"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class WhyError(ExportCompatError):
    """What was asked about does not exist, is not one cell, or cannot be asked."""
