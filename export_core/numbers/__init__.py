"""Whether two sets of outputs agree: comparators, factorizations, units in the last place."""

from export_core.base.errors import ExportCompatError


class CompareError(ExportCompatError):
    """An error for outputs that cannot be compared in the way that the golden or its marker asks for."""
