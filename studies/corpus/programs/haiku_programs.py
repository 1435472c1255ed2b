"""Haiku: pure functions of dicts of parameters; a block of its ResNet, and a transformer's."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.inputs import normal

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
y = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)


def network(x, training=False):
    x = hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)(jax.nn.gelu(hk.Linear(8)(x)))
    return hk.Linear(2)(hk.dropout(hk.next_rng_key(), 0.5, x) if training else x)


model = hk.transform(network)
stateless = hk.without_apply_rng(model)


@pytest.fixture(scope="module")
def params():
    return model.init(jax.random.key(0), x)


@pytest.mark.export_compat
def test_forward(export_golden, params):
    export_golden(jax.jit(lambda x: stateless.apply(params, x)), x)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden, params):
    export_golden(jax.jit(stateless.apply), params, x)


@pytest.mark.export_compat
def test_random_key(export_golden, params):
    export_golden(jax.jit(lambda params, key, x: model.apply(params, key, x, True)), params, jax.random.key(1), x)


@pytest.mark.export_compat(symbolic_shapes="b, 3")
def test_symbolic_batch(export_golden, params):
    export_golden(jax.jit(lambda x: stateless.apply(params, x)), x).also(x[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden, params):
    def step(params, x, y):
        slope = jax.grad(lambda p: jnp.mean((stateless.apply(p, x) - y) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, slope)

    export_golden(jax.jit(step), params, x, y)


@pytest.mark.export_compat
def test_resnet_block(export_golden):
    def block(x):
        return hk.nets.ResNet.BlockGroup(
            16, 1, 2, {"create_scale": True, "create_offset": True, "decay_rate": 0.9}, False, False, True, "group"
        )(x, True, False)

    model, x = hk.without_apply_rng(hk.transform_with_state(block)), normal(0, 4, 16, 16, 16)
    params, state = model.init(jax.random.PRNGKey(0), x)
    export_golden(jax.jit(model.apply), params, state, x)


@pytest.mark.export_compat(vjp_order=1)
def test_attention_block(export_golden):
    def block(x):
        norm = hk.LayerNorm(-1, create_scale=True, create_offset=True)(x)
        x = x + hk.MultiHeadAttention(8, 8, w_init=hk.initializers.VarianceScaling(1.0), model_size=64)(*[norm] * 3)
        return x + hk.nets.MLP([128, 64], activation=jax.nn.gelu)(hk.LayerNorm(-1, True, True)(x))

    model, x = hk.without_apply_rng(hk.transform(block)), normal(0, 1, 128, 64)
    params = model.init(jax.random.PRNGKey(0), x)
    export_golden(jax.jit(lambda x: model.apply(params, x)), x)
