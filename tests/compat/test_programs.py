"""Control flow, ordering and random numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


@pytest.mark.export_compat
def test_scan(export_golden, numbers):
    def step(carry, x):
        carry = jnp.tanh(carry + x)
        return carry, carry * 2

    export_golden(jax.jit(lambda init, xs: lax.scan(step, init, xs)), numbers(3), numbers(6, 3))


@pytest.mark.export_compat
def test_while(export_golden):
    def halve_until_small(x):
        return lax.while_loop(lambda state: state[0].max() > 0.1, lambda state: (state[0] / 2, state[1] + 1), (x, 0))

    export_golden(jax.jit(halve_until_small), np.array([3.0, 0.25], np.float32))


@pytest.mark.export_compat
def test_cond(export_golden, numbers):
    def choose(flag, x):
        return lax.cond(flag, jnp.sin, jnp.cos, x)

    for flag in (True, False):
        export_golden(jax.jit(choose), np.array(flag), numbers(4), name=str(flag).lower())


@pytest.mark.export_compat
def test_sort(export_golden, numbers):
    def sort(x, y):
        return lax.sort((x, y), num_keys=1, is_stable=True), jnp.argsort(y)

    export_golden(jax.jit(sort), numbers(9), np.arange(9, dtype=np.int32))


@pytest.mark.export_compat
def test_top_k(export_golden, numbers):
    export_golden(jax.jit(lambda x: tuple(lax.top_k(x, 3))), numbers(2, 7))


@pytest.mark.export_compat
def test_random(export_golden):
    def draw(key):
        first, second = jax.random.split(key)
        return jax.random.normal(first, (4,)), jax.random.uniform(second, (3,)), jax.random.permutation(key, 5), second

    export_golden(jax.jit(draw), jax.random.key(7))


@pytest.mark.export_compat
def test_special_functions(export_golden, numbers):
    def special(x):
        return jnp.cumsum(x), jax.scipy.special.erf(x), jnp.tan(x)

    export_golden(jax.jit(special), numbers(6))
