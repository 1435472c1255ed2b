"""The elements that differ, and what it takes to say that they have a pattern.

A pattern predicts what each element should be instead of the expected value. It is claimed only if nearly all elements
that differ are what it predicts, and if that is no chance: an element that is off by 1,000 times what is allowed is
within what is allowed of a prediction in one of 1,000 cases, which counts as 10 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from export_core.goldens.arrays import Array

Indices = tuple[Array, ...]
"""Of some elements, by axis."""

NEARLY_ALL = 0.98
ENOUGH_BITS = 12.0  # beyond those that choosing the pattern costs: one false claim in 4,000
MOST_BITS = 20.0  # of one element
FIXED_PATTERN_BITS = 4.0  # what a pattern costs that is one of a dozen


@dataclass(frozen=True)
class Places:
    """The elements that differ and are finite on both sides; a sample where there are many.

    `expected` and `actual` are whole, in double precision; `at` has the indices of the sample by axis, `want`, `got`
    and `allowed` (the error that an element may have) its elements; `others` are places that do not differ. `limit` is
    what is allowed in the whole array, None where nothing is. `eps` is the relative step of the dtype, 0 for integers,
    and `tiny` its smallest normal number.
    """

    expected: Array
    actual: Array
    limit: Array | None
    eps: float
    tiny: float
    at: Indices
    others: Indices
    want: Array
    got: Array
    allowed: Array

    @property
    def close(self) -> float:
        """How near, relative to it, a float is to one that another order of rounding gives."""
        return min(8 * self.eps, max(self.eps, 1e-6))

    @property
    def vary(self) -> bool:
        """Whether the expected values differ among each other. Where they do not, too many patterns fit."""
        return self.want.size == 1 or bool((np.abs(self.want - self.want[0]) > self.allowed).any())


@dataclass(frozen=True)
class Pattern:
    """What elements look like, and the share of those that differ for which that holds."""

    text: str
    share: float = 0.0


def claim(
    places: Places,
    text: str,
    predicted: Array,
    *,
    cost: float,
    allowed: Array | None = None,
    valid: Array | None = None,
) -> Pattern:
    """The pattern with its share of all elements, if it explains nearly all of those for which it is `valid`."""
    allowed = places.allowed if allowed is None else allowed
    allowed = np.maximum(allowed, places.close * np.abs(predicted))
    fits = np.abs(places.got - predicted) <= allowed
    if valid is None:
        valid = np.ones(fits.shape, np.bool_)
    fits &= valid
    bits = np.log2(np.clip(np.abs(places.got - places.want) / allowed, 1.0, 2**MOST_BITS))[fits].sum()
    claimed = fits.sum() >= NEARLY_ALL * valid.sum() and valid.mean() >= 0.5 and bits - cost >= ENOUGH_BITS
    return Pattern(text, float(fits.mean()) if claimed else 0.0)
