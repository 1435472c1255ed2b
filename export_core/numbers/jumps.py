"""Elements that jump: where one last bit decides between values that are far apart, as in resampling and in argmax.

The writer moves inputs and what is rounded inside by one unit in the last place, and by up to 64. Where the program is
smooth, 64 units move an element at most 64 times as far. An element that they move much farther jumps. Its noise is
then a part of how far it jumps, since the few runs with single units need not have met the jump that a reader meets.
"""

from __future__ import annotations

import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens import Leaf
from export_core.goldens.arrays import Array
from export_core.numbers.noise import noise_with_floors

ULPS = 64
"""By how many units the amplified runs move, a power of two below 128."""

SMOOTH = 16.0
"""Up to this many times its noise an element may move for each unit and is smooth: it has more noise than was seen."""

JUMPS = 128.0
"""Beyond this many times it jumps."""

PART = 0.5
"""The part of a jump that counts as noise. With `FACTOR` times the noise an element may be off by twice its jump."""


def noise_and_jumps(leaf: Leaf, near: Array | None, far: Array | None, narrowest: str) -> tuple[Array | None, int]:
    """The noise of an output, None where it must be equal; and how many of its elements jump.

    Of integers and booleans each element that ever moved jumps: an index, a count, a rounded number.

    Args:
        leaf: the output of the plain run.
        near: how far elements move with units of one.
        far: how far they move with units of `ULPS`; all 0 where there are no such runs.
        narrowest: the narrowest float type of the module.
    """
    if near is None or far is None:
        return None, 0
    if leaf.dtype in FLOATS:
        unit, for_one = noise_with_floors(leaf.numpy(), near, leaf.dtype, narrowest), far / ULPS
        noise = np.where(for_one <= SMOOTH * unit, np.maximum(near, for_one), near)
        jumps = for_one > JUMPS * np.maximum(unit, noise)
    else:
        noise, far = np.zeros(near.shape), np.maximum(near, far)
        jumps = far > 0
    if not jumps.any():
        return noise, 0
    # They jump as far as was seen, or as all that jump do by their root mean square.
    jump = np.maximum(far, np.sqrt(np.mean(far[jumps] ** 2)))
    return np.where(jumps, np.maximum(noise, PART * jump), noise), int(jumps.sum())
