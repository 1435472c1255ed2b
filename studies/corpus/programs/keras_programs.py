"""Keras on JAX: a convolutional network and a recurrent one, called with their variables."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import pytest

from studies.corpus.programs.normal import normal, whole


def export_model(export_golden, layers, x):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(layers)
    values = [[v.value for v in some] for some in (model.trainable_variables, model.non_trainable_variables)]
    export_golden(jax.jit(lambda *arguments: model.stateless_call(*arguments)[0]), *values, x)


@pytest.mark.export_compat
def test_convolutional_network(export_golden):
    layers = keras.layers
    stack = [
        *(keras.Input((28, 28, 1)), layers.Conv2D(16, 3, activation="relu"), layers.BatchNormalization()),
        *(layers.MaxPooling2D(), layers.SeparableConv2D(16, 3), layers.GlobalAveragePooling2D(), layers.Dense(10)),
    ]
    export_model(export_golden, stack, normal(0, 8, 28, 28, 1))


@pytest.mark.export_compat
def test_recurrent_network(export_golden):
    layers = keras.layers
    stack = [
        *(keras.Input((40,), dtype="int32"), layers.Embedding(200, 16)),
        *(layers.Bidirectional(layers.GRU(16)), layers.Dense(3, activation="softmax")),
    ]
    export_model(export_golden, stack, whole(0, 200, 8, 40))
