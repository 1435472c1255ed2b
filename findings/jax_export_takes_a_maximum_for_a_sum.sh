#!/usr/bin/env bash
# Expected: a result of which each device has its own maximum (unreduced by max, on a mesh with explicit axes) is reduced
# to the maximum of all by what calls its artifact, as by what calls the function, or it is not serialized.
# It is so: jax.export serializes over which axes a result is unreduced, and not by what. The deserialized function says
# unreduced_kind=sum: a program that reduces its result adds up the maxima, without an error. Called alone it raises an
# AssertionError, "Unexpected XLA sharding override". Reduce inside the exported function.
# Seen with jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-11-30: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/maxima.py" <<'PY'
import sys

import jax
import numpy as np
from jax import export, lax
from jax._src.partition_spec import UnreducedKind
from jax.sharding import PartitionSpec as P

jax.set_mesh(jax.make_mesh((2,), ("a",)))
maxima = P(None, unreduced={"a"}, unreduced_kind=UnreducedKind.max)
x = jax.device_put(np.arange(8, dtype=np.float32).reshape(4, 2), P("a"))


@jax.jit
def largest(x):
    return lax.reduce_max(x, axes=(0,), out_sharding=maxima)


def reduced(function):
    return jax.jit(lambda x: jax.reshard(function(x), P()))(x).tolist()


live = export.export(largest)(x)
read = export.deserialize(live.serialize())
found = {"right": np.asarray(x).max(0).tolist(), "deserialized": reduced(read.call)}
try:
    read.call(x)
    alone = "called"
except AssertionError as error:
    alone = str(error)[:32]
print(f"jax {jax.__version__}: {found}, alone: {alone}; {read.out_avals[0].sharding.spec}")
if found != {"right": [6, 7], "deserialized": [2 + 6, 3 + 7]} or alone != "Unexpected XLA sharding override":
    sys.exit("expected the deserialized function to give the sum of the devices' maxima, or to fail when called alone")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 flatbuffers==25.12.19
JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=2 "$folder/venv/bin/python" "$folder/maxima.py"
