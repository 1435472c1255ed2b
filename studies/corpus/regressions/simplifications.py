"""Pairs of functions that XLA simplifies to a result that is right for most numbers, and wrong for these."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

INF = np.float32(np.inf)


@pytest.mark.export_compat
def test_logarithm_of_exponential(right_golden):
    """log(exp(x)) gives x, though exp(x) overflows.

    https://github.com/openxla/xla/issues/42732 (closed): bad in April 2026.
    """
    x = np.array([88, 89, 200], np.float32)
    right_golden(lambda x: jnp.log(jnp.exp(x)), x, right=np.array([88, INF, INF]))


@pytest.mark.export_compat
def test_root_of_square(right_golden):
    """sqrt(abs(x ** 2)) gives abs(x), though x ** 2 overflows.

    https://github.com/jax-ml/jax/issues/37919 (closed): bad in May 2026.
    """
    x = np.array([np.finfo(np.float32).max, 2], np.float32)
    right_golden(lambda x: jnp.sqrt(jnp.abs(jnp.square(x))), x, right=np.array([INF, 2]))


@pytest.mark.export_compat
def test_logarithm_of_power_of_two(right_golden):
    """log2(exp2(x)) gives x, though exp2(x) overflows.

    https://github.com/jax-ml/jax/issues/38100 (closed): bad in June 2026.
    """
    x = np.array([128, 3], np.float32)
    right_golden(lambda x: jnp.log2(jnp.exp2(x)), x, right=np.array([INF, 3]))


@pytest.mark.export_compat
def test_gradient_of_logarithm_of_exponential(right_golden):
    """The gradient of log(exp(x)) is 1, though exp(x) overflows.

    https://github.com/jax-ml/jax/issues/38097 (closed): bad in June 2026.
    """
    x = np.array([89, 1], np.float32)
    right_golden(jax.grad(lambda x: jnp.sum(jnp.log(jnp.exp(x)))), x, right=np.array([np.nan, 1], np.float32))


@pytest.mark.export_compat
def test_angle_of_exclusive_or(right_golden):
    """The angle of the exclusive or of two equal masks is NaN.

    https://github.com/openxla/xla/issues/44705 (closed): bad in June 2026.
    """

    def angle(a):
        number = lax.convert_element_type(lax.bitwise_xor(lax.ne(a, 0), lax.ne(a, 0)), np.float32)
        return lax.atan2(number, number), a + 1

    a = np.arange(5, dtype=np.int32)
    right_golden(angle, a, right=(np.zeros(5, np.float32), a + 1))


@pytest.mark.export_compat(rtol=1e-4, atol=1e-6)
def test_penalty_that_cancels(right_golden):
    """A penalty of -0.0 erases the numbers that it is added to.

    https://github.com/jax-ml/jax/issues/6566 (closed): bad in 2021.
    """

    def masked(mask, scores):
        scores = scores + -1.0 * 1e30 * (1.0 - mask)
        return scores - scores.max()

    scores = np.array([0.75, 0.5], np.float32)
    right_golden(masked, np.float32(1), scores, right=np.array([0, -0.25], np.float32))


@pytest.mark.export_compat
def test_nan_times_zero(right_golden):
    """A NaN times zero is zero if the NaN is an output too.

    https://github.com/jax-ml/jax/issues/4780 (closed): bad in 2020.
    """

    def losses(values, mask):
        plain, masked = jnp.mean(values), jnp.mean(jnp.where(mask, jnp.nan, values))
        return plain, masked, plain + masked * 0.0

    nan = np.float32(np.nan)
    right_golden(losses, np.ones(2, np.float32), np.array([False, True]), right=(np.float32(1), nan, nan))


@pytest.mark.export_compat
def test_a_step_over_the_end(right_golden):
    """A loop with a step larger than its end never runs.

    https://github.com/openxla/xla/pull/48454 (open): bad in July 2026.
    """

    def loop(x):
        return lax.while_loop(lambda i: i < 1, lambda i: i + 2, 0) + x

    right_golden(loop, np.arange(2, dtype=np.int32), right=np.array([2, 3], np.int32))
