#!/usr/bin/env bash
# Expected: what safetensors.numpy saves, it loads; with ml_dtypes, bfloat16 and floats of 8 bits come back as they
# were.
# It is so: it writes valid files of bfloat16, float8_e4m3fn and float8_e5m2, and cannot read them all: load_file takes
# bfloat16, and raises AttributeError for floats of 8 bits, since it looks for their names in numpy. load, which reads
# the same bytes from memory, raises KeyError('BF16') for bfloat16 too. One such tensor, and no tensor of the file is
# read. safetensors.deserialize gives the bytes, which ml_dtypes can view.
# Seen with safetensors 0.8.0 (numpy.py has no such dtypes in _TYPES), ml_dtypes 0.6.0 and numpy 2.5.5, CPython 3.12,
# x86_64, on 2026-11-28.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/store.py" <<'PY'
import importlib.metadata
import sys

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy as st

print(f"safetensors {importlib.metadata.version('safetensors')}, ml_dtypes {ml_dtypes.__version__}")
found = {}
for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
    x = np.arange(3, dtype=np.int8).astype(getattr(ml_dtypes, name, name))
    data = st.save({"x": x})
    st.save_file({"x": x}, sys.argv[1])
    ((_, tensor),) = safetensors.deserialize(data)
    found[name] = [bytes(tensor["data"]) == x.tobytes()]
    for load in (lambda: st.load(data), lambda: st.load_file(sys.argv[1])):
        try:
            found[name].append(load()["x"].dtype.name)
        except (KeyError, AttributeError) as error:
            found[name].append(type(error).__name__)
    print(name, tensor["dtype"], found[name])
expected = {
    "float16": [True, "float16", "float16"],
    "bfloat16": [True, "KeyError", "bfloat16"],
    "float8_e4m3fn": [True, "KeyError", "AttributeError"],
    "float8_e5m2": [True, "KeyError", "AttributeError"],
}
if found != expected:
    sys.exit(f"expected {expected}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet safetensors==0.8.0 ml_dtypes==0.6.0 numpy==2.5.5
"$folder/venv/bin/python" "$folder/store.py" "$folder/x.safetensors"
