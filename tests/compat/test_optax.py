"""Optax: states of optimizers are NamedTuples, within tuples."""

import jax
import numpy as np
import optax
import pytest

params = {"w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), "b": np.zeros(2, np.float32)}
x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
labels = np.array([0, 1, 1, 1], np.int32)


def loss(params, x, labels):
    return optax.softmax_cross_entropy_with_integer_labels(x @ params["w"] + params["b"], labels).mean()


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(loss), params, x, labels)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(lambda x, y: optax.huber_loss(x, y).sum(0)), x, x[::-1] / 2)


@pytest.mark.export_compat
def test_random_key(export_golden):
    def step(slope, key):
        noisy = optax.add_noise(eta=0.3, gamma=0.55, key=key)
        return noisy.update(slope, noisy.init(params))[0]

    export_golden(jax.jit(step), params, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes=(None, "b, 3", "b"))
def test_symbolic_batch(export_golden):
    export_golden(jax.jit(loss), params, x, labels).also(params, x[:3], labels[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.1, 1.0, 2, 9))
    )

    def step(params, state, x, labels):
        updates, state = optimizer.update(jax.grad(loss)(params, x, labels), state, params)
        return optax.apply_updates(params, updates), state

    export_golden(jax.jit(step), params, optimizer.init(params), x, labels)
