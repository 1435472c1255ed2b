#!/usr/bin/env bash
# Expected: StableHLO's atan2 of points on an axis is the angle in Core ML too: that of (-1, 0) is pi, that of (0, 0) is
# 0.
# It is so: Core ML has no atan2, and the converter writes atan(y / x) + sign(y) * pi where x < 0. Where y is 0, so is
# its sign: jnp.arctan2(0, -1) is 0, and jnp.arctan2(0, 0) is NaN. A phase that ends exactly on the axis turns around.
# Write jnp.where(y == 0, jnp.where(x < 0, jnp.pi, 0), jnp.arctan2(y, x)).
# Seen with stablehlo-coreml 0.1.6 (op_atan2 of converter.py) and coremltools 9.0, jax and jaxlib 0.12.0.1, CPython
# 3.12, x86_64, on 2026-11-29: coremltools itself computes what depends on constants alone, and no device ran it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/angle.py" <<'PY'
import importlib.metadata
import sys

import coremltools
import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
from stablehlo_coreml import convert

print({name: importlib.metadata.version(name) for name in ("jax", "stablehlo-coreml", "coremltools")})
points = [(0, -1), (0, 0), (1, -1), (-1, -1), (0, 1), (1, 0)]
y, x = (np.array(side, np.float32) for side in zip(*points, strict=True))


def mended(y, x):
    return jnp.where(y == 0, jnp.where(x < 0, jnp.pi, 0), jnp.arctan2(y, x))


def by_coreml(program):
    function = jax.jit(lambda z: (z, program(jnp.asarray(y), jnp.asarray(x))))  # a program for Core ML needs an input
    with mlir.make_ir_context():
        text = export.export(function)(jax.ShapeDtypeStruct((1,), np.float32)).mlir_module()
        model = convert(ir.Module.parse(text), minimum_deployment_target=coremltools.target.iOS18)
    return np.asarray(model.functions["main"].outputs[1].val).round(3)


by_jax, found = np.asarray(jnp.arctan2(y, x)).round(3), by_coreml(jnp.arctan2)
print(f"arctan2 of {points}: jax {by_jax.tolist()}, Core ML {found.tolist()}")
if not np.array_equal(by_coreml(mended), by_jax):
    sys.exit("expected the angles by jnp.where to be right")
if not np.array_equal(found, [0, np.nan, *by_jax[2:]], equal_nan=True):
    sys.exit(f"expected 0 and NaN for the first two points alone, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 stablehlo-coreml==0.1.6 \
  coremltools==9.0 numpy==2.5.5
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/angle.py"
