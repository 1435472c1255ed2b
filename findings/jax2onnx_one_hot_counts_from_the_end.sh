#!/usr/bin/env bash
# Expected: jax.nn.one_hot of a label outside of its classes is a row of zeros in the ONNX model too: -1 often stands
# for "no label".
# It is so: jax2onnx writes ONNX's OneHot, which takes indices from -depth to depth - 1 and counts the negative ones
# from the end: -1 is the last class. Other labels outside are zeros in both. A loss over padded labels then counts the
# padding as the last class, and nothing is refused. Write the comparison instead: labels[:, None] ==
# jnp.arange(classes).
# Seen with jax2onnx 0.17.1, onnxruntime 1.32.0 on a CPU, jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-11-29:
# measured; the range is in the description of OneHot's indices (onnx 1.23.2).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/one_hot.py" <<'PY'
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from jax2onnx import to_onnx

print({name: importlib.metadata.version(name) for name in ("jax", "jax2onnx", "onnxruntime")})
labels = np.array([0, -1, -3, -4, 3], np.int32)
programs = {
    "one_hot": lambda labels: jax.nn.one_hot(labels, 3),
    "comparison": lambda labels: (labels[:, None] == jnp.arange(3)).astype(jnp.float32),
}
wrong = {}
for name, program in programs.items():
    model = to_onnx(program, inputs=[jax.ShapeDtypeStruct(labels.shape, labels.dtype)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: labels})
    by_jax = np.asarray(jax.jit(program)(labels))
    wrong[name] = [int(label) for label, a, b in zip(labels, by_jax, found, strict=True) if (a != b).any()]
    print(f"{name} of {labels.tolist()}: jax {by_jax.tolist()}, onnxruntime {found.tolist()}")
if wrong != {"one_hot": [-1, -3], "comparison": []}:
    sys.exit(f"expected one_hot to be wrong for -1 and -3, found {wrong}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 jax2onnx==0.17.1 onnxruntime==1.32.0 onnx==1.23.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/one_hot.py"
