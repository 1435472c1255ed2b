"""What each rule says of a set of outputs: the noise with several factors, the fixed tolerances, numpy's defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from export_core.comparing.algebra import to_double
from export_core.comparing.compare import compare_leaves
from export_core.comparing.factors import FACTORIZATIONS, parts_of
from export_core.comparing.rules import CallNoise, Rules
from export_core.goldens import Comparison, Leaf
from export_core.goldens.arrays import Array
from export_core.tolerances import FLOATS

FACTORS = (1, 2, 3, 4, 6, 8, 16, 32)
"""How many times its noise an element may be off."""
CPU = ("cpu", "cpu")


@dataclass(frozen=True)
class Judged:
    """How many elements are beyond the noise, by factor, and whether the outputs fail by each of the other rules."""

    beyond: dict[int, int]
    largest: float
    fails_tolerance: bool
    fails_numpy: bool


def judge(expected: Sequence[Leaf], outputs: Sequence[Leaf], compare: str, noise: CallNoise) -> Judged:
    """Outputs against those that the writer saw, by every rule. `compare` is the golden's comparator."""
    comparison = Comparison(compare if compare in FACTORIZATIONS else "allclose")
    errors = errors_in_noise(expected, outputs, comparison, noise)
    return Judged(
        beyond={factor: int((errors > factor).sum()) for factor in FACTORS},
        largest=float(errors.max(initial=0.0)),
        fails_tolerance=not compare_leaves(expected, outputs, comparison, platforms=CPU).ok,
        fails_numpy=fails_numpy(expected, outputs),
    )


def errors_in_noise(
    expected: Sequence[Leaf], outputs: Sequence[Leaf], comparison: Comparison, noise: CallNoise
) -> Array:
    """The error of each element in units of its noise; infinite where it fails a rule without noise."""
    rules = Rules(comparison, noise, CPU, {}, {})
    wanted, given = ([leaf.numpy() for leaf in side] for side in (expected, outputs))
    if comparison.compare in FACTORIZATIONS:
        judged = [
            rules.of(part.dtype, part.output).compare(part.expected, part.actual, part.scale)
            for part in parts_of(comparison.compare, wanted, given)
        ]
    else:
        judged = [
            rules.of(leaf.dtype, number).compare(want, got)
            for number, (leaf, want, got) in enumerate(zip(expected, wanted, given, strict=True))
        ]
    errors = [np.where(one.bad, np.inf, 0.0) if one.in_noise is None else one.in_noise for one in judged]
    return np.concatenate([np.ravel(array) for array in errors])


def fails_numpy(expected: Sequence[Leaf], outputs: Sequence[Leaf]) -> bool:
    """Whether numpy.testing.assert_allclose fails with its defaults, rtol 1e-7 and atol 0."""
    for want, got in zip(expected, outputs, strict=True):
        pair = [to_double(leaf.numpy()) if leaf.dtype in FLOATS else leaf.numpy() for leaf in (got, want)]
        try:
            np.testing.assert_allclose(*pair)
        except AssertionError:
            return True
    return False
