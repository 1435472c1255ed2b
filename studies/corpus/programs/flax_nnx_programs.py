"""Flax NNX: modules are mutable Python objects, and `nnx.jit` is its `jax.jit`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
y = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)


class Mlp(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(3, 8, rngs=rngs)
        self.norm = nnx.LayerNorm(8, rngs=rngs)
        self.out = nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, x):
        return self.out(nnx.gelu(self.norm(self.hidden(x))))


@pytest.fixture
def model():
    return Mlp(nnx.Rngs(0))


@pytest.mark.export_compat
def test_forward(export_golden, model):
    graph, state = nnx.split(model)
    export_golden(jax.jit(lambda x: nnx.merge(graph, state)(x)), x)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden, model):
    graph, state = nnx.split(model)
    export_golden(jax.jit(lambda x: nnx.merge(graph, state)(x)), x)


@pytest.mark.export_compat
def test_random_key(export_golden, model):
    graph, state = nnx.split(model)

    def train(x, key):
        return nnx.Dropout(0.5, rngs=nnx.Rngs(dropout=key))(nnx.merge(graph, state)(x))

    export_golden(nnx.jit(train), x, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes="b, 3")
def test_symbolic_batch(export_golden, model):
    graph, state = nnx.split(model)
    export_golden(jax.jit(lambda x: nnx.merge(graph, state)(x)), x).also(x[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden, model):
    @nnx.jit
    def loss_and_slope(model, x, y):
        return nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)

    export_golden(loss_and_slope, model, x, y)
