"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class ReleaseError(ExportCompatError):
    """An error for a release that the calendar does not have, or for a date that cannot be right."""
