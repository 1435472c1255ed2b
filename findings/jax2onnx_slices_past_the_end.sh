#!/usr/bin/env bash
# Expected: lax.dynamic_slice has the size that it names in the ONNX model too: at a place too near to the end it begins
# earlier, which StableHLO's specification demands, as lax.dynamic_update_slice does.
# It is so: jax2onnx writes a plain Slice. Three of eight elements from place 6 on are two elements, though the model
# itself says [3]. From place 7 on it is one, which broadcasts: a weighted sum of the three is 48 and not 44, without an
# error. Past the end the slice is empty. dynamic_update_slice is right. Limit the place: jnp.clip(i, 0, x.shape[0] - 3).
# Seen with jax2onnx 0.17.1 (plugins/jax/lax/dynamic_slice.py), onnxruntime 1.32.0 on a CPU, jax and jaxlib 0.12.0.1,
# CPython 3.12, x86_64, on 2026-11-30: measured. jax2tf once lost it too: https://github.com/jax-ml/jax/issues/3621
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/slices.py" <<'PY'
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from jax import lax
from jax2onnx import to_onnx
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

print({name: importlib.metadata.version(name) for name in ("jax", "jax2onnx", "onnxruntime")})
x, weights = np.arange(1, 9, dtype=np.float32), np.array([1, 2, 3], np.float32)
programs = {
    "slice": lambda x, i: lax.dynamic_slice(x, (i,), (3,)),
    "weighted sum": lambda x, i: (lax.dynamic_slice(x, (i,), (3,)) * weights).sum(),
    "limited": lambda x, i: lax.dynamic_slice(x, (jnp.clip(i, 0, 5),), (3,)),
    "update": lambda x, i: lax.dynamic_update_slice(x, -weights, (i,)),
}
wrong = {}
for name, program in programs.items():
    model = to_onnx(program, inputs=[jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((), np.int32)])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # It warns that a shape is not the one that the model names.
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for place in (5, 6, 7, 9):
        by_jax = np.asarray(jax.jit(program)(x, place)).tolist()
        try:
            found = session.run(None, {"in_0": x, "in_1": np.array(place, np.int32)})[0].tolist()
        except Fail:
            found = "refused"  # Two elements, or none, do not fit to three weights.
        if found != by_jax:
            wrong[name, place] = found
            print(f"{name} at {place}: jax {by_jax}, onnxruntime {found}")
due = {("slice", 6): [7, 8], ("slice", 7): [8], ("slice", 9): []}
due |= {("weighted sum", 6): "refused", ("weighted sum", 7): 48, ("weighted sum", 9): "refused"}
if wrong != due:
    sys.exit(f"expected these wrong results: {due}, found {wrong}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 jax2onnx==0.17.1 onnxruntime==1.32.0 onnx==1.23.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/slices.py"
