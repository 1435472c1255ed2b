#!/usr/bin/env bash
# Expected: LiteRT gives NaN for the exponential and the logarithm of NaN, so that NaN of an input is seen in the
# output.
# It is so: exp(NaN) is 0, expm1(NaN) is -1, log(NaN) and log1p(NaN) are 88.78173, the logarithm of the largest float32.
# tanh, logistic and sqrt give NaN. The delegate XNNPACK does it, which the interpreter takes by default; without it
# (BUILTIN_WITHOUT_DEFAULT_DELEGATES) all give NaN. So logsumexp of numbers with a NaN is a number.
# Seen with litert-converter 0.5.0 and ai-edge-litert 2.3.0, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/nan.py" <<'PY'
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


NAMES = ("exponential", "exponential_minus_one", "log", "log_plus_one", "tanh", "logistic", "sqrt")
x = np.array([np.nan, 1, 2], np.float32)
found = {}
for name in NAMES:
    content = flatbuffer(name, x.size)
    resolvers = (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    found[name] = [str(round(float(call(content, x, resolver)[0]), 4)) for resolver in resolvers]
print("of NaN, by default and without delegates:", found)
lost = {"exponential": "0.0", "exponential_minus_one": "-1.0", "log": "88.7817", "log_plus_one": "88.7817"}
expected = {name: [lost.get(name, "nan"), "nan"] for name in NAMES}
if found != expected:
    sys.exit(f"expected of NaN {expected}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet litert-converter==0.5.0 ai-edge-litert==2.3.0 numpy==2.5.5
"$folder/venv/bin/python" "$folder/nan.py"
