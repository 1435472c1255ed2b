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
    """Return the comparison for a call; for a derivative (VJP), `allclose` replaces comparators of certain outputs.

    It replaces the comparators of factorizations, since a derivative is not a factorization, and a user's own function.
    `exact` and `shape` are not replaced, since they can compare any outputs.
    """
    is_for_any = how.compare in WITHOUT_TOLERANCE
    return structs.replace(how, compare=Comparison().compare) if check.vjp and not is_for_any else how


def is_by_noise(golden: Golden, check: Check, dtype: str, tolerances: Tolerances = NO_TOLERANCES) -> bool:
    """Return whether outputs of a dtype are compared by noise: neither a tolerance nor a comparator is set for them.

    Args:
        golden: the golden, with the comparison that its policy gives it.
        check: the call that returned the outputs.
        dtype: the dtype. Whole numbers have no tolerance, since they either jump or must be equal.
        tolerances: the tolerances of the policy, by platform. Those of the writer's platform count, whatever the
            reader.
    """
    how = comparison_of(check, golden.compared_as.comparison)
    if dtype not in FLOATS:
        return takes_tolerances(how.compare)
    is_asked_for = dtype in tolerances.get(golden.manifest.writer.platform, {})
    return how.compare == Comparison().compare and given_tolerance(how, dtype) == Tolerance() and not is_asked_for
