"""Load a SavedModel as a server does, and call its signature with ones: `python serve.py FOLDER`."""

import sys

import tensorflow as tf

model = tf.saved_model.load(sys.argv[1])
signature = model.signatures["serving_default"]
inputs = signature.structured_input_signature[1].items()
for name, value in signature(**{name: tf.ones(spec.shape, spec.dtype) for name, spec in inputs}).items():
    print(name, value.shape, value.numpy().round(3).tolist())
