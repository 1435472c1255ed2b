#!/usr/bin/env bash
# Expected: with a libtpu 12 weeks older, jax writes Pallas kernels as that libtpu reads them, or says that it is too
# old, and it makes no difference whether a kernel is called under jax.jit or from its artifact.
# It is so: on a machine without a TPU, where programs are compiled for a described one, jax takes any libtpu for the
# newest. Programs of jax.numpy compile. Each kernel under jax.jit is refused: "Could not convert JSON string to proto
# ... no such field: 'debug_locations'". Exported, kernels compile, as jax.export writes for older readers: compile
# jax.jit(export.export(f, platforms=["tpu"])(x).call). A convolution in a kernel is exported too, and refused.
# Seen with libtpu 0.0.45 (built on 2026-07-31); 0.0.48.1, which jax 0.11.2 pins, also refuses kernels under jax.jit.
# jax and jaxlib 0.12.0.1 (is_libtpu_at_least in jax/_src/cloud_tpu_init.py), v5e, described and not present, CPython
# 3.12, x86_64, on 2026-11-29: measured. jax's own CI has a libtpu of 12 weeks before: jax#24154.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/kernels.py" <<'PY'
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
from jax import export, lax
from jax.experimental import pallas, topologies
from jax.sharding import SingleDeviceSharding

print({name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "libtpu")})
device = SingleDeviceSharding(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices[0])


def convolve(x):
    filters = jnp.ones((1, 1, 128, 128), x.dtype)
    return lax.conv_general_dilated(x, filters, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


PROGRAMS = {
    "sum": ((256, 256), lambda x: x + x),
    "product": ((256, 256), lambda x: x @ x),
    "convolution": ((1, 8, 8, 128), convolve),
}
refused = {"jax.numpy": [], "kernel": [], "exported kernel": []}
for name, (shape, program) in PROGRAMS.items():

    def kernel(x, result, program=program):
        result[...] = program(x[...])

    x = jax.ShapeDtypeStruct(shape, jnp.float32)
    by_pallas = jax.jit(pallas.pallas_call(kernel, out_shape=x))
    exported = export.deserialize(export.export(by_pallas, platforms=["tpu"])(x).serialize())
    for way, call in {"jax.numpy": program, "kernel": by_pallas, "exported kernel": exported.call}.items():
        try:
            jax.jit(call, in_shardings=device, out_shardings=device).lower(x).compile()
        except jax.errors.JaxRuntimeError as error:
            refused[way].append(name)
            print(f"{way}, {name}: {' '.join(str(error).split())[:230]}")
print("refused:", refused)
if refused != {"jax.numpy": [], "kernel": [*PROGRAMS], "exported kernel": ["convolution"]}:
    sys.exit("expected all kernels under jax.jit to be refused, and of the exported ones the convolution alone")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 libtpu==0.0.45 flatbuffers==25.12.19
JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 TPU_ACCELERATOR_TYPE=v5litepod-4 TPU_WORKER_HOSTNAMES=localhost TPU_WORKER_ID=0 \
  "$folder/venv/bin/python" "$folder/kernels.py"
