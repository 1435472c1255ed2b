"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class ReleaseError(ExportCompatError):
    """An error for an unknown release, or for a date that cannot be right."""
