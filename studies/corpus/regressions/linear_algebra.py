"""Calls into LAPACK and BLAS."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

SQUARE = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)


@pytest.mark.export_compat
def test_cholesky_in_a_new_process(right_golden):
    """A Cholesky factorization ends a process that only loads and calls the artifact.

    https://github.com/jax-ml/jax/issues/29610 (closed): bad up to 0.9.2.
    """
    right_golden(jnp.linalg.cholesky, SQUARE, right=np.linalg.cholesky(SQUARE))


@pytest.mark.export_compat
def test_inverse_in_a_new_process(right_golden):
    """A matrix inverse (an LU factorization) ends a process that only loads and calls the artifact.

    https://github.com/jax-ml/jax/issues/28908 (open): bad in May 2025, there with a compiled program.
    """
    inverse = np.linalg.inv(SQUARE)
    right_golden(lambda x: jnp.linalg.inv(x) + 1, SQUARE, right=inverse + 1)


@pytest.mark.export_compat
def test_batch_of_singular_triangles(right_golden):
    """The solution of a singular triangular system is 0 and 1 in a batch, and infinite without a batch.

    https://github.com/openxla/xla/issues/3891 (closed): bad in 2023, fixed in July 2024.
    """
    triangles, sides = np.array([[[1, 1], [0, 0]]], np.float32), np.ones((1, 2, 1), np.float32)
    right_golden(
        lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True),
        triangles,
        sides,
        right=np.array([[[-np.inf], [np.inf]]], np.float32),
    )


@pytest.mark.export_compat(compare="exact")
def test_batch_of_singular_matrices(right_golden):
    """The solution for singular matrices is finite in a batch.

    https://github.com/jax-ml/jax/issues/3589 (closed): bad in 2020.
    """
    singular = np.array([[[1, 2], [2, 4]]] * 2, np.float32)
    right_golden(
        lambda a, b: jnp.isfinite(jnp.linalg.solve(a, b)),
        singular,
        np.ones((2, 2, 1), np.float32),
        right=np.zeros((2, 2, 1), bool),
    )


@pytest.mark.export_compat(compare="exact")
def test_eigenvalues_of_nan(right_golden):
    """The eigenvalues of a matrix of NaN are an error, and not NaN.

    https://github.com/jax-ml/jax/issues/18226 (closed): bad in 0.4.13.
    """
    right_golden(lambda x: jnp.isnan(jnp.linalg.eig(x)[0]), np.full((3, 3), np.nan, np.float32), right=np.ones(3, bool))
