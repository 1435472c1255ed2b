"""Functions that plant an error into a writer's output, such as a broken reader might make."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from export_core.goldens.arrays import Array

SMALL = 1e-3
"""An element is small if it is below this share of the largest element."""


def small_signs(values: Array) -> Array:
    """Return the values with the sign of every small element changed."""
    wide = np.abs(_double(values))
    finite = np.isfinite(wide)
    largest = wide[finite].max(initial=0.0)
    return np.where(finite & (wide > 0) & (wide < SMALL * largest), -values, values).astype(values.dtype)


def one_element(values: Array) -> Array:
    """Return the values with one element off by a thousandth of itself. A hash of the values chooses the element."""
    wide = np.abs(_double(values)).ravel()
    candidates = np.flatnonzero(np.isfinite(wide) & (wide > 0))
    if not len(candidates):
        return values
    index = np.random.RandomState(zlib.crc32(wide.tobytes()) % 2**32).choice(candidates)
    wrong = values.copy().ravel()
    wrong[index] = (_double(wrong[index : index + 1]) * 1.001).astype(values.dtype)[0]
    return np.asarray(wrong.reshape(values.shape))


def off_by_one(values: Array) -> Array:
    """Return the values moved by one position along the last axis."""
    return np.roll(values, 1, axis=-1) if values.ndim else values


def swapped_axis(values: Array) -> Array:
    """Return the values with the last two axes swapped, in the same shape."""
    return np.swapaxes(values, -1, -2).reshape(values.shape) if values.ndim > 1 else values


def flushed_denormals(values: Array) -> Array:
    """Return the values with zero in place of denormal numbers."""
    if values.dtype.kind == "c":
        return values
    import ml_dtypes

    tiny = float(ml_dtypes.finfo(values.dtype).tiny)
    wide = np.abs(_double(values))
    return np.where((wide > 0) & (wide < tiny), np.zeros((), values.dtype), values)


def zero_for_nan(values: Array) -> Array:
    """Return the values with zero in place of NaN."""
    return np.where(np.isnan(values), np.zeros((), values.dtype), values)


def all_zero(values: Array) -> Array:
    """Return an array of zeros with the shape and dtype of the values."""
    return np.zeros_like(values)


def halved(values: Array) -> Array:
    """Return half of every element."""
    return (_double(values) / 2).astype(values.dtype)


def signs_flipped(values: Array) -> Array:
    """Return the values with every sign changed."""
    return (-_double(values)).astype(values.dtype)


def ten_percent(values: Array) -> Array:
    """Return the values, each a tenth too large."""
    return (_double(values) * 1.1).astype(values.dtype)


FROM_EACH_OUTPUT: dict[str, Callable[[Array], Array]] = {
    "all-zero": all_zero,
    "halved": halved,
    "signs-flipped": signs_flipped,
    "ten-percent": ten_percent,
}
"""Coarse errors. Each is planted in a single output at a time, and must be caught."""

FROM_OUTPUTS: dict[str, Callable[[Array], Array]] = {
    "small-signs": small_signs,
    "one-element": one_element,
    "off-by-one": off_by_one,
    "swapped-axis": swapped_axis,
    "denormals": flushed_denormals,
    "nan-to-zero": zero_for_nan,
}


def _double(values: Array) -> Array:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
