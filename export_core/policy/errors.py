"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class PolicyError(ExportCompatError):
    """A policy that does not say what it must."""
