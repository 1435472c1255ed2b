"""BlackJAX: samplers whose states and informations are NamedTuples."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

start = {"loc": np.float32(0.3), "scale": np.float32(0.8)}
data = np.linspace(-1, 1, 8, dtype=np.float32)


def density(position, data=data):
    scale = jnp.exp(position["scale"])
    return jnp.sum(jax.scipy.stats.norm.logpdf(data, position["loc"], scale)) - scale


nuts = blackjax.nuts(density, step_size=0.2, inverse_mass_matrix=jnp.ones(2), max_num_doublings=3)


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(lambda position: nuts.init(position).logdensity_grad), start)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(lambda position: nuts.init(position).logdensity), start)


@pytest.mark.export_compat
def test_random_key(export_golden):
    def chain(key, position):
        def one(state, key):
            state, _ = nuts.step(key, state)
            return state, state.position

        return jax.lax.scan(one, nuts.init(position), jax.random.split(key, 4))[1]

    export_golden(jax.jit(chain), jax.random.key(1), start)


@pytest.mark.export_compat(symbolic_shapes=(None, "b"))
def test_symbolic_batch(export_golden):
    def step(key, data):
        hmc = blackjax.hmc(lambda p: density(p, data), 0.1, jnp.ones(2), num_integration_steps=3)
        return hmc.step(key, hmc.init(start))[0].position

    key = jax.random.key(1)
    export_golden(jax.jit(step), key, data).also(key, data[:5])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    export_golden(jax.jit(nuts.step), jax.random.key(1), nuts.init(start))
