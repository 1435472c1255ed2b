"""The comparison of the outputs of one call of a golden, and whether noise, a tolerance or a comparator decides."""

from msgspec import structs

from export_core.base.tolerances import (
    FLOATS,
    WITHOUT_TOLERANCE,
    Tolerance,
    Tolerances,
    given_tolerance,
    takes_tolerances,
)
from export_core.goldens import Check, Comparison, Golden

NO_TOLERANCES: Tolerances = {}  # Those of a policy that sets none.


def comparison_of(check: Check, how: Comparison) -> Comparison:
    """Return the comparison for a call: for a derivative (VJP), `allclose` replaces comparators of certain outputs.

    Replaced are the comparators of factorizations, since a derivative is no factorization, and a user's own function.
    `exact` and `shape` stay: they can compare any outputs.
    """
    is_for_any = how.compare in WITHOUT_TOLERANCE
    return structs.replace(how, compare=Comparison().compare) if check.vjp and not is_for_any else how


def is_by_noise(golden: Golden, check: Check, dtype: str, tolerances: Tolerances = NO_TOLERANCES) -> bool:
    """Return whether noise decides what the outputs of a dtype may be: no tolerance and no comparator was asked for.

    Args:
        golden: the golden, as it is compared.
        check: the call that the outputs are of.
        dtype: the dtype; whole numbers, which jump or are equal, have no tolerance.
        tolerances: those of the policy, by platform. They count for a writer on that platform, whatever the reader.
    """
    how = comparison_of(check, golden.compared_as.comparison)
    if dtype not in FLOATS:
        return takes_tolerances(how.compare)
    is_asked_for = dtype in tolerances.get(golden.manifest.writer.platform, {})
    return how.compare == Comparison().compare and given_tolerance(how, dtype) == Tolerance() and not is_asked_for
