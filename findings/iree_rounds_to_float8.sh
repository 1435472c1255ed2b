#!/usr/bin/env bash
# Expected: IREE rounds a float32 number to the nearest 8-bit float.
# It is so: what lies between the largest subnormal and the smallest normal number of a type, and is nearer to the
# normal one, becomes zero. For float8_e4m3fn 0.0153 gives 0, where 0.0156 is due; six other types have the same gap.
# float8_e8m0fnu is truncated instead of rounded (1e9 gives 536,870,912, not 1,073,741,824), and a negative number
# loses its sign, where NaN is due.
# Seen with iree-base-compiler and iree-base-runtime 3.13.0 (llvm-cpu), against ml_dtypes 0.6.0, CPython 3.12, x86_64,
# on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/round.py" <<'PY'
import importlib.metadata
import sys

import ml_dtypes
import numpy as np
from iree import compiler, runtime

print(f"iree-base-compiler {importlib.metadata.version('iree-base-compiler')}, ml_dtypes {ml_dtypes.__version__}")
TYPES = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
found = {}
for kind in TYPES:
    name, mlir = f"float8_{kind}", f"f8{kind.upper()}"
    dtype = getattr(ml_dtypes, name)
    smallest = float(ml_dtypes.finfo(dtype).smallest_normal) if name != "float8_e8m0fnu" else 1.0
    x = np.array([smallest * 0.98, smallest * 1.01, 1e9 if name == "float8_e8m0fnu" else 3.3, -2], np.float32)
    code = compiler.tools.compile_str(
        f"""func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
          %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4x{mlir}>
          %1 = stablehlo.convert %0 : (tensor<4x{mlir}>) -> tensor<4xf32>
          return %1 : tensor<4xf32>
        }}""",
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    config = runtime.Config("local-sync")
    context = runtime.SystemContext(vm_modules=[runtime.VmModule.copy_buffer(config.vm_instance, code)], config=config)
    got, due = context.modules.module["f"](x).to_host(), x.astype(dtype).astype(np.float32)
    found[name] = ((got == due) | (np.isnan(got) & np.isnan(due))).tolist()
    print(f"{name}: {x} gives {got}, due {due}")
expected = {f"float8_{kind}": [False, True, True, True] for kind in TYPES}
expected["float8_e8m0fnu"] = [False, True, False, False]
if found != expected:
    sys.exit(f"expected these numbers to be right: {expected}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet iree-base-{compiler,runtime}==3.13.0 ml_dtypes==0.6.0 numpy==2.5.5
"$folder/venv/bin/python" "$folder/round.py"
