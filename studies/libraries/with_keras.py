"""Keras on JAX: `stateless_call` takes lists of variables."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
import pytest

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(8, activation="gelu"), keras.layers.LayerNormalization(), keras.layers.Dense(2)]
    return keras.Sequential([keras.Input((3,)), *layers])


@pytest.mark.export_compat
def test_forward(export_golden, model):
    export_golden(jax.jit(lambda x: model(x)), x)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden, model):
    export_golden(jax.jit(lambda x: model(x)), x)


@pytest.mark.export_compat
def test_random_key(export_golden, model):
    dropout = keras.layers.Dropout(0.5, seed=1)
    dropout.build((None, 2))

    def train(state, x):
        return dropout.stateless_call([], state, model(x), training=True)

    export_golden(jax.jit(train), [v.value for v in dropout.non_trainable_variables], x)


@pytest.mark.export_compat(symbolic_shapes="b, 3")
def test_symbolic_batch(export_golden, model):
    export_golden(jax.jit(lambda x: model(x)), x).also(x[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden, model):
    def values(variables):
        return [variable.value for variable in variables]

    export_golden(
        jax.jit(model.stateless_call), values(model.trainable_variables), values(model.non_trainable_variables), x
    )
