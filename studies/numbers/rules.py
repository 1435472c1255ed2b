"""Three rules by which the outputs of a call are judged: this project's noise, fixed tolerances, numpy's defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens import Check, Comparison, Golden, Leaf
from export_core.numbers.compare import GoldenOutputs, Rules, compare_leaves
from export_core.numbers.comparison_of_call import comparison_of
from export_core.numbers.elements import to_double
from export_core.numbers.factorizations import FACTORIZATIONS
from export_core.numbers.noise import FACTOR

FACTORS = (1, 2, 3, 4, 6, 8, 16, 32)
"""The multiples of the noise for which a table shows how many cells fail and how many errors are missed."""
CPU = ("cpu", "cpu")


@dataclass(frozen=True)
class Judged:
    """Whether outputs fail by each rule: this project's (`fails`), fixed tolerances, numpy's defaults.

    `largest` is the largest error in units of the noise, infinite if something without noise fails, such as integers.
    `wrong` has the positions of the outputs that fail by this project's rule: all of them if none fails alone.
    """

    fails: bool
    largest: float
    fails_tolerance: bool
    fails_numpy: bool
    wrong: tuple[int, ...] = ()


@dataclass(frozen=True)
class Judge:
    """A golden's outputs and the fixed tolerances, by which the outputs of its calls are judged."""

    outputs: GoldenOutputs
    fixed: Comparison

    @classmethod
    def of(cls, golden: Golden) -> Judge:
        """Return the judge of a golden. It compares numbers even if the golden has compare="shape"."""
        manifest = golden.manifest
        if manifest.comparison.compare == "shape":
            manifest = msgspec.structs.replace(manifest, comparison=Comparison())
        compare = manifest.comparison.compare
        fixed = Comparison(compare if compare in FACTORIZATIONS else "allclose")
        return cls(GoldenOutputs(replace(golden, manifest=manifest), "cpu", {}), fixed)

    def judge(self, check: Check, expected: Sequence[Leaf], given: Sequence[Leaf]) -> Judged:
        """Judge the outputs of a call by all three rules.

        Args:
            check: the call.
            expected: the writer's outputs.
            given: the outputs to judge.
        """
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
        """Return the indexes of the outputs that fail if all other outputs are the writer's.

        If no output fails alone, as happens with factors of a matrix, return the indexes of all outputs.
        """
        wrong = []
        for number, leaf in enumerate(given):
            alone = [*expected[:number], leaf, *expected[number + 1 :]]
            if not self.outputs.compare(check, expected, alone).ok:
                wrong.append(number)
        return tuple(wrong or range(len(expected)))


def worst(judged: Sequence[Judged]) -> Judged:
    """Return the judgement of several calls together, which fails by a rule if one of the calls does."""
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
