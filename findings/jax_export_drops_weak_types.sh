#!/usr/bin/env bash
# Expected: a deserialized artifact gives results of the same types as the Exported that was serialized.
# It is so: that a result is weakly typed (it comes from Python numbers alone) is in out_avals, and is not serialized.
# So what is computed with the result has another dtype: weak float32 * bfloat16 is bfloat16, and float32 * bfloat16
# float32. The Exported before serialize() gives bfloat16, as jax.jit does: a test of it does not see what its readers
# get. Arguments lose it too, without an effect: the module has fixed their dtypes.
# Seen with jax and jaxlib 0.12.0.1 (jax/_src/export/serialization.py writes shape and dtype), CPython 3.12, x86_64, on
# 2026-11-28.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/weak.py" <<'PY'
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export


@jax.jit
def scale(x):
    return 1 / jnp.sqrt(1.0 * x.shape[0])


x = np.ones(4, np.float32)
live = export.export(scale)(x)
read = export.deserialize(live.serialize())
dtypes = {}
for name, call in {"jit": scale, "exported": live.call, "deserialized": read.call}.items():
    dtypes[name] = (call(x) * jnp.ones(2, jnp.bfloat16)).dtype.name
print(f"jax {jax.__version__}: {dtypes}; out_avals {live.out_avals} became {read.out_avals}")
if dtypes != {"jit": "bfloat16", "exported": "bfloat16", "deserialized": "float32"}:
    sys.exit(f"expected the deserialized function alone to give float32, found {dtypes}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 flatbuffers==25.12.19
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/weak.py"
