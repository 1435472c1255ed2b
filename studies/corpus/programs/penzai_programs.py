"""Penzai: models are pytrees of dataclasses, with named axes and variables."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from penzai import pz
from penzai.models import simple_mlp

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(scope="module")
def model():
    mlp = simple_mlp.MLP.from_config(jax.random.key(0), [3, 8, 2])
    return pz.freeze_params(mlp)


def call(model, x):
    return model(pz.nx.wrap(x).tag("batch", "features")).unwrap("batch", "features")


@pytest.mark.export_compat
def test_forward(export_golden, model):
    export_golden(jax.jit(lambda x: call(model, x)), x)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden, model):
    export_golden(jax.jit(lambda x: call(model, x)), x)


@pytest.mark.export_compat
def test_random_key(export_golden, model):
    def train(x, key):
        dropout = pz.nn.StochasticDropout(0.5)
        out = pz.nx.wrap(call(model, x)).tag("batch", "features")
        return dropout(out, random_stream=pz.RandomStream.from_base_key(key)).unwrap("batch", "features")

    export_golden(jax.jit(train), x, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes="b, 3")
def test_symbolic_batch(export_golden, model):
    export_golden(jax.jit(lambda x: call(model, x)), x).also(x[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden, model):
    def slope(model, x):
        return jax.grad(lambda m: jnp.mean(call(m, x) ** 2))(model)

    export_golden(jax.jit(slope), model, x)
