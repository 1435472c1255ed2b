#!/usr/bin/env bash
# Expected: functions that exist to keep small or large numbers keep them in the ONNX model: log1p, expm1, erfc,
# logaddexp, cumlogsumexp and erf_inv of jax.
# It is so: jax2onnx writes them as their textbook formulas, in float32: log(1 + x), exp(x) - 1, 1 - erf(x). log1p(1e-8)
# and expm1(1e-8) are 0, erfc(4), 1.5e-8, is 0, and so is each probability below 3e-8 that ndtr gives: its logarithm is
# minus infinity. logaddexp(-17, 0) is 0. cumlogsumexp of -1000 and 1000 is minus infinity and infinity, though
# logsumexp is right, and erf_inv(1) is NaN, not infinity. Nothing warns, and numbers near 1 are right.
# Compare a model's smallest and largest numbers, or compute them outside of it.
# Seen with jax2onnx 0.17.1 (plugins/jax/lax), onnxruntime 1.32.0 on a CPU, jax and jaxlib 0.12.0.1, CPython 3.12,
# x86_64, on 2026-11-30: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/careful.py" <<'PY'
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from jax import lax
from jax2onnx import to_onnx

print({name: importlib.metadata.version(name) for name in ("jax", "jax2onnx", "onnxruntime")})
cases = {
    "log1p": (jnp.log1p, [1e-8, 1.0]),
    "expm1": (jnp.expm1, [1e-8, 1.0]),
    "erfc": (lax.erfc, [4.0, 1.0]),
    "ndtr": (jax.scipy.special.ndtr, [-6.0, -1.0]),
    "logaddexp with 0": (lambda x: jnp.logaddexp(x, 0.0), [-17.0, 1.0]),
    "cumlogsumexp": (lax.cumlogsumexp, [-1000.0, 1000.0]),
    "logsumexp": (jax.nn.logsumexp, [999.0, 1000.0]),
    "erf_inv": (lax.erf_inv, [1.0, 0.5]),
}
wrong = {}
for name, (function, numbers) in cases.items():
    x = np.array(numbers, np.float32)
    model = to_onnx(function, inputs=[jax.ShapeDtypeStruct(x.shape, x.dtype)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = np.atleast_1d(session.run(None, {session.get_inputs()[0].name: x})[0])
    by_jax = np.atleast_1d(jax.jit(function)(x))
    wrong[name] = [str(number) for number in found[~np.isclose(found, by_jax, rtol=1e-4, atol=0)]]
    print(f"{name} of {numbers}: jax {by_jax.tolist()}, onnxruntime {found.tolist()}")
expected = {name: ["0.0"] for name in cases} | {"logsumexp": [], "cumlogsumexp": ["-inf", "inf"], "erf_inv": ["nan"]}
if wrong != expected:
    sys.exit(f"expected these wrong numbers: {expected}, found {wrong}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 jax2onnx==0.17.1 onnxruntime==1.32.0 onnx==1.23.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/careful.py"
