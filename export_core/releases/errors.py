"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class ReleaseError(ExportCompatError):
    """An error for a release or date that is unknown or cannot be right."""
