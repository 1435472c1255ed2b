"""e3nn-jax: arrays with irreducible representations are pytrees."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

vectors = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3) + np.float32(0.1)


def harmonics(vectors):
    return e3nn.spherical_harmonics("0e + 1o + 2e", vectors, normalize=True)


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(lambda v: harmonics(e3nn.IrrepsArray("1o", v)).array), vectors)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(lambda v: harmonics(e3nn.IrrepsArray("1o", v)).array), vectors)


@pytest.mark.export_compat
def test_random_key(export_golden):
    export_golden(jax.jit(lambda key: e3nn.normal("2x0e + 1o", key, (4,)).array), jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes="b, 3")
def test_symbolic_batch(export_golden):
    export_golden(jax.jit(lambda v: harmonics(e3nn.IrrepsArray("1o", v)).array), vectors).also(vectors[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    def product(a, b):
        return e3nn.tensor_product(a, b).filter("0e + 1o")

    array = e3nn.IrrepsArray("1o", jnp.asarray(vectors))
    export_golden(jax.jit(product), array, harmonics(array))
