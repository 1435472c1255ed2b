"""Linear algebra in double precision, to decide whether factors make the same matrix. Leading axes are batches."""

from __future__ import annotations

import numpy as np

from export_core.goldens.arrays import Array

WORST_CONDITION = 100.0
"""Errors of eigenvectors grow by their condition number when the matrix is rebuilt. A larger growth is not allowed for
unless the user gives an rtol: it would accept anything of a matrix that is nearly defective."""


def to_double(values: Array) -> Array:
    """The values in double precision, real or complex, so that computing with them adds no errors that count."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def adjoint(matrix: Array) -> Array:
    """The conjugate transpose of each matrix."""
    return np.conj(np.swapaxes(matrix, -1, -2))


def gram(matrix: Array) -> Array:
    """A^H A, the inner products of the columns: the identity where they are orthonormal."""
    return adjoint(to_double(matrix)) @ to_double(matrix)


def largest(values: Array, axes: int) -> Array:
    """The largest finite magnitude over the last `axes` axes, 0 where there is none. Those axes stay, with size 1."""
    last = tuple(range(-axes, 0))
    magnitudes = np.abs(np.where(np.isfinite(values), values, 0))
    return np.asarray(magnitudes.max(axis=last, keepdims=True, initial=0.0), np.float64)


def permutation(pivots: Array, rows: int) -> Array:
    """The order of rows after the swaps of LAPACK's pivots, counted from 0.

    Pivots out of range are clipped: another comparison reports them, and this one must not crash before it does.
    """
    batch, steps = pivots.shape[:-1], pivots.shape[-1]
    chosen = np.clip(pivots, 0, max(rows - 1, 0)).astype(np.int64).reshape(int(np.prod(batch)), steps)
    order = np.tile(np.arange(rows), (len(chosen), 1))
    batches = np.arange(len(chosen))
    for step in range(steps):
        other = chosen[:, step]
        order[batches, other], order[:, step] = order[:, step].copy(), order[batches, other].copy()
    return order.reshape(*batch, rows)


def undo_permutation(matrix: Array, permuted: Array, axis: int) -> Array:
    """Put rows (axis -2) or columns (axis -1) back where they were before they were permuted."""
    order = np.argsort(permuted, axis=-1, kind="stable")
    return np.take_along_axis(matrix, order[..., None, :] if axis == -1 else order[..., None], axis)


def match_eigenvalues(expected: Array, actual: Array) -> Array:
    """For each expected eigenvalue the index of the actual one that belongs to it: the sum of distances is least.

    Sorting would not do: where real parts nearly tie, an error in the last place exchanges the members of conjugate
    pairs.
    """
    size = expected.shape[-1]
    order = np.tile(np.arange(size), (*expected.shape[:-1], 1))
    distances = np.abs(to_double(expected)[..., :, None] - to_double(actual)[..., None, :])
    finite = np.isfinite(distances)
    # Values that are not finite belong together. For other pairs with one, a distance that no sum of finite ones
    # reaches.
    distances = np.where(finite, distances, 4 * size * np.max(distances, initial=1.0, where=finite))
    both_not_finite = ~np.isfinite(expected)[..., :, None] & ~np.isfinite(actual)[..., None, :]
    distances = np.where(both_not_finite, 0.0, distances)
    for batch in np.ndindex(expected.shape[:-1]):
        # One at a time: scipy has no assignment for batches.
        order[batch] = _assignment(distances[batch])
    return order


def _assignment(distances: Array) -> Array:
    """For each row a column of its own, so that the sum of distances is least."""
    nearest = distances.argmin(axis=-1) if distances.size else np.arange(0)
    if len(np.unique(nearest)) == len(nearest):  # no sum is less, and importing scipy takes as long as five cells
        return nearest
    from scipy.optimize import linear_sum_assignment

    columns: Array = linear_sum_assignment(distances)[1]
    return columns


def condition_number(vectors: Array) -> Array:
    """Condition number of each matrix of vectors, at most WORST_CONDITION; it broadcasts with the matrices."""
    if vectors.size == 0:
        return np.ones((*vectors.shape[:-2], 1, 1))
    finite = np.isfinite(vectors).all(axis=(-2, -1), keepdims=True)
    condition = np.linalg.cond(np.where(finite, to_double(vectors), np.eye(vectors.shape[-1])))[..., None, None]
    return np.clip(np.where(np.isfinite(condition), condition, WORST_CONDITION), 1.0, WORST_CONDITION)


def matrix_from_eigen(values: Array, vectors: Array) -> Array:
    """V diag(w) V^-1; NaN where a vector is not finite.

    With the pseudo-inverse, since the vectors of a broken reader may be singular, and inv would raise.
    """
    if vectors.size == 0:
        return vectors
    finite = np.isfinite(vectors).all(axis=(-2, -1), keepdims=True)
    inverse = np.linalg.pinv(np.where(finite, to_double(vectors), 0.0), rcond=1e-15)
    return np.where(finite, (to_double(vectors) * to_double(values)[..., None, :]) @ inverse, np.nan)
