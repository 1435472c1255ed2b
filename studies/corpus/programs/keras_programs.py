"""Keras on JAX: `stateless_call` takes lists of variables. A small network, a convolutional and a recurrent one."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
import pytest

from studies.corpus.programs.inputs import integers, normal

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def sequential(layers):
    keras.utils.set_random_seed(0)
    return keras.Sequential(layers)


def variables_of(model):
    both = model.trainable_variables, model.non_trainable_variables
    return [[variable.value for variable in variables] for variables in both]


@pytest.fixture(scope="module")
def model():
    layers = [keras.layers.Dense(8, activation="gelu"), keras.layers.LayerNormalization(), keras.layers.Dense(2)]
    return sequential([keras.Input((3,)), *layers])


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
    export_golden(jax.jit(model.stateless_call), *variables_of(model), x)


@pytest.mark.export_compat
def test_convolutional_network(export_golden):
    layers = keras.layers
    stack = [
        *(keras.Input((28, 28, 1)), layers.Conv2D(16, 3, activation="relu"), layers.BatchNormalization()),
        *(layers.MaxPooling2D(), layers.SeparableConv2D(16, 3), layers.GlobalAveragePooling2D(), layers.Dense(10)),
    ]
    model = sequential(stack)
    called = jax.jit(lambda *arguments: model.stateless_call(*arguments)[0])
    export_golden(called, *variables_of(model), normal(0, 8, 28, 28, 1))


@pytest.mark.export_compat
def test_recurrent_network(export_golden):
    layers = keras.layers
    stack = [
        *(keras.Input((40,), dtype="int32"), layers.Embedding(200, 16)),
        *(layers.Bidirectional(layers.GRU(16)), layers.Dense(3, activation="softmax")),
    ]
    model = sequential(stack)
    called = jax.jit(lambda *arguments: model.stateless_call(*arguments)[0])
    export_golden(called, *variables_of(model), integers(0, 8, 40, high=200))
