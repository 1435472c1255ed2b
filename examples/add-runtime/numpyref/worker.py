"""The worker half of numpyref: it runs in an environment that has jaxlib and NumPy, and nothing of this package."""

import importlib
from pathlib import Path

NEEDED = ("numpy", "ml_dtypes", *(f"jaxlib.mlir.dialects.{name}" for name in ("builtin", "func", "stablehlo")))


def warm():
    """Import what every cell needs. It must start no thread."""
    for name in NEEDED:
        importlib.import_module(name)


def run(call, leaves, stage):
    """Evaluate `main` for these arrays. What is raised after the first stage is what numpyref says of the artifact."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    stage("deserialize")
    if call["devices"] > 1 or len(call["platforms"]) > 1 or call["tokens"]:
        raise ValueError("numpyref takes artifacts for one device of one platform, without ordered effects")
    arguments = [leaves[index] for index in call["kept"]]
    with ir.Context() as context:
        module = stablehlo.deserialize_portable_artifact(context, Path(call["module"]).read_bytes())
        (main,) = module.body.operations
        (block,) = main.body
        stage("run")
        values = dict(zip(block.arguments, arguments, strict=True))
        *operations, end = block.operations
        for operation in operations:
            values[operation.result] = evaluate(operation, [values[value] for value in operation.operands])
        return [values[value] for value in end.operands]


def evaluate(operation, inputs):
    """Return the result of one operation."""
    import numpy as np
    from jaxlib.mlir import ir

    functions = {"add": np.add, "multiply": np.multiply, "subtract": np.subtract, "tanh": np.tanh}
    name = operation.operation.name.removeprefix("stablehlo.")
    if name in functions:
        return functions[name](*inputs)
    if name == "constant":
        return np.array(operation.attributes["value"])
    if name == "broadcast_in_dim" and not inputs[0].shape:
        return np.broadcast_to(inputs[0], ir.RankedTensorType(operation.result.type).shape)
    raise NotImplementedError(f"numpyref has no operation {name}, or not in this form")
