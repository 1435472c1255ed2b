"""Distances between floating-point numbers in units in the last place: the number of steps between them."""

from __future__ import annotations

import numpy as np

from export_core.goldens.arrays import Array

_PARTS = {"complex64": "float32", "complex128": "float64"}


def ulp_distance(one: Array, other: Array) -> Array:
    """Units in the last place between elements of one floating-point dtype, as uint64.

    Neighbours are 1 apart, the two zeros 0. A complex number is as far away as the farther of its parts. An infinity is
    the neighbour of the largest number; NaN lies beyond it, so that a distance from NaN means nothing.
    """
    if one.dtype.name in _PARTS:
        dtype = _PARTS[one.dtype.name]
        parts = [np.ascontiguousarray(values).view(dtype).reshape(*values.shape, 2) for values in (one, other)]
        return np.asarray(ulp_distance(parts[0], parts[1]).max(axis=-1, initial=0))
    (steps, negative), (other_steps, other_negative) = _steps_from_zero(one), _steps_from_zero(other)
    # On one side of zero the distance is the difference of their steps, across zero the sum. Both fit: steps have at
    # most 63 bits.
    same_side = np.maximum(steps, other_steps) - np.minimum(steps, other_steps)
    return np.where(negative == other_negative, same_side, steps + other_steps)


def _steps_from_zero(values: Array) -> tuple[Array, Array]:
    """How many numbers each element is away from zero, and which elements have the sign bit set.

    In every format but one the highest bit is the sign, and the others, read as an integer, count the numbers up from
    zero: the exponent is above the mantissa, so that the next integer is the next number, also from one exponent to the
    next.
    """
    import ml_dtypes  # it comes with jax; NumPy knows nothing of narrow floats

    bits = np.asarray(values, order="C").view(f"u{values.dtype.itemsize}").astype(np.uint64)
    if values.dtype.name.endswith("fnu"):  # float8_e8m0fnu has powers of two only, and no sign
        return bits, np.zeros(values.shape, np.bool_)
    sign = np.uint64(1 << (ml_dtypes.finfo(values.dtype).bits - 1))  # narrow floats are in the low bits of a byte
    return bits & (sign - np.uint64(1)), (bits & sign) != 0
