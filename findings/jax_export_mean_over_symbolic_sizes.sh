#!/usr/bin/env bash
# Expected: an artifact with symbolic shapes gives the numbers of jax.jit at the same sizes.
# It is so: without jax_enable_x64, products of symbolic dimensions are computed in int32 and wrap. jnp.mean divides by
# the number of elements, so over 50,000 x 50,000 elements, which need no memory as the product is fused, the mean of
# ones is -1.39; jax.jit gives 1. An x.shape[0] ** 3 wraps at 1,291. Nothing is refused: only each dimension alone is
# checked. Exported with jax_enable_x64, the sizes are int64 and the mean is 1.
# Seen with jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/mean.py" <<'PY'
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export


@jax.jit
def mean_of_products(x):
    return jnp.mean(x[:, None] * x[None, :])


@jax.jit
def cube(x):
    return jnp.float32(x.shape[0] ** 3)


(n,) = export.symbolic_shape("n")
x = np.ones(50_000, np.float32)
found = {}
for function in (mean_of_products, cube):
    for x64 in (False, True):
        jax.config.update("jax_enable_x64", x64)
        exported = export.export(function)(jax.ShapeDtypeStruct((n,), np.float32))
        found[function.__name__, x64] = (float(exported.call(x)), float(function(x)))
print(f"jax {jax.__version__}, (function, x64): (artifact, jit) {found}")
for (name, x64), (artifact, jit) in found.items():
    if (abs(artifact - jit) <= 1e-3 * jit) != x64:
        sys.exit(f"expected {name} to be right with x64 alone, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 flatbuffers==25.12.19
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/mean.py"
