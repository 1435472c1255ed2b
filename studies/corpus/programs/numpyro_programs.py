"""NumPyro: models with handlers, distributions as pytrees, states of samplers as NamedTuples."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.hmc import hmc
from numpyro.infer.util import log_density

from studies.corpus.programs.inputs import normal

x, y = normal(0, 96, 8), normal(1, 96)
params = {"scale": np.float32(0.8), "w": normal(2, 8, scale=0.2), "sigma": np.float32(0.9)}


def regression(x, y):
    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    w = numpyro.sample("w", dist.Normal(0, scale).expand([8]).to_event(1))
    sigma = numpyro.sample("sigma", dist.InverseGamma(2.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.StudentT(4.0, x @ w, sigma), obs=y)


def density(params, x, y):
    return log_density(regression, (x, y), {}, params)[0]


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(density), params, x, y)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(density), params, x, y)


@pytest.mark.export_compat
def test_random_key(export_golden):
    """A step of NUTS."""

    def step(w, key):
        def potential(w):
            return 0.5 * jnp.sum((y - x @ w) ** 2) + 0.5 * w @ w

        start, kernel = hmc(potential, algo="NUTS")
        state = start(w, num_warmup=0, step_size=0.05, max_tree_depth=4, rng_key=key)
        state = kernel(state)
        return state.z, state.potential_energy, state.num_steps

    export_golden(jax.jit(step), normal(2, 8, scale=0.1), jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes=(None, "b, 8", "b"))
def test_symbolic_batch(export_golden):
    export_golden(jax.jit(density), params, x, y).also(params, x[:50], y[:50])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    """A step of variational inference."""
    svi = SVI(regression, AutoNormal(regression), numpyro.optim.Adam(1e-2), Trace_ELBO(num_particles=4))
    export_golden(jax.jit(svi.update), svi.init(jax.random.key(0), x, y), x, y)


@pytest.mark.export_compat
def test_distribution_argument(export_golden):
    prior = dist.MultivariateNormal(jnp.zeros(3), jnp.eye(3))
    points = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    export_golden(jax.jit(lambda prior, x: prior.log_prob(x)), prior, points)
