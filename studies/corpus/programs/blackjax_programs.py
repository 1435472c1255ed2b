"""BlackJAX: samplers for a logistic regression; their states and informations are NamedTuples."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.inputs import normal

x, labels = normal(0, 128, 16), np.sign(normal(1, 128))
start = normal(2, 16, scale=0.1)


def density(w, x=x, labels=labels):
    return -jnp.sum(jax.nn.softplus(-labels * (x @ w))) - 0.5 * w @ w


nuts = blackjax.nuts(density, step_size=0.05, inverse_mass_matrix=jnp.ones(16), max_num_doublings=4)


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(lambda w: nuts.init(w).logdensity_grad), start)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(lambda w: nuts.init(w).logdensity), start)


@pytest.mark.export_compat
def test_random_key(export_golden):
    hmc = blackjax.hmc(density, 0.02, jnp.ones(16), num_integration_steps=8)

    def chain(key, w):
        def one(state, key):
            state, info = hmc.step(key, state)
            return state, (state.position, info.is_accepted)

        return jax.lax.scan(one, hmc.init(w), jax.random.split(key, 8))[1]

    export_golden(jax.jit(chain), jax.random.key(2), start)


@pytest.mark.export_compat(symbolic_shapes=(None, "b, 16", "b"))
def test_symbolic_batch(export_golden):
    def step(key, x, labels):
        hmc = blackjax.hmc(lambda w: density(w, x, labels), 0.02, jnp.ones(16), num_integration_steps=3)
        return hmc.step(key, hmc.init(start))[0].position

    key = jax.random.key(1)
    export_golden(jax.jit(step), key, x, labels).also(key, x[:80], labels[:80])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    export_golden(jax.jit(nuts.step), jax.random.key(1), nuts.init(start))
