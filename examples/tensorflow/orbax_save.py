"""Write the function of the golden as a SavedModel with Orbax, from jax: `python orbax_save.py FOLDER`."""

import sys

import jax.numpy as jnp
import tensorflow as tf
from orbax.export import ExportManager, JaxModule, ServingConfig
from tests.test_scores import scores

weights = {"hidden": jnp.ones((4, 8)) / 4, "out": jnp.eye(8, 3)}
spec = tf.TensorSpec((2, 4), tf.float32, "input0")
config = ServingConfig("serving_default", input_signature=[spec])
ExportManager(JaxModule(weights, scores), [config]).save(sys.argv[1])
