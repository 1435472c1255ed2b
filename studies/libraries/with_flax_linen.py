"""Flax Linen: parameters are dicts of dicts, and the state of training a dataclass."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax.training.train_state import TrainState

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
y = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x, *, training=False):
        x = nn.gelu(nn.LayerNorm()(nn.Dense(8)(x)))
        return nn.Dense(2)(nn.Dropout(0.5, deterministic=not training)(x))


model = Mlp()


@pytest.fixture(scope="module")
def variables():
    return model.init(jax.random.key(0), x)


@pytest.mark.export_compat
def test_forward(export_golden, variables):
    export_golden(jax.jit(model.apply), variables, x)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden, variables):
    export_golden(jax.jit(model.apply), variables, x)


@pytest.mark.export_compat
def test_random_key(export_golden, variables):
    def train(variables, x, key):
        return model.apply(variables, x, training=True, rngs={"dropout": key})

    export_golden(jax.jit(train), variables, x, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes="b, 3")
def test_symbolic_batch(export_golden, variables):
    export_golden(jax.jit(lambda x: model.apply(variables, x)), x).also(x[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden, variables):
    def step(state, x, y):
        slope = jax.grad(lambda p: jnp.mean((state.apply_fn({"params": p}, x) - y) ** 2))(state.params)
        return state.apply_gradients(grads=slope)

    state = TrainState.create(apply_fn=model.apply, params=variables["params"], tx=optax.adam(1e-2))
    export_golden(jax.jit(step, donate_argnums=0), state, x, y)
