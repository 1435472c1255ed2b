#!/usr/bin/env bash
# Expected: TensorStore converts float8_e8m0fnu, the type of scales in MX formats, to the power of two that it is.
# It is so: it stores and returns the bytes of such arrays right, but each conversion to another dtype (ts.cast, or a
# read into another dtype) gives another number without an error: 2 becomes -3.7e19. Other floats of 8 bits are
# converted right. ml_dtypes gives the right numbers: read the array as it is, and convert after that.
# Seen with tensorstore 0.1.86, ml_dtypes 0.6.0 and numpy 2.5.5, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/cast.py" <<'PY'
import importlib.metadata
import sys

import ml_dtypes
import numpy as np
import tensorstore as ts

print(f"tensorstore {importlib.metadata.version('tensorstore')}, ml_dtypes {ml_dtypes.__version__}")
right = {}
for name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"):
    x = np.array([0.25, 1, 2, 64], np.float32).astype(getattr(ml_dtypes, name))
    stored = ts.open({"driver": "zarr3", "kvstore": "memory://"}, dtype=name, shape=[4], create=True).result()
    stored.write(x).result()
    same = stored.read().result()
    cast = ts.cast(stored, ts.float32).read().result()
    print(f"{name}: read {same}, cast to float32 {cast}")
    right[name] = (same.tobytes() == x.tobytes(), bool((cast == x.astype(np.float32)).all()))
expected = {"float8_e4m3fn": (True, True), "float8_e5m2": (True, True), "float8_e8m0fnu": (True, False)}
if right != expected:
    sys.exit(f"expected {expected}, found {right}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorstore==0.1.86 ml_dtypes==0.6.0 numpy==2.5.5
"$folder/venv/bin/python" "$folder/cast.py"
