"""Equinox with Optax: attention, training steps with several optimizers, a batch norm's state, losses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from studies.corpus.programs.inputs import integers, normal


@pytest.mark.export_compat(vjp_order=1)
def test_attention(export_golden):
    layer = eqx.nn.MultiheadAttention(8, 64, key=jax.random.key(0))
    mask = np.tril(np.ones((128, 128), bool))
    export_golden(eqx.filter_jit(lambda x: layer(x, x, x, mask=mask)), normal(0, 128, 64))


@pytest.mark.export_compat
def test_training_step(export_golden):
    """A training step: gradient, clipping, a schedule, AdamW, and a moving average of the weights."""
    model = eqx.nn.MLP(32, 10, 64, 2, key=jax.random.key(0))
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 100)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule), optax.ema(0.9))

    @eqx.filter_jit
    def step(model, state, x, labels):
        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), labels).mean()

        value, slope = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(slope, state, eqx.filter(model, eqx.is_array))
        return value, eqx.apply_updates(model, updates), state

    state = optimizer.init(eqx.filter(model, eqx.is_array))
    export_golden(step, model, state, normal(0, 32, 32), integers(1, 32, high=10))


@pytest.mark.export_compat(vjp_order=1)
def test_convolutional_network(export_golden):
    keys = jax.random.split(jax.random.key(0), 3)
    layers = [
        *(eqx.nn.Conv2d(1, 8, 5, key=keys[0]), jax.nn.relu, eqx.nn.MaxPool2d(2, 2)),
        *(eqx.nn.Conv2d(8, 8, 3, key=keys[1]), jax.nn.relu, jnp.ravel, eqx.nn.Linear(800, 10, key=keys[2])),
    ]
    export_golden(
        eqx.filter_jit(
            jax.vmap(
                eqx.nn.Sequential(
                    [eqx.nn.Lambda(x) if callable(x) and not isinstance(x, eqx.Module) else x for x in layers]
                )
            )
        ),
        normal(0, 8, 1, 28, 28),
    )


@pytest.mark.export_compat
def test_many_optimizers(export_golden):
    """One step of each of several optimizers, for one matrix and one vector."""
    optimizers = [
        *(optax.adafactor(1e-2), optax.lion(1e-3), optax.lamb(1e-2), optax.rmsprop(1e-2), optax.adagrad(1e-1)),
        *(optax.novograd(1e-2), optax.yogi(1e-2), optax.sgd(0.1, momentum=0.9, nesterov=True), optax.lars(0.1)),
    ]
    params = {"w": normal(0, 64, 32), "b": normal(1, 32)}

    def steps(params, slope):
        return [each.update(slope, each.init(params), params)[0] for each in optimizers]

    export_golden(jax.jit(steps), params, jax.tree.map(lambda leaf: leaf[::-1] / 8, params))


@pytest.mark.export_compat(vjp_order=1)
def test_losses(export_golden):
    def losses(logits, other, labels, paddings):
        return (
            optax.ctc_loss(logits, paddings, labels, 0 * labels.astype(jnp.float32)),
            optax.kl_divergence(jax.nn.log_softmax(logits), jax.nn.softmax(other)),
            *(optax.huber_loss(logits, other), optax.cosine_similarity(logits, other)),
            optax.sigmoid_focal_loss(logits, jax.nn.sigmoid(other)),
        )

    labels, paddings = 1 + integers(2, 4, 10, high=15), np.zeros((4, 40), np.float32)
    export_golden(jax.jit(losses), normal(0, 4, 40, 16), normal(1, 4, 40, 16), labels, paddings)
