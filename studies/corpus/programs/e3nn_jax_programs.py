"""e3nn-jax: arrays with irreducible representations are pytrees."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.inputs import integers, normal

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


@pytest.mark.export_compat(vjp_order=1)
def test_equivariant_messages(export_golden):
    """Tensor products of features with spherical harmonics, summed over neighbours: 128 nodes, 512 edges."""
    senders, receivers = integers(0, 512, high=128), integers(1, 512, high=128)

    def layer(places, features):
        apart = places[receivers] - places[senders]
        sent = e3nn.IrrepsArray("8x0e + 4x1o", features)[senders]
        messages = e3nn.tensor_product(sent, harmonics(e3nn.IrrepsArray("1o", apart)), filter_ir_out=["0e", "1o"])
        return e3nn.scatter_sum(messages, dst=jnp.asarray(receivers), output_size=128).array[:, :32] / 2

    export_golden(jax.jit(layer), normal(0, 128, 3), normal(1, 128, 20))
