#!/usr/bin/env bash
# Expected: a Pallas kernel for TPU that adds two arrays compiles for each dtype for which it is exported and for which
# the same sum without Pallas compiles.
# It is so: the kernel is exported for all of them without an error, and libtpu's compiler for v5e refuses float16
# ("Invalid vector type for load"), int8 and uint8 ("Only vector<i16> and vector<i32> are supported") and float8_e4m3fn
# ("failed to legalize operation 'arith.addf'"). bfloat16, int16 and int32 compile, and jnp.add compiles for all. Load,
# widen and add.
# Seen with libtpu 0.0.50.1 for v5e, described and not present, and jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on
# 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/kernels.py" <<'PY'
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
from jax import export
from jax.experimental import pallas, topologies
from jax.sharding import SingleDeviceSharding

print({name: importlib.metadata.version(name) for name in ("jax", "libtpu")})
device = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices[0]


def kernel(x, result):
    result[...] = x[...] + x[...]


found = {}
for dtype in ("bfloat16", "int16", "int32", "float16", "int8", "uint8", "float8_e4m3fn"):
    shape = jax.ShapeDtypeStruct((256, 256), jnp.dtype(dtype), sharding=SingleDeviceSharding(device))
    by_pallas = jax.jit(lambda x: pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
    export.export(by_pallas, platforms=["tpu"])(jax.ShapeDtypeStruct(shape.shape, shape.dtype))
    jax.jit(lambda x: x + x).lower(shape).compile()
    try:
        by_pallas.lower(shape).compile()
        found[dtype] = "compiles"
    except Exception as error:
        found[dtype] = "refused"
        print(f"{dtype}: {str(error)[:220]}")
print(found)
expected = dict.fromkeys(("bfloat16", "int16", "int32"), "compiles")
expected |= dict.fromkeys(("float16", "int8", "uint8", "float8_e4m3fn"), "refused")
if found != expected:
    sys.exit(f"expected {expected}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 libtpu==0.0.50.1
JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 TPU_ACCELERATOR_TYPE=v5litepod-4 TPU_WORKER_HOSTNAMES=localhost TPU_WORKER_ID=0 \
  "$folder/venv/bin/python" "$folder/kernels.py"
