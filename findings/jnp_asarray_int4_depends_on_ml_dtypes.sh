#!/usr/bin/env bash
# Expected: jnp.asarray(x, dtype=jnp.int4) and x.astype(jnp.int4) in a jitted function give the same numbers, and which
# ml_dtypes is installed changes neither: jax has its own conversion.
# It is so: asarray lets NumPy convert on the host, by ml_dtypes' cast, and the jitted conversion clamps. For 9.0 they
# give -7 and 7 with ml_dtypes 0.6.0, which wraps, and 0 and 7 with 0.7.0, which gives 0 for what int4 cannot hold, and
# warns once. So an array of int4 or uint4 weights that was quantized without clipping changes when ml_dtypes is
# upgraded, with the same jax and NumPy; a test whose function or arguments are made so gets other inputs. Clip first:
# then all agree. Integers wrap in all of them, also jitted: 9 is -7.
# Seen with ml_dtypes 0.6.0 and 0.7.0, numpy 2.4.6, jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-12-01:
# measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/int4.py" <<'PY'
import json
import sys
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

floats = np.array([-9, -8, 7, 9, 200], np.float32)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = {
        "asarray": jnp.asarray(floats, dtype=jnp.int4),
        "jitted": jax.jit(lambda x: x.astype(jnp.int4))(floats),
        "asarray, clipped": jnp.asarray(np.clip(floats, -8, 7), dtype=jnp.int4),
        "integers, jitted": jax.jit(lambda x: x.astype(jnp.int4))(floats.astype(np.int32)),
    }
numbers = {name: np.asarray(array).astype(int).tolist() for name, array in found.items()}
warned = sorted({str(one.message) for one in caught})
print(f"ml_dtypes {ml_dtypes.__version__}, numpy {np.__version__}, jax {jax.__version__}: {floats.tolist()}")
print(*(f"  {name}: {values}" for name, values in numbers.items()), f"  warnings: {warned}", sep="\n")
due = json.loads(sys.argv[1])
clamped = [-8, -8, 7, 7, 7]
if numbers != {"asarray": due, "jitted": clamped, "asarray, clipped": clamped, "integers, jitted": [7, -8, 7, -7, -8]}:
    sys.exit(f"expected {due} by asarray, and {clamped} jitted or clipped")
if any("invalid value" in text for text in warned) != (ml_dtypes.__version__ == "0.7.0"):
    sys.exit("expected a warning by 0.7.0 alone")
PY
for pair in "0.6.0 [7,-8,7,-7,-8]" "0.7.0 [0,-8,7,0,0]"; do
    read -r version due <<< "$pair"
    "${PYTHON:-python3}" -m venv "$folder/$version"
    "$folder/$version/bin/pip" install --quiet numpy==2.4.6 "ml_dtypes==$version" jax==0.12.0.1 jaxlib==0.12.0.1
    JAX_PLATFORMS=cpu "$folder/$version/bin/python" "$folder/int4.py" "$due"
done
