"""Equinox: modules are pytrees with static fields, and `filter_jit` is its `jax.jit`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
y = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(scope="module")
def model():
    return eqx.nn.MLP(in_size=3, out_size=2, width_size=8, depth=2, key=jax.random.key(0))


@pytest.mark.export_compat
def test_forward(export_golden, model):
    export_golden(eqx.filter_jit(lambda x: jax.vmap(model)(x)), x)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden, model):
    export_golden(eqx.filter_jit(lambda x: jax.vmap(model)(x)), x)


@pytest.mark.export_compat
def test_random_key(export_golden, model):
    def train(x, key):
        return eqx.nn.Dropout(0.5)(jax.vmap(model)(x), key=key)

    export_golden(eqx.filter_jit(train), x, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes="b, 3")
def test_symbolic_batch(export_golden, model):
    export_golden(eqx.filter_jit(lambda x: jax.vmap(model)(x)), x).also(x[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden, model):
    @eqx.filter_jit
    def step(model, x, y):
        loss, slope = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        return loss, eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, slope))

    export_golden(step, model, x, y)
