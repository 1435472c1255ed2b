"""BlackJAX: steps and short chains of samplers for a logistic regression of 128 observations and 16 weights."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.normal import normal

x, labels = normal(0, 128, 16), np.sign(normal(1, 128))


def density(w):
    return -jnp.sum(jax.nn.softplus(-labels * (x @ w))) - 0.5 * w @ w


@pytest.mark.export_compat
def test_nuts_step(export_golden):
    nuts = blackjax.nuts(density, step_size=0.05, inverse_mass_matrix=jnp.ones(16), max_num_doublings=4)

    def step(key, w):
        state, info = nuts.step(key, nuts.init(w))
        return state.position, state.logdensity, info.num_integration_steps, info.acceptance_rate

    export_golden(jax.jit(step), jax.random.key(1), normal(2, 16, scale=0.1))


@pytest.mark.export_compat
def test_hmc_chain(export_golden):
    hmc = blackjax.hmc(density, 0.02, jnp.ones(16), num_integration_steps=8)

    def chain(key, w):
        def one(state, key):
            state, info = hmc.step(key, state)
            return state, (state.position, info.is_accepted)

        return jax.lax.scan(one, hmc.init(w), jax.random.split(key, 8))[1]

    export_golden(jax.jit(chain), jax.random.key(2), normal(2, 16, scale=0.1))
