"""Products, sums and functions of elements that XLA's CPU compiler fuses or vectorizes."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from studies.corpus.regressions.dying import dies_in

NUMBERS = np.random.RandomState(22)


def uniform(*shape):
    return NUMBERS.uniform(0.5, 1.5, shape).astype(np.float32)


@dies_in("0.10.2", "0.11.0")
@pytest.mark.export_compat
def test_rank_8_product_summed(right_golden):
    """A sum over a product of rank 8 ends the process.

    https://github.com/jax-ml/jax/issues/39257 (closed): bad in 0.10.2 and 0.11.0.
    """
    shape = (10, 4, 6, 9, 9, 9, 9, 9)  # fewer elements do not show it
    apart = getattr(lax, "optimization_barrier", lambda x: x)  # what is tested, from what makes its argument

    def summed(a):
        b = apart((jnp.arange(math.prod(shape)) % 7 + 1).astype(np.float32).reshape(shape))
        return apart(jnp.sum(a[..., None, None, None, None, None] * b, axis=2))[:, :, 0, 1, 2, 3]

    a = uniform(10, 4, 6)
    b = (np.arange(math.prod(shape)) % 7 + 1).reshape(shape)[:, :, :, 0, 1, 2, 3]
    right_golden(summed, a, right=(a[..., None] * b).sum(2).astype(np.float32))


@dies_in("0.10.2")
@pytest.mark.export_compat
def test_rank_7_product_with_an_axis_of_one(right_golden):
    """A sum over a product of rank 7 that has an axis of size 1 ends the process.

    https://github.com/jax-ml/jax/issues/40412 (closed): bad in 0.10.2.
    """
    a, b = uniform(3, 1, 2, 2, 8, 8, 8), uniform(3, 1, 2, 2, 8, 8, 8)
    right_golden(lambda a, b: jnp.sum(a * b, axis=3), a, b, right=(a * b).sum(3))


@pytest.mark.export_compat
def test_rows_times_a_matrix(right_golden):
    """Products of a matrix and more than 32,768 rows, squared and summed, are wrong for the last row.

    https://github.com/jax-ml/jax/issues/39103 (closed): bad in 0.10.2.
    """
    rows = np.zeros((32_769, 3), np.float32)
    rows[:, 0] = np.arange(len(rows))
    right_golden(
        lambda rows, matrix: jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2))(rows),
        rows,
        np.eye(3, dtype=np.float32),
        right=rows[:, 0] ** 2,
    )


@pytest.mark.export_compat(rtol=1e-4)
def test_gradient_through_a_zero_matrix(right_golden):
    """A term that is zero changes the gradient if oneDNN computes the products.

    https://github.com/openxla/xla/issues/13054 (closed): bad in nightly builds of May 2024.
    """
    weights = np.array([1, 2, 3], np.float32)

    def mean(x, rows):
        def value(row):
            difference = row - x
            nothing = jnp.dot(jnp.dot(difference, jnp.zeros((3, 3))), difference)
            return jnp.dot(difference, weights) + nothing

        return jnp.mean(jax.vmap(value)(rows))

    right_golden(jax.grad(mean), np.ones(3, np.float32), np.full((4096, 3), 2, np.float32), right=-weights)


@pytest.mark.export_compat
def test_arctan_of_many(right_golden):
    """The arctangents of an array with 50 or more numbers are wrong.

    https://github.com/jax-ml/jax/issues/39352 (open): bad in 0.10.2; not on every processor.
    """
    x = np.linspace(-5, 5, 200).astype(np.float32) + np.float32(0.001)
    right_golden(jnp.arctan, x, right=np.arctan(x))


@pytest.mark.export_compat
def test_exp_of_nan_in_float64(right_golden, x64):
    """The exponential of a product with NaN gives a small number in float64, and not NaN.

    https://github.com/jax-ml/jax/issues/29537 (closed): bad in 0.6.2, good in 0.6.1.
    """
    x = np.float64(0.125)
    right_golden(lambda x: (jnp.exp(x * jnp.nan), x + 1), x, right=(np.float64(np.nan), x + 1))


@pytest.mark.export_compat(compare="exact")
def test_erf_of_one_and_of_two(right_golden):
    """The error function of a number depends on the size of its array.

    https://github.com/openxla/xla/issues/41122 (open): bad in 0.9.2.
    """
    one, two = np.full(1, 4.5, np.float32), np.full(2, 4.5, np.float32)
    right_golden(
        lambda one, two: (jnp.floor(jax.scipy.special.erf(one)), jnp.floor(jax.scipy.special.erf(two)), one + 1),
        one,
        two,
        right=(np.ones(1, np.float32), np.ones(2, np.float32), one + 1),
    )


@pytest.mark.export_compat
def test_rounding_error_in_bfloat16(right_golden):
    """The rounding error of a bfloat16 sum is computed as zero, since intermediate numbers keep more digits.

    https://github.com/jax-ml/jax/issues/23007 (open): bad in 0.4.31, of August 2024.
    """

    def lost(x, y):
        total = x + y
        of_y = total - x
        return (x - (total - of_y)) + (y - of_y)

    x = np.arange(4, 7).astype(jnp.bfloat16)
    y = (np.arange(3) / 1000).astype(jnp.bfloat16)
    right_golden(lost, x, y, right=y.astype(np.float32))
