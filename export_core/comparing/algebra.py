"""Linear algebra that tells whether factors make the same matrix, in double precision. Leading axes are batches."""

from __future__ import annotations

import numpy as np

from export_core.goldens.arrays import Array

WORST_CONDITION = 100.0
"""Errors of eigenvectors grow by their condition number when the matrix is rebuilt; by more than this nobody is believed unasked."""


def wide(values: Array) -> Array:
    """In double precision, so that what is compared has the errors of the factors and none of our own."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def adjoint(matrix: Array) -> Array:
    """The conjugate transpose of each matrix."""
    return np.conj(np.swapaxes(matrix, -1, -2))


def gram(matrix: Array) -> Array:
    """A^H A: what the columns have to do with each other; the identity where they are orthonormal."""
    return adjoint(wide(matrix)) @ wide(matrix)


def largest(values: Array, axes: int) -> Array:
    """The largest finite magnitude of each vector (1) or matrix (2) of a batch, with axes kept to broadcast."""
    last = tuple(range(-axes, 0))
    magnitudes = np.abs(np.where(np.isfinite(values), values, 0))
    return np.asarray(magnitudes.max(axis=last, keepdims=True, initial=0.0), np.float64)


def permutation(pivots: Array, rows: int) -> Array:
    """The order of rows after the swaps that LAPACK's pivots, counted from 0, ask for. Those out of range are taken for the nearest."""
    batch, steps = pivots.shape[:-1], pivots.shape[-1]
    chosen = np.clip(pivots, 0, max(rows - 1, 0)).astype(np.int64).reshape(int(np.prod(batch)), steps)
    order = np.tile(np.arange(rows), (len(chosen), 1))
    each = np.arange(len(chosen))
    for step in range(steps):
        other = chosen[:, step]
        order[each, other], order[:, step] = order[:, step].copy(), order[each, other].copy()
    return order.reshape(*batch, rows)


def unpermuted(matrix: Array, moved: Array, axis: int) -> Array:
    """Rows (axis -2) or columns (-1) back at the places that they were taken from."""
    order = np.argsort(moved, axis=-1, kind="stable")
    return np.take_along_axis(matrix, order[..., None, :] if axis == -1 else order[..., None], axis)


def nearest(expected: Array, actual: Array) -> Array:
    """For each expected eigenvalue the place of its own actual one: sorting would part conjugate pairs whose real parts nearly tie."""
    from scipy.optimize import linear_sum_assignment

    size = expected.shape[-1]
    order = np.tile(np.arange(size), (*expected.shape[:-1], 1))
    apart = np.abs(wide(expected)[..., :, None] - wide(actual)[..., None, :])
    finite = np.isfinite(apart)
    # What is not finite belongs to its like, and to any other place rather than to a number.
    apart = np.where(finite, apart, 4 * size * np.max(apart, initial=1.0, where=finite))
    like = ~np.isfinite(expected)[..., :, None] & ~np.isfinite(actual)[..., None, :]
    apart = np.where(like, 0.0, apart)
    for batch in np.ndindex(expected.shape[:-1]):
        order[batch] = linear_sum_assignment(apart[batch])[1]
    return order


def condition(vectors: Array) -> Array:
    """Condition number of each matrix of vectors, from 1 to WORST_CONDITION; WORST_CONDITION where it has none."""
    if vectors.size == 0:
        return np.ones((*vectors.shape[:-2], 1, 1))
    finite = np.isfinite(vectors).all(axis=(-2, -1), keepdims=True)
    found = np.linalg.cond(np.where(finite, wide(vectors), np.eye(vectors.shape[-1])))[..., None, None]
    return np.clip(np.where(np.isfinite(found), found, WORST_CONDITION), 1.0, WORST_CONDITION)


def rebuilt_from(values: Array, vectors: Array) -> Array:
    """V diag(w) V^-1; the pseudo-inverse, since what a broken reader answers may be singular. NaN where something is not finite."""
    if vectors.size == 0:
        return vectors
    finite = np.isfinite(vectors).all(axis=(-2, -1), keepdims=True)
    inverse = np.linalg.pinv(np.where(finite, wide(vectors), 0.0), rcond=1e-15)
    return np.where(finite, (wide(vectors) * wide(values)[..., None, :]) @ inverse, np.nan)
