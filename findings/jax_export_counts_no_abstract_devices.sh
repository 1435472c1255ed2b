#!/usr/bin/env bash
# Expected: a function that is split over a mesh of 4 devices is exported for 4 devices, and its call in a context with
# any other number is refused by jax.export, with both numbers.
# It is so for a mesh of devices. Over an AbstractMesh, which jax.shard_map takes in its place, nr_devices is 1, so that
# jax.export lets every call through. A call runs on 4 devices only, and there on meshes of another shape too. On 1, 2
# and 8 devices XLA ends it, in words that name neither number: "No registered implementation for untyped custom call to
# xla.sdy.GlobalToLocalShape", "Invalid sharding for instruction". A server that asks nr_devices for how many devices to
# give learns it from nothing but the module.
# Seen with jax and jaxlib 0.12.0.1 (jax/_src/export/_export.py refuses a call on other devices only if nr_devices is
# not 1), CPython 3.12, x86_64, on 2026-11-30.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/abstract.py" <<'PY'
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

AUTO = (AxisType.Auto,)


def ended(mesh):
    function = jax.shard_map(lambda x: x - jnp.mean(x), mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    exported = export.export(jax.jit(function))(jax.ShapeDtypeStruct((8,), jnp.float32))
    read, found = export.deserialize(exported.serialize()), {}
    for size in (1, 2, 4, 8):
        own = NamedSharding(jax.make_mesh((size,), ("d",), axis_types=AUTO), P("d"))
        try:
            values = np.asarray(read.call(jax.device_put(np.arange(8, dtype=np.float32), own)))
            found[size] = "runs" if values.tolist() == [-0.5, 0.5] * 4 else f"gives {values}"
        except Exception as error:
            found[size] = type(error).__name__
    return read.nr_devices, found


real = ended(jax.make_mesh((4,), ("d",), axis_types=AUTO))
abstract = ended(AbstractMesh((4,), ("d",), axis_types=AUTO))
print(f"jax {jax.__version__}: devices {real[0]} {real[1]}; AbstractMesh: devices {abstract[0]} {abstract[1]}")
refused, failed = dict.fromkeys((1, 2, 8), "ValueError"), dict.fromkeys((1, 2, 8), "JaxRuntimeError")
if real != (4, refused | {4: "runs"}) or abstract != (1, failed | {4: "runs"}):
    sys.exit("expected 4 devices and ValueError for a mesh of devices, 1 and JaxRuntimeError for an AbstractMesh")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 flatbuffers==25.12.19
JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 "$folder/venv/bin/python" "$folder/abstract.py"
