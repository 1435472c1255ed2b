"""Programs whose size matters: arrays of high rank, and long modules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


@pytest.mark.export_compat
def test_rank_8(export_golden, numbers):
    """jax issue 39257: a compiler crash. It needs millions of elements, which are made inside; `barrier` separates what is tested."""
    if jax.__version__ in ("0.10.2", "0.11.0"):
        pytest.skip(f"jax {jax.__version__} crashes when it runs the function itself")
    barrier = getattr(lax, "optimization_barrier", lambda x: x)
    shape = (10, 4, 6, 9, 9, 9, 9, 9)

    def f(weights, values):
        repeated = barrier(values[jnp.arange(np.prod(shape)) % len(values)].reshape(shape))
        summed = (weights[..., None, None, None, None, None] * repeated).sum(2)
        return barrier(jnp.log(jnp.maximum(summed, 2.2e-16)))[:, :, 0, 1, 2, 3]

    export_golden(jax.jit(f), abs(numbers(10, 4, 6)), abs(numbers(17)))


@pytest.mark.export_compat(constant=["result"])  # it converges
def test_long_module(export_golden, numbers):
    """Eight hundred operations in two hundred functions."""

    def layer(step):
        return jax.jit(lambda x: jnp.tanh(x * (1 + step / 1000)) + step % 3)

    def f(x):
        for step in range(200):
            x = layer(step)(x)
        return x

    export_golden(jax.jit(f), numbers(4))
