"""Calls an exported function in TensorFlow: by its operation XlaCallModule, into which jax2tf and Orbax put it.

With JAXEXPORT_SAVED_MODEL=1 in the environment the operation is first written to a SavedModel, which is loaded again
and called by its signature, as a server does. This file runs in TensorFlow's own environment, on CPython 3.10 or newer,
and imports nothing of this project.
"""

from __future__ import annotations

import inspect
import os
import re
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SIGNATURE = "serving_default"  # the signature that servers call unless another is named
# What TensorFlow puts before a message: where Python made the operation, which is always this file, and a number.
STACK = re.compile(
    r"\A((Graph execution error:|Detected at node |  File |<stack traces unavailable>)[^\n]*\n+)+"
    r"|{{function_node [^}]*}} "
)
UNREAD = re.compile("Cannot deserialize computation|is not supported by this build")


def warm() -> None:
    """Import the modules that every cell needs. This starts no thread: TensorFlow's start with its first tensor."""
    import tensorflow  # noqa: F401
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops  # noqa: F401


def start_ahead(client: bool) -> None:
    """Run a tiny function, so that TensorFlow registers its kernels and starts its threads before the cell arrives.

    This is done only if `client` is true, that is, in a spare process that will run one cell.
    """
    if client:
        import tensorflow as tf

        tf.function(lambda number: number + 1, autograph=False)(tf.constant(0))


def run(call: dict[str, Any], leaves: list[Any], stage: Callable[[str], None]) -> list[Any]:
    """Call a module, and return its outputs as NumPy arrays.

    Raises `NotImplementedError` for a dtype that TensorFlow lacks.
    """
    import tensorflow as tf

    # The cell ends without a clean-up: what TensorFlow writes goes with the folder of the module.
    tempfile.tempdir = str(Path(call["module"]).parent)
    stage("deserialize")  # What follows fails for what TensorFlow lacks, such as a dtype.
    inputs = [call["inputs"][place] for place in call["kept"]]
    types = [tensor_type(dtype) for dtype, _, _ in inputs]
    results = [tensor_type(dtype) for dtype, _, _ in call["outputs"]]
    arguments = [tf.constant(leaves[place]) for place in call["kept"]]
    function = operation(call, Path(call["module"]).read_bytes(), results)
    if os.environ.get("JAXEXPORT_SAVED_MODEL") == "1":
        shapes = [shape for _, shape, _ in inputs]
        function = saved_and_loaded(function, list(zip(types, shapes, strict=True)))
    else:
        function = tf.function(function, autograph=False)
    # One operation deserializes, lowers, compiles and runs; its error shows the stage it reached.
    stage("run")
    try:
        outputs = function(*arguments)
    except tf.errors.OpError as error:
        message = STACK.sub("", str(error))
        stage("deserialize" if UNREAD.search(message) else "run")
        raise type(error)(None, None, message) from None
    return [outputs[f"o{number}"].numpy() for number in range(len(results))]


def operation(call: dict[str, Any], module: bytes, results: list[Any]) -> Callable[..., dict[str, Any]]:
    """Return a function of tensors that calls the StableHLO module by the operation XlaCallModule.

    It returns its outputs by name (``o0``, ``o1``, …), as a signature must. `results` are TensorFlow's types of them.
    """
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    attributes = {
        "version": call["version"],
        "module": module,
        "Sout": [tf.TensorShape(shape) for _, shape, _ in call["outputs"]],
        "Tout": results,
        # XlaCallModule counts platforms in capitals, and passes the index of the one that it runs on by itself.
        "platforms": [platform.upper() for platform in call["platforms"]],
        "disabled_checks": call["disabled_checks"],
        "has_token_input_output": bool(call["tokens"]),
    }
    if "use_shardy_partitioner" in inspect.signature(gen_xla_ops.xla_call_module).parameters:  # since 2.20
        attributes["use_shardy_partitioner"] = call["shardy"]

    def function(*arguments: Any) -> dict[str, Any]:
        outputs = gen_xla_ops.xla_call_module(args=arguments, **attributes)
        return {f"o{number}": outputs[number] for number in range(len(results))}

    return function


def saved_and_loaded(function: Callable[..., dict[str, Any]], inputs: list[Any]) -> Callable[..., dict[str, Any]]:
    """Write a function to a SavedModel, load it again, and return a function that calls its signature.

    `inputs` are the (type, shape) of its arguments.
    """
    import tensorflow as tf

    specs = [tf.TensorSpec(shape, dtype, f"i{number}") for number, (dtype, shape) in enumerate(inputs)]
    module = tf.Module()
    module.function = tf.function(function, input_signature=specs, autograph=False)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={SIGNATURE: module.function})
        loaded = tf.saved_model.load(folder)
    # The caller refers to `loaded` too: a signature alone does not keep alive what it calls.
    return lambda *values: loaded.signatures[SIGNATURE](**{f"i{n}": value for n, value in enumerate(values)})


def tensor_type(dtype: str) -> Any:
    """Return TensorFlow's dtype for a dtype of NumPy. Raises `NotImplementedError` if TensorFlow has no such dtype."""
    import tensorflow as tf

    try:
        return tf.dtypes.as_dtype(dtype)
    except TypeError:
        raise NotImplementedError(f"TensorFlow {tf.__version__} has no dtype {dtype}") from None
