#!/usr/bin/env bash
# Expected: StableHLO's log of 0 stays minus infinity in Core ML, or the conversion says that it does not, and rsqrt of
# 0 stays infinity.
# It is so: Core ML's log adds an epsilon of 1e-45 to its argument, and its rsqrt one of 1e-12, by default, and the
# converter does not set them to 0: log(0) is -103.28 and rsqrt(0) is 1e6. So a mask by log(0) is no mask for logits
# below -103, logsumexp of an empty row is finite, and jnp.arcsinh(-10000), which cancels to log(0), is -103.28 and not
# -9.90. Mask by jnp.where with a large negative number.
# Seen with stablehlo-coreml 0.1.6 and coremltools 9.0 (mil/ops/defs/iOS15/elementwise_unary.py has both defaults), jax
# and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-11-29: coremltools itself computes what depends on constants alone,
# and no device ran it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/log.py" <<'PY'
import importlib.metadata
import sys

import coremltools
import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
from stablehlo_coreml import convert

print({name: importlib.metadata.version(name) for name in ("jax", "stablehlo-coreml", "coremltools")})
programs = {
    "log(0)": lambda: jnp.log(jnp.float32(0)),
    "rsqrt(0)": lambda: lax.rsqrt(jnp.float32(0)),
    "logsumexp of an empty row": lambda: jax.nn.logsumexp(jnp.full(2, -jnp.inf, jnp.float32)),
    "arcsinh(-10000)": lambda: jnp.arcsinh(jnp.float32(-10000)),
    "log(2)": lambda: jnp.log(jnp.float32(2)),
}
found = {}
for name, program in programs.items():
    function = jax.jit(lambda x, program=program: (x, program()))  # a program for Core ML needs an input
    with mlir.make_ir_context():
        text = export.export(function)(jax.ShapeDtypeStruct((1,), np.float32)).mlir_module()
        model = convert(ir.Module.parse(text), minimum_deployment_target=coremltools.target.iOS18)
    found[name] = round(float(np.squeeze(model.functions["main"].outputs[1].val)), 2)
    print(f"{name}: jax {float(program()):.2f}, Core ML {found[name]}")
expected = [-103.28, 1e6, -103.28, -103.28, 0.69]
if list(found.values()) != expected:
    sys.exit(f"expected {expected}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 stablehlo-coreml==0.1.6 \
  coremltools==9.0 numpy==2.5.5
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/log.py"
