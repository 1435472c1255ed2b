#!/usr/bin/env bash
# Expected: an image resized by jax.image.resize(..., "nearest") has the same pixels in the ONNX model.
# It is so: halved, no pixel is the same: of a row of 0 to 7, jax takes 1, 3, 5, 7, and the model 0, 2, 4, 6. The middle
# of a new pixel lies just between two old ones; jax takes the latter, and jax2onnx writes the nearest_mode
# "round_prefer_floor", which takes the former. So an image that is divided by an even number moves by a pixel, and some
# pixels of other sizes do (8 to 5, 8 to 12). 8 to 16 is right. To halve an image, write x[:, 1::2, 1::2].
# Seen with jax2onnx 0.17.1 (plugins/jax/image/resize.py), onnxruntime 1.32.0 on a CPU, jax and jaxlib 0.12.0.1, CPython
# 3.12, x86_64, on 2026-11-30: measured; the modes are in the description of Resize (onnx 1.23.2).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/resize.py" <<'PY'
import importlib.metadata
import sys

import jax
import numpy as np
import onnxruntime
from jax2onnx import to_onnx

print({name: importlib.metadata.version(name) for name in ("jax", "jax2onnx", "onnxruntime")})
same = {}
for old, new in ((8, 4), (12, 3), (8, 5), (8, 12), (8, 16), (9, 3)):
    image = np.arange(old * old, dtype=np.float32).reshape(1, old, old, 1)

    def program(image, new=new):
        return jax.image.resize(image, (1, new, new, 1), "nearest")

    model = to_onnx(program, inputs=[jax.ShapeDtypeStruct(image.shape, image.dtype)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: image})
    by_jax = np.asarray(jax.jit(program)(image))
    rows = [(image[0, 0, :, 0] % old).astype(int).tolist() for image in (by_jax, found)]
    print(f"{old} to {new}: jax {rows[0]}, onnxruntime {rows[1]}")
    same[old, new] = sum(one == other for one, other in zip(*rows, strict=True))
expected = {(8, 4): 0, (12, 3): 0, (8, 5): 4, (8, 12): 8, (8, 16): 16, (9, 3): 3}
if same != expected:
    sys.exit(f"expected so many equal pixels in a row: {expected}, found {same}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 jax2onnx==0.17.1 onnxruntime==1.32.0 onnx==1.23.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/resize.py"
