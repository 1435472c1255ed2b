#!/usr/bin/env bash
# Expected: np.nanmean, nansum and nan_to_num leave out the NaNs of a bfloat16 array, as those of float16, or refuse it.
# It is so: they return NaN, and nan_to_num changes nothing; nanargmax names the place of a NaN, and nancumsum is NaN.
# No warning is given. They look for NaN only where the type inherits from np.inexact, and no dtype of ml_dtypes does.
# nanmax and nanmin work, as they call fmax. So a mask "nan_to_num(x)" lets NaN through.
# Seen with numpy 2.5.5 (lib/_nanfunctions_impl.py, lib/_type_check_impl.py) and ml_dtypes 0.6.0, CPython 3.12, x86_64,
# on 2026-11-28.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/nan.py" <<'PY'
import sys

import ml_dtypes
import numpy as np

print(f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}")
left_out = {}
for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
    x = np.array([1, np.nan, 3, 2], dtype)
    name = np.dtype(dtype).name
    values = {
        "nanmax": np.nanmax(x),
        "nanmean": np.nanmean(x),
        "nansum": np.nansum(x),
        "nancumsum": np.nancumsum(x)[-1],
        "nan_to_num": np.nan_to_num(x)[1],
        "nanargmax": x[np.nanargmax(x)],
    }
    print(name, {key: float(value) for key, value in values.items()})
    left_out[name] = [key for key, value in values.items() if not np.isnan(float(value))]
all_six = ["nanmax", "nanmean", "nansum", "nancumsum", "nan_to_num", "nanargmax"]
expected = {"float16": all_six, "bfloat16": ["nanmax"], "float8_e4m3fn": ["nanmax"]}
if left_out != expected:
    sys.exit(f"expected NaN to be left out by {expected}, found {left_out}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.5.5 ml_dtypes==0.6.0
"$folder/venv/bin/python" -W ignore "$folder/nan.py"
