"""Calls an exported function in LiteRT: litert-converter converts it to a flatbuffer, which LiteRT's interpreter runs.

No TensorFlow is involved. This file runs in LiteRT's own environment, on CPython 3.10 or newer, and imports nothing of
this project.
"""

from __future__ import annotations

import os
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SIGNATURE = "serving_default"


def warm() -> None:
    """Import the modules that every cell needs. None of them starts a thread."""
    import ai_edge_litert.interpreter  # noqa: F401
    import ml_dtypes  # noqa: F401
    from litert_converter.mlir import ir, passmanager  # noqa: F401
    from litert_converter.mlir._mlir_libs import converter_api_ext  # noqa: F401
    from litert_converter.mlir.dialects import builtin, func, stablehlo  # noqa: F401


def start_ahead(client: bool) -> None:
    """Load the converter's MLIR dialects into a context that is thrown away, before the cell arrives.

    This is done only if `client` is true, that is, in a spare process that will run one cell.
    """
    if client:
        from litert_converter.mlir import ir
        from litert_converter.mlir._mlir_libs import converter_api_ext

        converter_api_ext.prepare_mlir_context(ir.Context())


def run(call: dict[str, Any], leaves: list[Any], stage: Callable[[str], None]) -> list[Any]:
    """Call a module, and return its outputs as NumPy arrays.

    Raises `NotImplementedError` if the module takes tokens, which LiteRT lacks.
    """
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter
    from ml_dtypes import int4

    stage("deserialize")  # What follows fails for what LiteRT lacks, such as tokens.
    if call["tokens"]:
        raise NotImplementedError("LiteRT has no tokens, with which jax orders the effects of this function")
    arguments = [leaves[place] for place in call["kept"]]
    # The interpreter's Python binding takes int4 as int8, and returns it so.
    arguments = [value.astype(np.int8) if value.dtype.name == "int4" else value for value in arguments]
    content = flatbuffer(call["module"], stage)
    stage("compile")
    interpreter = Interpreter(model_content=content, num_threads=1)
    runner = interpreter.get_signature_runner(SIGNATURE)
    taken = runner.get_input_details()  # the converter drops what is not used
    if len(call["platforms"]) > 1:
        # Such a module's first argument is the index of its platform: an int32, or int64 with jax_enable_x64.
        index = taken["i0"]["dtype"](call["platforms"].index("cpu")) if "i0" in taken else None
        arguments.insert(0, np.asarray(index))
    stage("run")
    outputs = runner(**{f"i{n}": value for n, value in enumerate(arguments) if f"i{n}" in taken})
    results = [np.asarray(outputs[f"o{number}"]) for number in range(len(call["outputs"]))]
    dtypes = [dtype for dtype, _, _ in call["outputs"]]
    return [value.astype(int4) if dtype == "int4" else value for value, dtype in zip(results, dtypes, strict=True)]


def flatbuffer(path: str, stage: Callable[[str], None]) -> bytes:
    """Convert a StableHLO portable artifact to a flatbuffer, and return it.

    The flatbuffer names inputs i0, i1, … and outputs o0, o1, …
    """
    from litert_converter.mlir import ir, passmanager
    from litert_converter.mlir._mlir_libs import converter_api_ext
    from litert_converter.mlir.dialects import stablehlo

    context = ir.Context()
    converter_api_ext.prepare_mlir_context(context)
    data = Path(path).read_bytes()
    with context:
        module = stablehlo.deserialize_portable_artifact(context, data)
        stage("lower")
        (main,) = (function for function in module.body.operations if function.attributes["sym_name"].value == "main")
        converter_api_ext.set_signature(
            main.operation,
            signature_name=SIGNATURE,
            input_names=[f"i{number}" for number in range(len(main.type.inputs))],
            output_names=[f"o{number}" for number in range(len(main.type.results))],
        )
        config = converter_api_ext.ConvertToTFLConfig()
        # Attributes that the name of the reader has, such as canonicalizing_inf_as_min_max_float=false.
        for setting in filter(None, os.environ.get("JAXEXPORT_READER_SETTINGS", "").split(";")):
            name, _, value = setting.partition("=")
            setattr(config, name, value == "true")
        converter_api_ext.run_convert_to_tfl_passes(module, passmanager.PassManager(), config)
        try:
            return bytes(converter_api_ext.export_flatbuffer_to_bytes(module.operation))
        except TypeError:  # litert-converter 0.1.0 takes the module itself
            return bytes(converter_api_ext.export_flatbuffer_to_bytes(module))
