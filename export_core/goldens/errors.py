"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class GoldenError(ExportCompatError):
    """A golden that is missing, damaged, from a newer version of this tool, or cannot be written."""
