#!/usr/bin/env bash
# Expected: a product of float4_e2m1fn matrices with a float32 result, which jax exports for CUDA, compiles for a B200,
# whose tensor cores have this type, or for an H100 by way of a wider one, as that of float8_e8m0fnu does.
# It is so: CUDA 13's plugin refuses it for both: "GEMM is not supported by cublasLt and legacy cublas fallback is
# removed", with results of float4_e2m1fn, bfloat16 and float16 too. int4, float8_e4m3fn and float8_e8m0fnu compile, and
# so do sums, casts and products by element of float4_e2m1fn. Cast to float8_e4m3fn first, which has all its values.
# Seen with jax-cuda13-plugin, jax and jaxlib 0.12.0.1 for devices that are described and not present, CPython 3.12,
# x86_64, on 2026-11-29: measured. Where a device is present, XLA may choose another kernel by trying them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/products.py" <<'PY'
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
from jax import export, lax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

print({name: importlib.metadata.version(name) for name in ("jax", "jax-cuda13-plugin", "jax-cuda13-pjrt")})
GPU = """gpu_device_info {{ threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
 shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000
 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
 cuda_compute_capability {{ major: {} }} registers_per_core_limit: 65536 registers_per_block_limit: 65536 }}
 platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 8 }} device_description_str: "{}" """
product = jax.jit(lambda x: lax.dot(x, x, preferred_element_type=jnp.float32))
by_float8 = jax.jit(lambda x: product(x.astype(jnp.float8_e4m3fn)))
refused = {}
for major, name in ((9, "NVIDIA H100"), (10, "NVIDIA B200")):
    options = {"target_config": GPU.format(major, name), "topology": "1x1x1"}
    device = topologies.get_topology_desc(platform="cuda", topology_name=name, **options).devices[0]
    for dtype in ("float4_e2m1fn", "float8_e4m3fn", "float8_e8m0fnu", "bfloat16"):
        shape = jax.ShapeDtypeStruct((256, 256), jnp.dtype(dtype), sharding=SingleDeviceSharding(device))
        export.export(product, platforms=["cuda"])(jax.ShapeDtypeStruct(shape.shape, shape.dtype))
        try:
            product.lower(shape).compile()
        except Exception as error:
            refused[name, dtype] = str(error)[:86]
        by_float8.lower(shape).compile()
print(refused)
if {*refused} != {("NVIDIA H100", "float4_e2m1fn"), ("NVIDIA B200", "float4_e2m1fn")}:
    sys.exit("expected float4_e2m1fn alone to be refused, for both devices")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 \
  jax-cuda13-plugin==0.12.0.1 jax-cuda13-pjrt==0.12.0.1
JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 "$folder/venv/bin/python" "$folder/products.py"
