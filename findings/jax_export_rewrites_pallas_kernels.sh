#!/usr/bin/env bash
# Expected: the artifact of a Pallas kernel for TPU has the operations that jax.jit gives the compiler, and its numbers.
# It is so: jax.export lowers kernels by other rules, for older readers. In an artifact, jnp.log2(x) is log(x) *
# 1.442695, sigmoid is 1 / (1 + exp(-x)), and a fori_loop with unroll=16 has 16 copies of its body, where jax.jit leaves
# a mark for the compiler. Even with a correctly rounded logarithm, the product makes floor(log2(x)) of 2**13, 2**15,
# 2**26, 2**27, 2**30 and 2**31 wrong, so a test of a kernel under jax.jit does not see the artifact's numbers. With
# jax_export_ignore_forward_compatibility both are the same: set it where the reader has the writer's release.
# Seen with jax and jaxlib 0.12.0.1 (forward_compatible in jax/_src/pallas/mosaic/lowering.py), CPython 3.12, x86_64, on
# 2026-11-29: operations read from the modules, numbers computed by NumPy; no TPU ran it. In older releases exp2 was so
# too, which slowed attention down: https://github.com/pytorch/helion/pull/2323
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/kernels.py" <<'PY'
import base64
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.experimental import pallas

print(f"jax {jax.__version__}")
PROGRAMS = {
    "log2": jnp.log2,
    "sigmoid": jax.nn.sigmoid,
    "loop": lambda x: lax.fori_loop(0, 64, lambda i, y: y * 2 + x, x, unroll=16),
    "tanh": jnp.tanh,
}
x = jax.ShapeDtypeStruct((128, 128), jnp.float32)
differ = {}
for name, program in PROGRAMS.items():

    def kernel(x, result, program=program):
        result[...] = program(x[...])

    call = pallas.pallas_call(kernel, out_shape=x)
    texts = {"jit": jax.jit(call).trace(x).lower(lowering_platforms=("tpu",)).as_text()}
    for ignore in (False, True):
        jax.config.update("jax_export_ignore_forward_compatibility", ignore)
        texts[ignore] = export.export(jax.jit(lambda x, call=call: call(x)), platforms=["tpu"])(x).mlir_module()
    kernels = {way: base64.b64decode(re.search(r"body\\22: ?\\22([\w+/=]+)", text)[1]) for way, text in texts.items()}
    jit, artifact, ignoring = ({*re.findall(rb"\b(?:math|tpu)\.\w+", kernels[way])} for way in ("jit", False, True))
    differ[name] = (b" ".join(artifact - jit).decode(), b" ".join(jit - artifact).decode(), jit == ignoring)
print("operations of the artifact alone, of jax.jit alone, the same if compatibility is ignored:", differ)
powers = np.arange(1, 32)
product = np.log(2.0**powers).astype(np.float32) * np.float32(1.4426950408889634)
wrong = powers[np.floor(product) != powers].tolist()
print(f"floor(log2(2**n)) by the product is wrong for n in {wrong}")
expected = {"log2": ("math.log", "math.log2", True), "sigmoid": ("math.exp", "tpu.logistic", True)}
expected |= {"loop": ("", "tpu.late_unroll", True), "tanh": ("", "", True)}
if differ != expected or wrong != [13, 15, 26, 27, 30, 31]:
    sys.exit(f"expected {expected} and [13, 15, 26, 27, 30, 31]")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 flatbuffers==25.12.19 numpy==2.5.5
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/kernels.py"
