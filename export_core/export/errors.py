"""The error of this folder."""

from export_core.errors import ExportCompatError


class ExportError(ExportCompatError):
    """A function or an argument that cannot be exported, reported before jax reports it less clearly."""
