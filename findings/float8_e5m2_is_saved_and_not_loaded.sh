#!/usr/bin/env bash
# Expected: float8_e5m2 is stored like the other floats of 8 bits: NumPy and h5py take it as opaque bytes.
# It is so: of all floats of ml_dtypes it alone has the kind "f", so it is written as "<f1". np.save and np.savez write
# it without an error, and np.load cannot read the file at all: "descr is not a valid dtype descriptor: '<f1'". h5py
# refuses it ("Unsupported float type"), and stores float8_e4m3fn. A view as uint8 can be stored by both.
# Seen with numpy 2.5.5, ml_dtypes 0.6.0 and h5py 3.16.0, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/store.py" <<'PY'
import io
import sys

import h5py
import ml_dtypes
import numpy as np

print(f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}, h5py {h5py.__version__}")


def by_numpy(x):
    file = io.BytesIO()
    np.save(file, x)
    file.seek(0)
    return np.load(file).tobytes() == x.tobytes()


def by_h5py(x):
    with h5py.File("x.h5", "w", driver="core", backing_store=False) as file:
        file["x"] = x
        return file["x"][:].tobytes() == x.tobytes()


found = {}
for name in ("float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz"):
    x = np.arange(3, dtype=np.int8).astype(getattr(ml_dtypes, name))
    found[name] = [x.dtype.kind]
    for store in (by_numpy, by_h5py):
        try:
            found[name].append(store(x))
        except (TypeError, ValueError) as error:
            print(f"{name} {store.__name__}: {error}")
            found[name].append(type(error).__name__)
    print(name, found[name])
opaque = ["V", True, True]
expected = {"float8_e4m3fn": opaque, "float8_e5m2": ["f", "ValueError", "TypeError"], "float8_e5m2fnuz": opaque}
if found != expected:
    sys.exit(f"expected {expected}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.5.5 ml_dtypes==0.6.0 h5py==3.16.0
"$folder/venv/bin/python" "$folder/store.py"
