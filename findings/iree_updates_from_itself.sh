#!/usr/bin/env bash
# Expected: IREE writes a part of an array to another place of that array, as it was before: 1, 2, 3, 4 moved by one
# place is 1, 1, 2, 3.
# It is so: the result is 1, 1, 1, 1. A scatter, or a dynamic_update_slice at a place that is an argument, writes in
# place, and reads numbers that it has just written. At a constant place the result is right, and so it is where the
# part is behind an optimization_barrier.
# Seen with iree-base-compiler and iree-base-runtime 3.13.0 (llvm-cpu), CPython 3.12, x86_64, on 2026-11-29: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/update.py" <<'PY'
import importlib.metadata
import sys

import numpy as np
from iree import compiler, runtime

print(f"iree-base-compiler {importlib.metadata.version('iree-base-compiler')}")
WHOLE, PART = "tensor<4xi32>", "tensor<3xi32>"
UPDATE = f"%y = stablehlo.dynamic_update_slice %x, PART, PLACE : ({WHOLE}, {PART}, tensor<i32>) -> {WHOLE}"
BEHIND = f"%behind = stablehlo.optimization_barrier %part : {PART} "
SCATTER = f"""%rows = stablehlo.constant dense<[[1], [2], [3]]> : tensor<3x1xi32>
  %y = "stablehlo.scatter"(%x, %rows, %part) <{{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%old: tensor<i32>, %new: tensor<i32>):
    stablehlo.return %new : tensor<i32>
  }}) : ({WHOLE}, tensor<3x1xi32>, {PART}) -> {WHOLE}"""
PROGRAMS = {
    "scatter": SCATTER,
    "update": UPDATE.replace("PART", "%part").replace("PLACE", "%place"),
    "update at a constant": UPDATE.replace("PART", "%part").replace("PLACE", "%one"),
    "update behind a barrier": BEHIND + UPDATE.replace("PART", "%behind").replace("PLACE", "%place"),
}
found = {}
for name, program in PROGRAMS.items():
    code = compiler.tools.compile_str(
        f"""func.func @f(%x: {WHOLE}, %place: tensor<i32>) -> {WHOLE} {{
          %one = stablehlo.constant dense<1> : tensor<i32>
          %part = stablehlo.slice %x [0:3] : ({WHOLE}) -> {PART}
          {program} return %y : {WHOLE} }}""",
        input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )  # fmt: skip
    config = runtime.Config("local-sync")
    context = runtime.SystemContext(vm_modules=[runtime.VmModule.copy_buffer(config.vm_instance, code)], config=config)
    found[name] = context.modules.module["f"](np.arange(1, 5, dtype=np.int32), np.int32(1)).to_host().tolist()
    print(name, found[name])
wrong, right = [1, 1, 1, 1], [1, 1, 2, 3]
if [*found.values()] != [wrong, wrong, right, right]:
    sys.exit(f"expected {[wrong, wrong, right, right]}, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet iree-base-{compiler,runtime}==3.13.0 numpy==2.5.5
"$folder/venv/bin/python" "$folder/update.py"
