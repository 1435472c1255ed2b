"""Whether two sets of outputs agree: comparators, factorizations, units in the last place."""

from export_core.base.errors import ExportCompatError


class CompareError(ExportCompatError):
    """Outputs that cannot be compared as the golden or its marker says."""
