#!/usr/bin/env bash
# Expected: a CUDA plugin of another release than jaxlib, of which jax warns that "it will not be used", is not used.
# It is so: it is used. Its initialize() ends in an AttributeError, which is logged, and its PJRT client stays. With the
# plugin of 0.11.0, 96 days older, products, convolutions, FFTs and float8 of 0.12.0.1 compile. Only its FFI
# handlers are left out: cholesky, qr, eigh and lu are refused, "No FFI handler registered", which
# does not name the plugin. A test without linear algebra passes. Pin all packages of jax[cuda13] alike.
# Seen with jax-cuda13-plugin and jax-cuda13-pjrt 0.11.0, jax and jaxlib 0.12.0.1 (jaxlib/plugin_support.py), for an
# H100 that is described and not present, CPython 3.12, x86_64, on 2026-11-29: measured. A user met it with jaxlib
# 0.9.0.1 and a newer plugin: https://github.com/ma-gilles/recovar/issues/64
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/plugin.py" <<'PY'
import importlib.metadata
import sys
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import jax

import jax.numpy as jnp
from jax import export, lax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

print({name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda13-pjrt")})
GPU = """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
 shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000
 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
 cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
 platform_name: "CUDA" dnn_version_info { major: 9 minor: 8 } device_description_str: "NVIDIA H100" """
PLAIN = {
    "product": lambda x: x @ x,
    "convolution": lambda x: lax.conv(x[None, None], x[None, None, :3, :3], (1, 1), "SAME"),
    "fft": lambda x: jnp.fft.fft(x).real,
    "float8": lambda x: lax.dot(*[x.astype(jnp.float8_e4m3fn)] * 2, preferred_element_type=jnp.float32),
}
BY_FFI = {"cholesky": jnp.linalg.cholesky, "qr": jnp.linalg.qr, "eigh": jnp.linalg.eigh, "lu": jax.scipy.linalg.lu}
if not any("0.11.0 is installed" in str(found.message) and "not be used" in str(found.message) for found in caught):
    sys.exit(f"expected a warning that the plugin will not be used, found {[str(found.message) for found in caught]}")
options = {"topology_name": "NVIDIA H100", "target_config": GPU, "topology": "1x1x1"}
device = SingleDeviceSharding(topologies.get_topology_desc(platform="cuda", **options).devices[0])
x, refused = jax.ShapeDtypeStruct((16, 16), jnp.float32), {}
for name, program in (PLAIN | BY_FFI).items():
    function = jax.jit(lambda x, program=program: jax.tree.leaves(program(x)))
    exported = export.deserialize(export.export(function, platforms=["cuda"])(x).serialize())
    try:
        jax.jit(exported.call, in_shardings=device, out_shardings=device).lower(x).compile()
    except jax.errors.JaxRuntimeError as error:
        refused[name] = str(error)[:70]
print("warned that it will not be used; refused:", refused)
if {*refused} != {*BY_FFI} or not all("No FFI handler" in text for text in refused.values()):
    sys.exit(f"expected these alone to be refused: {[*BY_FFI]}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 flatbuffers==25.12.19 \
  jax-cuda13-plugin==0.11.0 jax-cuda13-pjrt==0.11.0
JAX_PLATFORMS=cpu JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 "$folder/venv/bin/python" "$folder/plugin.py"
