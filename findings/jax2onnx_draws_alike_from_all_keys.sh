#!/usr/bin/env bash
# Expected: an ONNX model of jax.random draws other numbers for another key, as jax does, or jax2onnx refuses it.
# It is so: jax2onnx leaves keys out and gives each draw of the model the seed 0, so all draws of a kind are the same
# numbers: the difference of normal(a) and normal(b) is 0, and the masks of bernoulli(a) and bernoulli(b) are one mask.
# fold_in returns its key as it is. A key that is an argument is an input that nothing reads, and the next call with the
# same key gives other numbers. jax.random.split is refused. Draw outside of the model, and pass the numbers.
# Seen with jax2onnx 0.17.1 (seed=0.0 in plugins/jax/random), onnxruntime 1.32.0 on a CPU, which refuses these operators
# of newer opsets than 21, jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-11-30: measured. That keys have to
# become seeds was said in https://github.com/enpasos/jax2onnx/issues/11 (open).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/keys.py" <<'PY'
import importlib.metadata
import sys

import jax
import numpy as np
import onnxruntime
from jax2onnx import to_onnx

print({name: importlib.metadata.version(name) for name in ("jax", "jax2onnx", "onnxruntime")})
a, b = np.array([0, 42], np.uint32), np.array([7, 1], np.uint32)
programs = {
    "normal": lambda a, b: (jax.random.normal(a, (5,)), jax.random.normal(b, (5,))),
    "bernoulli": lambda a, b: (jax.random.bernoulli(a, 0.5, (64,)), jax.random.bernoulli(b, 0.5, (64,))),
    "fold_in": lambda a, b: tuple(jax.random.normal(jax.random.fold_in(a, i), (5,)) for i in range(2)),
}
found = {}
for name, program in programs.items():
    model = to_onnx(program, inputs=[jax.ShapeDtypeStruct((2,), np.uint32)] * 2, opset=21)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    keys = dict(zip([one.name for one in session.get_inputs()], (a, b), strict=True))
    first, second = session.run(None, keys), session.run(None, keys)
    alike = [bool((one == other).all()) for one, other in (first, program(a, b), (first[0], second[0]))]
    read = bool(set(keys) & {name for node in model.graph.node for name in node.input})
    found[name] = {"two keys alike": alike[0], "in jax": alike[1], "two calls alike": alike[2], "keys are read": read}
    print(f"{name}: {found[name]}, {[one[:3].tolist() for one in first]}")
due = {"two keys alike": True, "in jax": False, "two calls alike": False, "keys are read": False}
if any(one != due for one in found.values()):
    sys.exit(f"expected {due} of each")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 jax2onnx==0.17.1 onnxruntime==1.32.0 onnx==1.23.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/keys.py"
