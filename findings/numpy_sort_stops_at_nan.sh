#!/usr/bin/env bash
# Expected: NumPy sorts bfloat16 as it sorts float16: NaN comes last, and all else is in order.
# It is so: NumPy compares the dtypes of ml_dtypes by `<` alone. Numbers on different sides of a NaN stay unordered,
# without a warning. So sort and argsort are wrong, unique keeps duplicates, median is another number where NaN is due,
# and intersect1d of an array with itself is empty. float16 is right in all of them.
# Seen with numpy 2.5.5 and ml_dtypes 0.6.0, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/sort.py" <<'PY'
import sys

import ml_dtypes
import numpy as np

numbers = [1, np.nan, 3, -2, np.nan, 2, 2]
right = {}
print(f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}")
for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
    x = np.array(numbers, dtype)
    name = np.dtype(dtype).name
    print(f"{name}: sort {np.sort(x)}, unique {np.unique(x)}")
    print(f"  median {np.median(x)}, intersect1d {np.intersect1d(x, x)}")
    finite = np.sort(x).astype(np.float32)[:5]
    right[name] = [
        bool((np.diff(finite) >= 0).all()),
        np.unique(x).size == 5,
        bool(np.isnan(float(np.median(x)))),
        np.intersect1d(x, x).size > 0,
    ]
expected = {"float16": [True] * 4, "bfloat16": [False] * 4, "float8_e5m2": [False] * 4}
if right != expected:
    sys.exit(f"expected {expected}, found {right}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.5.5 ml_dtypes==0.6.0
"$folder/venv/bin/python" -W ignore "$folder/sort.py"
