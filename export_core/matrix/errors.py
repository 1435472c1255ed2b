"""The error of this folder."""

from export_core.base.errors import ExportCompatError


class MatrixError(ExportCompatError):
    """A plan that cannot be made or run as asked."""
