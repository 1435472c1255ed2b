#!/usr/bin/env bash
# Expected: if a TPU's compiler takes lax.psum of a dtype over four devices, it takes pmax and psum_scatter of it too.
# It is so: int64, float64 and complex64, which a TPU computes as pairs of 32 bits, have sums over devices ("Supported
# lowering only of Sum all reduce"): pmax is refused for all three. psum_scatter is refused for float64 and complex64,
# and compiled for int64. The same maximum over an axis of one device compiles. float32 and float8_e4m3fn compile in all
# of them. Gather with all_gather and take the maximum after it: that compiles. jax lowers all of them.
# Seen with libtpu 0.0.50.1 for v5e, described and not present, and jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on
# 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/collectives.py" <<'PY'
import importlib.metadata
import sys

import jax
import numpy as np
from jax import lax
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_enable_x64", True)
print({name: importlib.metadata.version(name) for name in ("jax", "libtpu")})
mesh = Mesh(np.array(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices), ("d",))
CALLS = {
    "psum": lambda x: lax.psum(x, "d"),
    "pmax": lambda x: lax.pmax(x, "d"),
    "psum_scatter": lambda x: lax.psum_scatter(x, "d", tiled=True),
    "gathered": lambda x: lax.all_gather(x, "d").max(0),
    "max": lambda x: x.max(0, keepdims=True),
}
refused = {}
for dtype in ("float32", "float8_e4m3fn", "int64", "float64", "complex64"):
    refused[dtype] = []
    for name, call in CALLS.items():
        parts = PartitionSpec("d")
        sharded = jax.shard_map(call, mesh=mesh, in_specs=parts, out_specs=parts, check_vma=False)
        shape = jax.ShapeDtypeStruct((16, 4), jax.numpy.dtype(dtype), sharding=NamedSharding(mesh, parts))
        try:
            jax.jit(sharded).lower(shape).compile()
        except jax.errors.JaxRuntimeError as error:
            refused[dtype].append(name)
            print(f"{dtype} {name}: {str(error)[:90]}")
print(refused)
both = ["pmax", "psum_scatter"]
expected = {"float32": [], "float8_e4m3fn": [], "int64": ["pmax"], "float64": both, "complex64": both}
if refused != expected:
    sys.exit(f"expected these to be refused: {expected}, found {refused}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 libtpu==0.0.50.1
JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 TPU_ACCELERATOR_TYPE=v5litepod-4 TPU_WORKER_HOSTNAMES=localhost TPU_WORKER_ID=0 \
  "$folder/venv/bin/python" "$folder/collectives.py"
