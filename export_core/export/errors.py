"""The error of this folder."""

from export_core.errors import ExportCompatError


class ExportError(ExportCompatError):
    """A function or an argument that cannot be exported, said before jax says it less clearly."""
