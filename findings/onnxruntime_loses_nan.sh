#!/usr/bin/env bash
# Expected: an ONNX model that jax2onnx makes of jnp.max and jnp.argmax gives NaN, and the place of the NaN, as jax
# does.
# It is so: onnxruntime's ReduceMax, ReduceMin, ArgMax and ArgMin pass over NaN: the maximum of 1, NaN, 3 is 3. Its Max
# of two arrays (jnp.maximum) and its ReduceSum keep NaN, so a check of a model's maximum sees no fault where its sum
# does. ONNX's text of these operators does not mention NaN. Ask jnp.isnan in the model, or test the sum.
# Seen with jax2onnx 0.17.1, onnxruntime 1.32.0 on a CPU, jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-11-29:
# measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/nan.py" <<'PY'
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from jax2onnx import to_onnx

print({name: importlib.metadata.version(name) for name in ("jax", "jax2onnx", "onnxruntime")})
x = np.array([1, np.nan, 3], np.float32)
programs = {
    "max": jnp.max,
    "min": jnp.min,
    "argmax": jnp.argmax,
    "argmin": jnp.argmin,
    "maximum": lambda x: jnp.maximum(x, 2.0),
    "sum": jnp.sum,
}
differ = {}
for name, program in programs.items():
    model = to_onnx(program, inputs=[jax.ShapeDtypeStruct(x.shape, x.dtype)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: x})
    by_jax = np.asarray(jax.jit(program)(x))
    print(f"{name}: jax {by_jax}, onnxruntime {found}, by {[node.op_type for node in model.graph.node]}")
    if not np.array_equal(by_jax, found, equal_nan=True):
        differ[name] = float(found)
if differ != {"max": 3.0, "min": 1.0, "argmax": 2.0, "argmin": 0.0}:
    sys.exit(f"expected the four reductions to pass over NaN, and nothing else, found {differ}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 jax2onnx==0.17.1 onnxruntime==1.32.0 onnx==1.23.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/nan.py"
