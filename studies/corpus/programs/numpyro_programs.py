"""NumPyro: a step of NUTS, the gradient of a density, a step of variational inference."""

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

from studies.corpus.programs.normal import normal

x, y = normal(0, 96, 8), normal(1, 96)


def regression(x, y):
    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    w = numpyro.sample("w", dist.Normal(0, scale).expand([8]).to_event(1))
    sigma = numpyro.sample("sigma", dist.InverseGamma(2.0, 1.0))
    with numpyro.plate("data", 96):
        numpyro.sample("y", dist.StudentT(4.0, x @ w, sigma), obs=y)


params = {"scale": np.float32(0.8), "w": normal(2, 8, scale=0.2), "sigma": np.float32(0.9)}


@pytest.mark.export_compat(vjp_order=1)
def test_density(export_golden):
    export_golden(jax.jit(lambda params, x, y: log_density(regression, (x, y), {}, params)[0]), params, x, y)


@pytest.mark.export_compat
def test_nuts_step(export_golden):
    def step(w, key):
        def potential(w):
            return 0.5 * jnp.sum((y - x @ w) ** 2) + 0.5 * w @ w

        start, kernel = hmc(potential, algo="NUTS")
        state = start(w, num_warmup=0, step_size=0.05, max_tree_depth=4, rng_key=key)
        state = kernel(state)
        return state.z, state.potential_energy, state.num_steps

    export_golden(jax.jit(step), normal(2, 8, scale=0.1), jax.random.key(1))


@pytest.mark.export_compat
def test_variational_step(export_golden):
    svi = SVI(regression, AutoNormal(regression), numpyro.optim.Adam(1e-2), Trace_ELBO(num_particles=4))
    export_golden(jax.jit(svi.update), svi.init(jax.random.key(0), x, y), x, y)
