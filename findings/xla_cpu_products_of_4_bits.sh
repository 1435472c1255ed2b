#!/usr/bin/env bash
# Expected: a product of int4 matrices that is added in int32, as quantized layers do, runs on a CPU as that of int8
# does, or jax refuses to export it.
# It is so: jax exports it, and XLA for CPUs refuses it: "The XLA CPU/GPU backend does not support custom element sizes
# on non-sub-byte types" (INVALID_ARGUMENT, in its hlo verifier). uint4 with int32 and float4_e2m1fn with float32 too. A
# result of int4 is computed, and wraps; so a test with small numbers and no wider result sees nothing. Cast the
# arguments to int8 (or float32) first: that runs and is right. CUDA's compiler takes the product of int4.
# Seen with jax and jaxlib 0.12.0.1 on a CPU, CPython 3.12, x86_64, on 2026-11-29: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/products.py" <<'PY'
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

print(f"jax {jax.__version__}")
a = np.random.default_rng(0).integers(0, 4, (8, 8))
found = {}
for dtype, wide, narrow in (
    ("int8", "int32", "int8"),
    ("int4", "int32", "int8"),
    ("uint4", "int32", "int8"),
    ("float4_e2m1fn", "float32", "float32"),
):
    x = jnp.asarray(a).astype(dtype)
    right = np.asarray(x.astype("float32")) @ np.asarray(x.astype("float32"))
    product = jax.jit(lambda x, wide=wide: lax.dot(x, x, preferred_element_type=wide))
    by_cast = jax.jit(lambda x, wide=wide, narrow=narrow: lax.dot(
        x.astype(narrow), x.astype(narrow), preferred_element_type=wide
    ))
    export.export(product, platforms=["cpu"])(x)
    try:
        found[dtype] = "right" if np.array_equal(np.asarray(product(x)), right) else "wrong"
    except Exception as error:
        found[dtype] = "refused"
        print(f"{dtype}: {str(error)[:140]}")
    if not np.array_equal(np.asarray(by_cast(x)), right):
        sys.exit(f"expected the product of {dtype} by {narrow} to be right")
print(found)
if found != {"int8": "right", "int4": "refused", "uint4": "refused", "float4_e2m1fn": "refused"}:
    sys.exit("expected all but int8 to be refused")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/products.py"
