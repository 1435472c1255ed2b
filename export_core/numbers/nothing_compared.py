"""Whether a golden's comparison can fail: a comparison that accepts everything proves nothing about a release."""

import numpy as np

from export_core.base.tolerances import Tolerances
from export_core.goldens import Golden, GoldenError, Leaf
from export_core.goldens.arrays import from_npz, leaf_of, nothing_to_compare
from export_core.numbers import CompareError
from export_core.numbers.compare import GoldenOutputs
from export_core.numbers.leaf_paths import call_in_words
from export_core.numbers.user_code import UserCode


def without_values(golden: Golden) -> str:
    """Return why the outputs of a golden show nothing about its function; empty if any element shows something.

    The outputs of derivatives do not count, neither here nor when a golden is written, since they may be numbers even
    if the function returns only NaN. Raises `GoldenError` if the outputs cannot be read.
    """
    problem = ""
    for file, check in golden.calls.items():
        # Read one by one: the first nearly always shows something.
        if not check.vjp and not (problem := nothing_to_compare(from_npz(golden.folder / file))):
            return ""
    return problem


def calls_without_values(golden: Golden) -> list[str]:
    """Return a remark on each further call and each derivative whose outputs have no numbers to compare.

    Raises `GoldenError` if outputs cannot be read.
    """
    remarks = []
    for file, check in golden.calls.items():
        if not check.name or any(leaf.data.size and leaf.dtype != "float0" for leaf in from_npz(golden.folder / file)):
            continue
        why = "derivatives by integers and booleans have none (float0)" if check.vjp else "its outputs have no values"
        remarks.append(f"{call_in_words(check.name)}: no number is compared, since {why}: is it meant to be so?")
    return remarks


def nothing_compared(golden: Golden, platform: str, tolerances: Tolerances, user_code: UserCode | None = None) -> str:
    """Return why a pass of a reader shows nothing about this golden's numbers; empty if wrong numbers would fail.

    Args:
        golden: a golden with the comparison that the rules and quirks of its policy give it.
        platform: the platform of the reader.
        tolerances: the tolerances of the policy, by platform.
        user_code: the process that tries whether a user's own comparator accepts wrong numbers; None to trust it
            untried.

    Raises:
        GoldenError: The outputs of the golden cannot be read.
    """
    if reason := golden.manifest.options.without_outputs:
        return f"the golden has no outputs ({reason})"
    if problem := without_values(golden):
        return problem
    compare = golden.compared_as.comparison.compare
    if compare == "shape":
        return "its comparison looks at shapes and dtypes alone"
    if ":" in compare and user_code is None:
        return ""
    wanted, outputs = GoldenOutputs(golden, platform, tolerances, user_code), golden.outputs_of_calls()
    for file, check in golden.calls.items():
        try:
            # Derivatives are compared by tolerances, whatever decides about the function itself.
            # Nobody reads this difference: with names by number alone, the artifact is not read for paths.
            leaves = outputs[file]
            if not check.vjp and not wanted.compare(check, leaves, list(map(other_leaf, leaves)), named=str).ok:
                return ""
        except (CompareError, GoldenError):  # such numbers are not even compared
            return ""
    return "its comparison accepts zeros in place of every output"


@np.errstate(invalid="ignore")  # a NaN is not equal to zero, and not warned of
def other_leaf(leaf: Leaf) -> Leaf:
    """Return a leaf of the same type in which every element is wrong: zeros, and ones in place of zeros."""
    if leaf.dtype == "float0":
        return leaf
    values = leaf.numpy()
    other = np.where(values == 0, np.ones_like(values), np.zeros_like(values))
    return Leaf(leaf.dtype, leaf_of(other).data)
