"""Flax Linen: parameters are dicts of dicts, and the state of training a dataclass. Small and of real sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax.training.train_state import TrainState

from studies.corpus.programs.inputs import integers, normal

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


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        out = nn.Conv(16, (3, 3), (2, 2), use_bias=False)(x)
        out = nn.relu(nn.BatchNorm(use_running_average=not train)(out))
        out = nn.BatchNorm(use_running_average=not train)(nn.Conv(16, (3, 3), use_bias=False)(out))
        return nn.relu(out + nn.Conv(16, (1, 1), (2, 2))(x))


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(100, 32)(tokens)
        x = x + nn.SelfAttention(4)(nn.LayerNorm()(x))
        x = x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))
        return nn.Dense(100)(x)


@pytest.mark.export_compat(vjp_order=1)
def test_resnet_block(export_golden):
    x = normal(0, 4, 16, 16, 16)
    export_golden(jax.jit(Block().apply), Block().init(jax.random.key(0), x), x)


@pytest.mark.export_compat
def test_training_block(export_golden):
    """A training step of a block, which also returns new statistics."""
    x = normal(0, 4, 16, 16, 16)

    def train(variables, x):
        return Block().apply(variables, x, train=True, mutable=["batch_stats"])

    export_golden(jax.jit(train), Block().init(jax.random.key(0), x), x)


@pytest.mark.export_compat
def test_transformer_training_step(export_golden):
    model, optimizer = Encoder(), optax.adamw(1e-3, weight_decay=0.01)
    tokens = integers(0, 4, 64, high=100)
    params = model.init(jax.random.key(0), tokens)["params"]

    def step(params, state, tokens):
        def loss(params):
            logits = model.apply({"params": params}, tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        value, slope = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(slope, state, params)
        return value, optax.apply_updates(params, updates), state

    export_golden(jax.jit(step), params, optimizer.init(params), tokens)


@pytest.mark.export_compat(vjp_order=1)
def test_lstm(export_golden):
    model = nn.RNN(nn.OptimizedLSTMCell(32))
    x = normal(0, 8, 40, 16)
    export_golden(jax.jit(model.apply), model.init(jax.random.key(0), x), x)


@pytest.mark.export_compat(vjp_order=1)
def test_attention(export_golden):
    """Attention with eight heads on 128 positions of 64 numbers."""
    layer, x = nn.MultiHeadDotProductAttention(8), normal(0, 1, 128, 64)
    params = layer.init(jax.random.key(0), x)
    export_golden(jax.jit(lambda x: layer.apply(params, x, mask=nn.make_causal_mask(jnp.ones((1, 128))))), x)
