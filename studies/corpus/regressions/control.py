"""Loops, sorts and reductions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from studies.corpus.regressions.dying import dies_in

UP_TO_0_8_0 = (
    *("0.4.30", "0.4.31", "0.4.33", "0.4.34", "0.4.35", "0.4.36", "0.4.38", "0.5.0", "0.5.1", "0.5.3"),
    *("0.6.0", "0.6.1", "0.6.2", "0.7.0", "0.7.1", "0.7.2", "0.8.0"),
)


@dies_in(*UP_TO_0_8_0)
@pytest.mark.export_compat
def test_loop_in_a_loop(right_golden):
    """An empty loop inside another loop ends the process.

    https://github.com/jax-ml/jax/issues/33348 (closed): bad in 0.8.0.
    """

    def loops(start):
        def body(x):
            lax.fori_loop(0, 3, lambda i, state: state, 0)
            return jnp.zeros_like(x)

        zeros = jnp.array([0, 0])
        return lax.while_loop(lambda x: jnp.any(x != zeros), body, zeros) + start

    right_golden(loops, np.arange(2, dtype=np.int32), right=np.arange(2, dtype=np.int32))


@pytest.mark.export_compat
def test_floor_division_in_a_loop(right_golden):
    """Floor division in a loop rounds towards zero.

    https://github.com/jax-ml/jax/issues/9604 (closed): bad in February 2022.
    """
    right_golden(
        lambda x: lax.fori_loop(1, 3, lambda i, value: jnp.floor_divide(value, x[i]), x[0]),
        np.array([2, 2, -3], np.int32),
        right=np.int32(-1),
    )


@pytest.mark.export_compat
def test_condition_in_a_scan(right_golden):
    """The gradient through steps under a condition in a scan is three times too large.

    https://github.com/jax-ml/jax/issues/5900 (closed): bad in jaxlib 0.1.61.
    """

    def power(x):
        def step(carry, _):
            value, condition = carry
            return lax.cond(condition, lambda v: (v * x, True), lambda v: (v, False), value), None

        return lax.scan(step, (jnp.ones_like(x), True), None, length=4)[0][0]

    right_golden(jax.value_and_grad(power), np.float32(3), right=(np.float32(81), np.float32(108)))


@pytest.mark.export_compat
def test_sort_of_17_arrays(right_golden):
    """A sort of 17 arrays fails as not supported.

    https://github.com/jax-ml/jax/issues/23727 (closed): bad in 0.4.33, good in 0.4.31.
    """
    keys = (np.arange(34).reshape(17, 2) * 7 % 5).astype(np.int32)
    right_golden(lambda keys: jnp.lexsort(list(keys)), keys, right=np.lexsort(keys).astype(np.int32))


@pytest.mark.export_compat
def test_sort_by_16_floats(right_golden):
    """A sort by 16 arrays of floats fails as not supported.

    https://github.com/jax-ml/jax/issues/23757 (closed): bad in 0.4.33, good in 0.4.31.
    """
    right_golden(jnp.lexsort, np.zeros((16, 2), np.float32), right=np.arange(2, dtype=np.int32))


@pytest.mark.export_compat
def test_sort_of_a_permutation(right_golden, x64):
    """Inverting a permutation by a sort does not compile with 64-bit numbers.

    https://github.com/jax-ml/jax/issues/34096 (open): bad in 0.8.2, good in 0.8.1.
    """

    def there_and_back(x):
        order = jnp.argsort(x)
        return x[order][jnp.argsort(order)]

    x = np.array([3, 1, 2, 0, 5, 4, 9, 8, 7, 6])
    right_golden(there_and_back, x, right=x)


@pytest.mark.export_compat
def test_reduction_of_an_int16(right_golden):
    """The maximum of an array with one int16 ends the process.

    https://github.com/jax-ml/jax/issues/4971 (closed): bad in November 2020.
    """
    right_golden(
        lambda x: lax.reduce(np.int16(3), np.int16(0), lax.max, ()) + x,
        np.arange(2, dtype=np.int16),
        right=np.array([3, 4], np.int16),
    )


@pytest.mark.export_compat
def test_int4_made_int8(right_golden):
    """Negative int4 numbers become positive when they are converted to int8.

    https://github.com/jax-ml/jax/issues/17672 (closed): bad in 0.4.14.
    """
    x = np.arange(-8, 8)
    right_golden(lambda x: x.astype(jnp.int8), x.astype(jnp.int4), right=x.astype(np.int8))
