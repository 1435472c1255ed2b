#!/usr/bin/env bash
# Expected: a float32 number that XLA's CPU compiler converts to an 8-bit float becomes the nearest such number, as
# with ml_dtypes.
# It is so: until jaxlib 0.7.2 the number is rounded to float16 first. One just beside the middle of two 8-bit numbers
# becomes that middle, and then the even one of the two, which is the farther one. Since 0.8.0 it is rounded once.
# Seen with jax and jaxlib 0.7.2 and 0.8.0, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/convert.py" <<'PY'
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

wrong = {}
for name in ("float8_e4m3fn", "float8_e5m2"):
    dtype = getattr(ml_dtypes, name)
    codes = np.arange(0x30, 0x60, dtype=np.uint8).view(dtype).astype(np.float32)
    middles = (codes[1:] + codes[:-1]) / 2
    # A ten-millionth beside the middle of two neighbours: float16 has the middle itself, and nothing as near.
    x = np.concatenate([middles * np.float32(1 - 2e-7), middles * np.float32(1 + 2e-7)])
    got = np.asarray(jax.jit(lambda x: x.astype(getattr(jnp, name)))(x)).astype(np.float32)
    wrong[name] = int((got != x.astype(dtype).astype(np.float32)).sum())
    print(f"jax {jax.__version__}: {wrong[name]} of {x.size} are not the nearest {name}")
expected = dict(pair.split("=") for pair in sys.argv[1:])
for name, what in expected.items():
    if (wrong[name] > 0) != (what == "twice"):
        sys.exit(f"expected {name} to be rounded {what}, found {wrong[name]} of {x.size} not the nearest")
PY
run() {
  "${PYTHON:-python3}" -m venv "$folder/$1"
  "$folder/$1/bin/pip" install --quiet "jax==$1" "jaxlib==$1"
  JAX_PLATFORMS=cpu "$folder/$1/bin/python" "$folder/convert.py" "${@:2}"
}
run 0.7.2 float8_e4m3fn=twice float8_e5m2=twice
run 0.8.0 float8_e4m3fn=once float8_e5m2=once
