#!/usr/bin/env bash
# Expected: IREE converts each of the 256 codes of a float of 8 bits to the float32 that it stands for.
# It is so: float8_e4m3fn has two codes for NaN, and the one with a sign, 0xFF, becomes -480, a number that the type
# does not have; 0x7F becomes NaN. The code 0 of float8_e8m0fnu becomes 0 instead of 2**-127. The 256 codes of
# float8_e5m2 and float8_e4m3fnuz are right.
# Seen with iree-base-compiler and iree-base-runtime 3.13.0 (llvm-cpu), against ml_dtypes 0.6.0, CPython 3.12, x86_64,
# on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/read.py" <<'PY'
import importlib.metadata
import sys

import ml_dtypes
import numpy as np
from iree import compiler, runtime

print(f"iree-base-compiler {importlib.metadata.version('iree-base-compiler')}, ml_dtypes {ml_dtypes.__version__}")
found = {}
for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e8m0fnu"):
    code = compiler.tools.compile_str(
        f"""func.func @f(%x: tensor<256xi8>) -> tensor<256xf32> {{
          %0 = stablehlo.bitcast_convert %x : (tensor<256xi8>) -> tensor<256xf8{kind.upper()}>
          %1 = stablehlo.convert %0 : (tensor<256xf8{kind.upper()}>) -> tensor<256xf32>
          return %1 : tensor<256xf32>
        }}""",
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    config = runtime.Config("local-sync")
    context = runtime.SystemContext(vm_modules=[runtime.VmModule.copy_buffer(config.vm_instance, code)], config=config)
    codes = np.arange(256, dtype=np.uint8)
    got = context.modules.module["f"](codes.view(np.int8)).to_host()
    due = codes.view(getattr(ml_dtypes, f"float8_{kind}")).astype(np.float32)
    wrong = ~((got == due) | (np.isnan(got) & np.isnan(due)))
    found[kind] = {int(code): float(got[code]) for code in codes[wrong]}
    print(f"float8_{kind}: {found[kind]} should be {due[wrong]}")
expected = {"e4m3fn": {255: -480.0}, "e4m3fnuz": {}, "e5m2": {}, "e8m0fnu": {0: 0.0}}
if found != expected:
    sys.exit(f"expected these wrong codes: {expected}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet iree-base-{compiler,runtime}==3.13.0 ml_dtypes==0.6.0 numpy==2.5.5
"$folder/venv/bin/python" "$folder/read.py"
