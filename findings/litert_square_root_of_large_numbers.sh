#!/usr/bin/env bash
# Expected: LiteRT's square root of a float32 number is right to the last digits, as sqrt is an operation of IEEE 754.
# It is so: for numbers from 2**126 (8.5e37) on, the result is 1.5 times what it should be, and so is that of rsqrt;
# below, both are right. The delegate XNNPACK does it, which the interpreter takes by default. Without it
# (BUILTIN_WITHOUT_DEFAULT_DELEGATES) they are right.
# Seen with litert-converter 0.5.0 and ai-edge-litert 2.3.0, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/root.py" <<'PY'
import importlib.metadata
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from litert_converter.mlir import ir, passmanager
from litert_converter.mlir._mlir_libs import converter_api_ext as converter
from litert_converter.mlir.dialects import builtin, func, stablehlo  # noqa: F401

print({name: importlib.metadata.version(name) for name in ("litert-converter", "ai-edge-litert")})


def flatbuffer(operation, size):
    context = ir.Context()
    converter.prepare_mlir_context(context)
    kind = f"tensor<{size}xf32>"
    with context:
        body = f"%y = stablehlo.{operation} %x : {kind} return %y : {kind}"
        module = ir.Module.parse(f"func.func @main(%x: {kind}) -> {kind} {{ {body} }}")
        (main,) = module.body.operations
        converter.set_signature(main.operation, signature_name="f", input_names=["x"], output_names=["y"])
        converter.run_convert_to_tfl_passes(module, passmanager.PassManager(), converter.ConvertToTFLConfig())
        return bytes(converter.export_flatbuffer_to_bytes(module.operation))


def call(content, x, resolver):
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    return interpreter.get_signature_runner("f")(x=x)["y"]


x = np.array([4, 2.0**125, 2.0**126 * (1 - 2.0**-24), 2.0**126, 3e38], np.float32)
found = {}
for name, due in {"sqrt": np.sqrt(x), "rsqrt": 1 / np.sqrt(x)}.items():
    content = flatbuffer(name, x.size)
    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        found[name, resolver.name] = [round(float(r), 2) for r in call(content, x, resolver) / due]
        print(f"{name} {resolver.name} of {x} are {found[name, resolver.name]} times what is due")
for (name, resolver), times in found.items():
    expected = [1.0, 1.0, 1.0, 1.5, 1.5] if resolver == "AUTO" else [1.0] * 5
    if times != expected:
        sys.exit(f"expected {name} by {resolver} to be {expected} times what is due, found {times}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet litert-converter==0.5.0 ai-edge-litert==2.3.0 numpy==2.5.5
"$folder/venv/bin/python" "$folder/root.py"
