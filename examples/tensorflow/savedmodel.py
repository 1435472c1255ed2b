"""Wrap an exported function in a SavedModel, without jax: `python savedmodel.py ARTIFACT FOLDER`.

XlaCallModule is the operation that jax2tf and Orbax write. It takes the artifact's module as it is.
"""

import sys

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from export_core.artifact import read

exported = read(sys.argv[1]).envelope
kept = [exported.in_avals[index] for index in exported.module_kept_var_idx]
types = [tf.dtypes.as_dtype(aval.dtype) for aval in exported.out_avals]


def call(*arguments):
    found = gen_xla_ops.xla_call_module(
        args=arguments,
        version=exported.calling_convention_version,
        module=exported.module_source.copy(),
        Sout=[tf.TensorShape(aval.shape) for aval in exported.out_avals],
        Tout=types,
        platforms=[platform.upper() for platform in exported.platforms],
    )
    return {f"output{number}": found[number] for number in range(len(types))}


specs = [tf.TensorSpec(aval.shape, aval.dtype, f"input{number}") for number, aval in enumerate(kept)]
model = tf.Module()
model.call = tf.function(call, input_signature=specs, autograph=False)
tf.saved_model.save(model, sys.argv[2], signatures={"serving_default": model.call})
