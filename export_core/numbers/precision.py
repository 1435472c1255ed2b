"""Whether errors look like rounding, or as if a narrower type had been used: their size and how they are spread."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from export_core.base.tolerances import ROUNDING
from export_core.goldens.arrays import Array
from export_core.numbers.places import NEARLY_ALL, Places

_TYPES = (("bfloat16", 8), ("TensorFloat-32 or float16", 11), ("float32", 24))
"""Narrower types and the bits of their mantissas. The two in the middle round alike."""

_PRECISION = {"float64": 53, "complex128": 53, "float32": 24, "complex64": 24, "float16": 11}
_LEVELS = {8: (-9.9, -6.0), 11: (-12.9, -11.0), 24: (-25.9, -20.0)}
"""Where the base-2 logarithm of the median error is, relative to the values: one rounding gives 1.5 less than the bits,
products and sums of rounded numbers some more."""
_BETWEEN = (-14.4, -5.0)
"""Where it may be by several causes: sums in float16, means in bfloat16."""

_SAMPLE = 5_000
_ENOUGH = 16  # elements whose distribution says something
_SMALLEST_FLOAT16 = 2.0**-24
_FEW = 4
_NEAR = 100  # times what is allowed: an error far beyond is not rounding


def lost_precision(places: Places, dtype: str) -> str:
    """What the errors of an array of floats look like, as text; empty where they look like neither."""
    expected, actual = places.expected.reshape(-1), places.actual.reshape(-1)
    if expected.size > _SAMPLE:
        sample = np.random.default_rng(0).integers(0, expected.size, _SAMPLE)
        expected, actual = expected[sample], actual[sample]
    # Where both are zero, as after a relu, no type makes an error.
    usable = np.isfinite(expected) & np.isfinite(actual) & ((expected != 0) | (actual != 0))
    want, got = expected[usable], actual[usable]
    types = [(name, bits) for name, bits in _TYPES if bits < _PRECISION.get(dtype, 0)]
    for name, bits in types:
        if want.size >= _ENOUGH and _is_rounded(want, got, bits):
            return f"rounded to {name}"
    return _rounding(places, want, got) or _level(want, got, types)


def _is_rounded(want: Array, got: Array, bits: int) -> bool:
    """Whether the numbers are the expected ones with mantissas of fewer bits, which the expected ones do not have."""
    allowed = 2.0 ** (1 - bits) * np.abs(want) + (_SMALLEST_FLOAT16 if bits == 11 else 0.0)
    near = float((np.abs(got - want) <= allowed).mean())
    return near >= NEARLY_ALL and _representable(got, bits) >= NEARLY_ALL and _representable(want, bits) < 0.5


def _representable(values: Array, bits: int) -> float:
    """The share of numbers with so few bits."""
    parts = np.concatenate([values.real, values.imag]) if values.dtype.kind == "c" else values
    mantissas = np.ldexp(np.frexp(parts)[0], bits)
    return float((mantissas == np.rint(mantissas)).mean())


def _rounding(places: Places, want: Array, got: Array) -> str:
    """Errors near what is allowed, small beside the largest element, several of about that size, of both signs.

    `want` and `got` are elements of the whole array.
    """
    errors = np.abs(places.got - places.want)
    if places.limit is not None and (errors > _NEAR * places.allowed).any():
        return ""
    worst, sizes = errors.max(), np.abs(places.expected)
    scale = sizes.max(initial=0.0, where=np.isfinite(sizes))
    # Types with many bits may lose more of them: 2^-14 is left of float32's 2^-24, 2^-5 of bfloat16's 2^-8.
    if worst > scale * (places.eps / 2) ** 0.6:
        return ""
    want, got = np.concatenate([want, places.want]), np.concatenate([got, places.got])
    _, once = np.unique(want, return_index=True)  # an element that is there twice would look like a neighbour
    want, got = want[once], got[once]
    absolute = np.abs(got - want)
    # Beside the largest element, or each beside itself.
    if not any(_several_alike(want, got, relative) for relative in (absolute, absolute / np.abs(want))):
        return ""
    return f"{ROUNDING}errors of both signs, at most {_power(worst / scale)} of the largest element"


def _several_alike(want: Array, got: Array, errors: Array) -> bool:
    """Whether several errors are about as large as the largest one, of both signs."""
    alike = errors >= errors.max(initial=0.0, where=np.isfinite(errors)) / 10
    return bool(alike.sum() >= _FEW) and _is_random(want[alike], got[alike])


def _level(want: Array, got: Array, types: Sequence[tuple[str, int]]) -> str:
    """The type that makes errors of this size."""
    if want.size < _ENOUGH or not _is_random(want, got):
        return ""
    size = math.sqrt(float(np.square(np.abs(want)).mean()))
    for scale, name in ((np.abs(want), "each value"), (np.full(want.shape, size), "the values' root mean square")):
        relative = np.abs(got - want) / scale
        middle = float(np.median(relative))
        # Rounding has no outliers: one element that is off, or a few, is something else.
        if not 0 < np.quantile(relative, NEARLY_ALL) <= 16 * middle:
            continue
        level, about = math.log2(middle), f"errors of about {_power(middle)} of {name}"
        for type_name, bits in types:
            if _LEVELS[bits][0] < level <= _LEVELS[bits][1]:
                return f"as if computed in {type_name}: {about}"
        return f"as if precision was lost: {about}" if types and _BETWEEN[0] < level <= _BETWEEN[1] else ""
    return ""


def _is_random(want: Array, got: Array) -> bool:
    """Whether errors have both signs, also among neighbours in size: those of another formula depend on the value."""
    order = np.argsort(want.real, kind="stable")
    signs = (got - want).real[order] > 0
    if not 0.1 <= signs.mean() <= 0.9:
        return False
    return bool(signs.size < _ENOUGH or (signs[1:] != signs[:-1]).mean() >= 0.25)


def _power(value: float) -> str:
    return f"2^{round(math.log2(value))}"
