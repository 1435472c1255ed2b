"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class ReleaseError(ExportCompatError):
    """A release or a date that the calendar does not have."""
