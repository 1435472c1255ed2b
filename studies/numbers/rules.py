"""Three rules for the outputs of a call: that of this project, fixed tolerances, and numpy's defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens import Check, Comparison, Golden, Leaf
from export_core.numbers.compare import GoldenOutputs, Rules, compare_leaves, comparison_of
from export_core.numbers.elements import to_double
from export_core.numbers.factorizations import FACTORIZATIONS
from export_core.numbers.noise import FACTOR

FACTORS = (1, 2, 3, 4, 6, 8, 16, 32)
"""The multiples of its noise by which an element may be off, for the curve."""
CPU = ("cpu", "cpu")


@dataclass(frozen=True)
class Judged:
    """Whether outputs fail by each rule.

    `largest` is the largest error in units of the noise, infinite for what has none. `wrong` are the outputs that fail.
    """

    fails: bool
    largest: float
    fails_tolerance: bool
    fails_numpy: bool
    wrong: tuple[int, ...] = ()


@dataclass(frozen=True)
class Judge:
    """The rules for a golden's calls, as in the matrix, but numbers are always compared."""

    outputs: GoldenOutputs
    fixed: Comparison

    @classmethod
    def of(cls, golden: Golden) -> Judge:
        """Return the judge of a golden. Numbers are compared even if the golden has compare="shape"."""
        manifest = golden.manifest
        if manifest.comparison.compare == "shape":
            manifest = msgspec.structs.replace(manifest, comparison=Comparison())
        compare = manifest.comparison.compare
        fixed = Comparison(compare if compare in FACTORIZATIONS else "allclose")
        return cls(GoldenOutputs(replace(golden, manifest=manifest), "cpu", {}), fixed)

    def judge(self, check: Check, expected: Sequence[Leaf], given: Sequence[Leaf]) -> Judged:
        """Judge the outputs of a call against the writer's."""
        difference = self.outputs.compare(check, expected, given)
        noise = difference.max_noise_error or 0.0
        fixed = compare_leaves(expected, given, Rules(comparison_of(check, self.fixed), platforms=CPU))
        return Judged(
            fails=not difference.ok,
            # Where no noise is exceeded, integers fail, which have no noise.
            largest=math.inf if not difference.ok and noise <= FACTOR else noise,
            fails_tolerance=not fixed.ok,
            fails_numpy=fails_numpy(expected, given),
            wrong=() if difference.ok else self._wrong(check, expected, given),
        )

    def _wrong(self, check: Check, expected: Sequence[Leaf], given: Sequence[Leaf]) -> tuple[int, ...]:
        """Return the outputs that fail while all others have the writer's values; for factors, all outputs."""
        wrong = []
        for number, leaf in enumerate(given):
            alone = [*expected[:number], leaf, *expected[number + 1 :]]
            if not self.outputs.compare(check, expected, alone).ok:
                wrong.append(number)
        return tuple(wrong or range(len(expected)))


def worst(judged: Sequence[Judged]) -> Judged:
    """Return the judgement of several calls together."""
    return Judged(
        any(one.fails for one in judged),
        max((one.largest for one in judged), default=0.0),
        any(one.fails_tolerance for one in judged),
        any(one.fails_numpy for one in judged),
    )


def fails_numpy(expected: Sequence[Leaf], outputs: Sequence[Leaf]) -> bool:
    """Return whether numpy.testing.assert_allclose fails with its defaults, rtol 1e-7 and atol 0."""
    for want, got in zip(expected, outputs, strict=True):
        actual, desired = (to_double(leaf.numpy()) if leaf.dtype in FLOATS else leaf.numpy() for leaf in (got, want))
        try:
            np.testing.assert_allclose(actual, desired)
        except AssertionError:
            return True
    return False
