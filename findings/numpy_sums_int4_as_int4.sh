#!/usr/bin/env bash
# Expected: np.sum of int4 adds in int64, np.mean and np.std in float64, as for int8, or they refuse it.
# It is so: they stay int4. The sum of ten ones is -6, and that of 16 is 0. The mean of 7 and 6 is -1, as 13 wraps to
# -3, and a mean is a whole number even where nothing wraps: that of 1 and 2 is 1. The standard deviation of a thousand
# weights from -8 to 7 is 0, where 4.6 is due. prod, cumsum, trace, median and average are int4 too. Nothing warns.
# x + 1 is int8, so who tries that sees no fault. Give dtype=np.float64 to sum, mean and std, or convert first. jnp.sum
# refuses int4 with a ValueError ("Invalid integer data type 'V'").
# Seen with numpy 2.5.5 (_core/_methods.py asks for a subclass of np.integer, and no dtype of ml_dtypes is one) and
# ml_dtypes 0.6.0, jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-11-30: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/int4.py" <<'PY'
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

print(f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}, jax {jax.__version__}")
weights = np.random.default_rng(0).integers(-8, 8, 1000)
cases = {
    "sum of ten ones": (np.sum, np.ones(10)),
    "sum of 16 ones": (np.sum, np.ones(16)),
    "mean of 7 and 6": (np.mean, np.array([7, 6])),
    "mean of 1 and 2": (np.mean, np.array([1, 2])),
    "median of 1 and 2": (np.median, np.array([1, 2])),
    "std of weights": (np.std, weights),
}
found = {}
for name, (function, numbers) in cases.items():
    by_int4, by_int8 = (function(numbers.astype(dtype)) for dtype in (ml_dtypes.int4, np.int8))
    found[name] = (int(by_int4), round(float(by_int8), 1))
    widened = function(numbers.astype(ml_dtypes.int4), dtype=np.float64) if function is not np.median else by_int8
    print(f"{name}: int4 {by_int4} ({by_int4.dtype}), int8 {by_int8} ({by_int8.dtype}), by dtype=float64 {widened}")
    if by_int4.dtype != ml_dtypes.int4 or widened != by_int8:
        sys.exit("expected int4, and the numbers of int8 with dtype=np.float64")
try:
    refused = str(jnp.sum(jnp.ones(10, jnp.int4)))
except ValueError as error:
    refused = str(error)
print(f"jnp.sum: {refused}")
due = dict(zip(cases, ((-6, 10), (0, 16), (-1, 6.5), (1, 1.5), (1, 1.5), (0, 4.6)), strict=True))
if found != due or "Invalid integer data type" not in refused:
    sys.exit(f"expected {due}, and a ValueError of jax")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.5.5 ml_dtypes==0.6.0 jax==0.12.0.1 jaxlib==0.12.0.1
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/int4.py"
