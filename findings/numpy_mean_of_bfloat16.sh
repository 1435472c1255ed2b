#!/usr/bin/env bash
# Expected: np.mean of bfloat16 adds in float32, as it does for float16, and a mean of ones is 1.
# It is so: it adds in bfloat16, one by one, until 256 + 1 is 256 again. The mean of 3,000 ones is 0.0854. A mean along
# the last of two axes of 100 is right by luck, as each sum is short. float8_e4m3fn stops at 16: 3,000 ones have a mean
# of 0.00586, and for float8_e8m0fnu the mean is NaN, since 0 is where a sum starts. jax.numpy adds in float32.
# Seen with numpy 2.5.5 (_core/_methods.py chooses float32 for float16 alone) and ml_dtypes 0.6.0, CPython 3.12, x86_64,
# on 2026-11-28.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/mean.py" <<'PY'
import sys

import ml_dtypes
import numpy as np

print(f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}")
means = {}
for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu):
    x = np.ones(3000, np.float32).astype(dtype)
    means[np.dtype(dtype).name] = float(x.mean())
    print(f"{np.dtype(dtype).name}: mean {x.mean()}, with dtype=float32 {x.mean(dtype=np.float32)}")
if means["float16"] != 1 or abs(means["bfloat16"] - 256 / 3000) > 1e-3:
    sys.exit(f"expected float16 to be added in float32, and bfloat16 in itself, found {means}")
if abs(means["float8_e4m3fn"] - 16 / 3000) > 1e-3 or not np.isnan(means["float8_e8m0fnu"]):
    sys.exit(f"expected floats of 8 bits to be added in themselves, found {means}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.5.5 ml_dtypes==0.6.0
"$folder/venv/bin/python" -W ignore "$folder/mean.py"
