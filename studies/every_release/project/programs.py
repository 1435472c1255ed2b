"""The small programs that each release writes and reads, which jax.experimental.export could export in 0.4.24."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def numbers(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.export_compat
def test_plain(export_golden):
    def layer(params, x):
        return {"y": jnp.sin(x @ params["w"]) + params["b"], "n": x.shape[0] * jnp.ones((), jnp.int32)}

    export_golden(jax.jit(layer), {"w": numbers(3, 4), "b": numbers(4)}, numbers(2, 3))


@pytest.mark.export_compat(vjp_order=2)
def test_vjp(export_golden):
    export_golden(jax.jit(lambda x, y: (x * jnp.cos(y)).sum(0)), numbers(2, 3), numbers(3))


@pytest.mark.export_compat(symbolic_shapes="b, 3", constraints=["b >= 2"])
def test_symbolic(export_golden):
    exported = export_golden(jax.jit(lambda x: x / x.shape[0] + jnp.arange(3.0)), numbers(4, 3))
    exported.also(numbers(2, 3))
    exported.refused(numbers(1, 3), match="b >= 2|b - 2|Expected '")


@pytest.mark.export_compat(platforms=["cpu", "tpu"])
def test_random_for_two_platforms(export_golden):
    def draw(seed):
        return jax.random.bits(jax.random.key(seed), (4,))

    export_golden(jax.jit(draw), np.uint32(7))
