"""The maker of tests/artifact/data/savedmodels, run by a Python that has TensorFlow, jax, Orbax and Keras.

    uv pip install tensorflow-cpu==2.21.0 'jax[cpu]==0.9.2' orbax-export==0.0.8 keras==3.15.1
    KERAS_BACKEND=jax python studies/artifact/saved_models.py tests/artifact/data/savedmodels

Only saved_model.pb of each model is stored, since variables are not read. A second run writes the same operations, but
not the same bytes, since TensorFlow numbers functions and orders maps anew.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def by_jax2tf(folder: str) -> None:
    """Write a model with two functions: `scores` for two platforms with a symbolic batch, `halves` with two results."""
    import jax
    import jax.numpy as jnp
    import tensorflow as tf
    from jax.experimental import jax2tf

    def scores(x: Any) -> Any:
        return jnp.tanh(x @ jnp.eye(4, 3))

    def halves(x: Any) -> Any:
        return x[:2] * 2, jax.lax.exp(x[2:])

    model = tf.Module()
    polymorphic = jax2tf.convert(scores, polymorphic_shapes=["(b, 4)"], native_serialization_platforms=["cpu", "tpu"])
    model.scores = tf.function(polymorphic, autograph=False, input_signature=[tf.TensorSpec((None, 4), tf.float32)])
    model.halves = tf.function(
        jax2tf.convert(halves, with_gradient=False), autograph=False, input_signature=[tf.TensorSpec((4,), tf.float32)]
    )
    tf.saved_model.save(model, folder, signatures={"scores": model.scores})


def by_orbax(folder: str) -> None:
    """Write a model with weights, which become arguments of its XlaCallModule operation."""
    import jax.numpy as jnp
    import tensorflow as tf
    from orbax.export import ExportManager, JaxModule, ServingConfig

    weights = {"hidden": jnp.ones((4, 8)) / 4, "out": jnp.eye(8, 3)}
    spec = tf.TensorSpec((2, 4), tf.float32, "x")
    config = ServingConfig("serving_default", input_signature=[spec])
    module = JaxModule(weights, lambda own, x: jnp.tanh(x @ own["hidden"]) @ own["out"])
    ExportManager(module, [config]).save(folder)


def by_keras(folder: str) -> None:
    """Write a Keras model that has jax as its backend."""
    import keras
    import numpy as np

    inputs = keras.Input((4,), batch_size=2)
    model = keras.Model(inputs, keras.layers.Dense(3, activation="relu")(inputs))
    model.set_weights([np.ones((4, 3), np.float32), np.zeros(3, np.float32)])
    model.export(folder, verbose=False)


def main(root: Path) -> None:
    """Write saved_model.pb of a model by each library, in a folder for each below `root`."""
    import jax

    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*")  # no paths of a machine in the modules
    for name, write in {"jax2tf": by_jax2tf, "orbax": by_orbax, "keras": by_keras}.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            write(folder)
            if whole := os.environ.get("KEEP_WHOLE"):
                import shutil

                shutil.copytree(folder, Path(whole) / name, dirs_exist_ok=True)
            (root / name / "saved_model.pb").write_bytes((Path(folder) / "saved_model.pb").read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
