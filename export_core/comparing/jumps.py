"""Elements that jump: where one last bit decides between values that are far apart, as in resampling and in argmax.

The writer moves inputs and what is rounded inside by one unit in the last place, and by up to 64. Where the program is
smooth, 64 units move an element at most 64 times as far. An element that they move much farther jumps. Its noise is
then a part of how far it jumps, since the few runs with single units need not have met the jump that a reader meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from export_core.comparing.noise import noise_with_floors
from export_core.goldens import Leaf
from export_core.goldens.arrays import Array
from export_core.goldens.noise import Noise
from export_core.tolerances import FLOATS

ULPS = 64
"""By how many units the amplified runs move, a power of two below 128."""

SMOOTH = 16.0
"""Up to this many times its noise an element may move for each unit and is smooth: it has more noise than was seen."""

JUMPS = 128.0
"""Beyond this many times it jumps."""

PART = 0.5
"""The part of a jump that counts as noise. With `FACTOR` times the noise an element may be off by twice its jump."""


@dataclass(frozen=True)
class MeasuredOutput:
    """The noise of an output, and how many of its elements jump."""

    noise: Array
    jumping: int = 0


def with_jumps(plain: Sequence[Leaf], near: Noise, far: Noise, narrowest: str) -> list[MeasuredOutput | None]:
    """The noise of each output from runs moved by one unit and those moved by `ULPS`; None where it must be equal.

    Args:
        plain: the outputs of the plain run.
        near: how far elements move with units of one.
        far: how far they move with units of `ULPS`; all 0 where there are no such runs.
        narrowest: the narrowest float type of the module.
    """
    return [
        None
        if one is None or other is None
        else _float_output(leaf, one, other, narrowest)
        if leaf.dtype in FLOATS
        else _whole_output(np.maximum(one, other))
        for leaf, one, other in zip(plain, near, far, strict=True)
    ]


def _whole_output(moved: Array) -> MeasuredOutput:
    """Of integers and booleans each element that ever moved jumps: an index, a count, a rounded number."""
    jumps = moved > 0
    return MeasuredOutput(np.where(jumps, PART * _jump(moved, jumps), 0.0), int(jumps.sum()))


def _jump(far: Array, jumps: Array) -> Array:
    """How far elements jump: as far as was seen, or as all that jump do by their root mean square."""
    typical = np.sqrt(np.mean(far[jumps] ** 2)) if jumps.any() else 0.0
    return np.asarray(np.maximum(far, typical))


def _float_output(leaf: Leaf, near: Array, far: Array, narrowest: str) -> MeasuredOutput:
    unit = noise_with_floors(leaf.numpy(), near, leaf.dtype, narrowest)
    for_one = far / ULPS
    noise = np.where(for_one <= SMOOTH * unit, np.maximum(near, for_one), near)
    jumps = for_one > JUMPS * np.maximum(unit, noise)
    if not jumps.any():
        return MeasuredOutput(noise)
    noise = np.where(jumps, np.maximum(noise, PART * _jump(far, jumps)), noise)
    return MeasuredOutput(noise, int(jumps.sum()))
