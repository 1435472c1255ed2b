"""NumPyro: models with handlers, distributions as pytrees, states of samplers as NamedTuples."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
y = np.array([0.1, -0.3, 0.4, 0.2], np.float32)
params = {"w": np.array([0.1, 0.2, 0.3], np.float32), "sigma": np.float32(0.5)}


def regression(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(x @ w, sigma).to_event(1), obs=y)


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
    def posterior(key, x, y):
        mcmc = MCMC(NUTS(regression, max_tree_depth=3), num_warmup=4, num_samples=4, progress_bar=False)
        mcmc.run(key, x, y)
        return mcmc.get_samples()

    export_golden(jax.jit(posterior), jax.random.key(1), x, y)


@pytest.mark.export_compat(symbolic_shapes=(None, "b, 3", "b"))
def test_symbolic_batch(export_golden):
    export_golden(jax.jit(density), params, x, y).also(params, x[:3], y[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    svi = SVI(regression, AutoNormal(regression), numpyro.optim.Adam(1e-2), Trace_ELBO())
    state = svi.init(jax.random.key(0), x, y)
    export_golden(jax.jit(svi.update), state, x, y)


@pytest.mark.export_compat
def test_distribution_argument(export_golden):
    prior = dist.MultivariateNormal(jnp.zeros(3), jnp.eye(3))
    export_golden(jax.jit(lambda prior, x: prior.log_prob(x)), prior, x)
