"""Distrax: distributions and bijectors, on TensorFlow Probability's JAX substrate."""

import distrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
loc = np.array([0.1, 0.2, 0.3], np.float32)


def density(loc, x):
    return distrax.MultivariateNormalDiag(loc, jnp.full(3, 0.5)).log_prob(x)


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(density), loc, x)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(density), loc, x)


@pytest.mark.export_compat
def test_random_key(export_golden):
    def draw(loc, key):
        flow = distrax.Transformed(distrax.Normal(loc, 1.0), distrax.Tanh())
        return flow.sample_and_log_prob(seed=key, sample_shape=(4,))

    export_golden(jax.jit(draw), loc, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes=(None, "b, 3"))
def test_symbolic_batch(export_golden):
    export_golden(jax.jit(density), loc, x).also(loc, x[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    policy = distrax.Categorical(logits=jnp.asarray(x))
    export_golden(jax.jit(lambda policy: policy.entropy()), policy)


@pytest.mark.export_compat
def test_leaves_as_arguments(export_golden):
    leaves, tree = jax.tree.flatten(distrax.Categorical(logits=jnp.asarray(x)))
    export_golden(jax.jit(lambda leaves: jax.tree.unflatten(tree, leaves).entropy()), leaves)
