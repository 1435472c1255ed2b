"""How many representable numbers lie between two of them?"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_PARTS = {"complex64": "float32", "complex128": "float64"}


def ulp_distance(one: Array, other: Array) -> Array:
    """Units in the last place between elements of one floating-point dtype, as uint64: neighbours are 1 apart, the two zeros 0.

    A complex number is as far as the farther of its parts. An infinity is the neighbour of the largest number; NaN has a place beyond
    it, so that a distance from it means nothing.
    """
    if one.dtype.name in _PARTS:
        part = _PARTS[one.dtype.name]
        parts = [np.ascontiguousarray(each).view(part).reshape(*each.shape, 2) for each in (one, other)]
        return np.asarray(ulp_distance(parts[0], parts[1]).max(axis=-1, initial=0))
    (mine, below), (theirs, below_too) = _place(one), _place(other)
    apart = np.maximum(mine, theirs) - np.minimum(mine, theirs)
    return np.where(below == below_too, apart, mine + theirs)


def _place(values: Array) -> tuple[Array, Array]:
    """How many numbers lie between each element and zero, and which elements have the sign bit set.

    In every format but one the highest bit is the sign, and the others, read as an integer, count the numbers up from zero.
    """
    import ml_dtypes

    bits = np.asarray(values, order="C").view(f"u{values.dtype.itemsize}").astype(np.uint64)
    if values.dtype.name.endswith("fnu"):  # float8_e8m0fnu: powers of two, without a sign
        return bits, np.zeros(values.shape, np.bool_)
    sign = np.uint64(1 << (ml_dtypes.finfo(values.dtype).bits - 1))  # narrow floats lie in the low bits of a byte
    return bits & (sign - np.uint64(1)), (bits & sign) != 0
