#!/usr/bin/env bash
# Expected: for two matrices, a @ b and np.dot(a, b) are the same numbers in the same dtype.
# It is so: for dtypes of ml_dtypes, `@` and np.vecdot compute in another type and return it, since a ufunc takes the
# first loop to which both can be cast: float32 for bfloat16 and floats of 8 bits, int8 for int4. np.dot, np.inner and
# np.tensordot stay in the type. So a float8_e4m3fn dot of 1,000 ones is NaN where `@` is 1,000, and for int4 it is -8
# where `@` is -24, which has wrapped at 8 bits.
# Seen with numpy 2.5.5 and ml_dtypes 0.6.0, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/matmul.py" <<'PY'
import sys

import ml_dtypes
import numpy as np

print(f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}")
found = {}
for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4):
    a = np.ones((2, 1000), np.int8).astype(dtype)
    by_operator, by_dot = a @ a.T, np.dot(a, a.T)
    name = np.dtype(dtype).name
    print(f"{name}: @ {by_operator.dtype} {by_operator[0, 0]}, dot {by_dot.dtype} {by_dot[0, 0]}")
    found[name] = (by_operator.dtype.name, float(by_operator[0, 0]), by_dot.dtype.name, float(by_dot[0, 0]))
expected = {
    "float16": ("float16", 1000.0, "float16", 1000.0),
    "bfloat16": ("float32", 1000.0, "bfloat16", 1000.0),
    "float8_e4m3fn": ("float32", 1000.0, "float8_e4m3fn", float("nan")),
    "int4": ("int8", -24.0, "int4", -8.0),
}
if str(found) != str(expected):
    sys.exit(f"expected {expected}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.5.5 ml_dtypes==0.6.0
"$folder/venv/bin/python" -W ignore "$folder/matmul.py"
