#!/usr/bin/env bash
# Expected: what jax.export.export and serialize accept can be called in the same process with any size that fits.
# It is so: since jax 0.12.0 a jax.lax.composite whose argument has a symbolic size is exported, serialized and
# deserialized without a word, and no call of it works: "Error refining shapes", in the writer's own process too, since
# StableHLO's refinement of shapes leaves composites out (https://github.com/openxla/stablehlo/issues/2779, open). jax
# 0.11.2 refuses the export instead, for several platforms too (https://github.com/jax-ml/jax/issues/40486), which
# 0.12.0 exports and calls. Composites of jax itself, such as erf, are exported with symbolic sizes and called by both.
# Seen with jax 0.11.2, 0.12.0 and 0.12.0.1, CPython 3.12, x86_64, on 2026-11-29: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/composite.py" <<'PY'
import sys

import jax
import jaxlib
import numpy as np
from jax import export, lax

x = np.array([1, 2, 3], np.float32)
symbolic = jax.ShapeDtypeStruct(export.symbolic_shape("b"), x.dtype)
square = lax.composite(lambda x: x * x, name="own.square")
erf = jax.scipy.special.erf


def outcome(function, argument, **options):
    try:
        content = export.export(jax.jit(lambda x: function(x)), **options)(argument).serialize()
    except ValueError as error:
        return "not exported: " + str(error).splitlines()[1].strip()
    try:
        export.deserialize(content).call(x)
    except ValueError as error:
        return "not called: " + str(error).splitlines()[0]
    return "called"


found = {
    "symbolic size": outcome(square, symbolic),
    "two platforms": outcome(square, x, platforms=("cpu", "tpu")),
    "erf of a symbolic size": outcome(erf, symbolic),
}
print({"jax": jax.__version__, "jaxlib": jaxlib.__version__}, found)
refused = "not exported: has 1 operand(s), but decomposition has 2"
unrefined = "not called: Error refining shapes. Define JAX_DUMP_IR_TO to dump the module."
old = jax.__version_info__ < (0, 12)
expected = (refused, refused) if old else (unrefined, "called")
if tuple(found.values()) != (*expected, "called"):
    sys.exit(f"expected {expected} and erf called, found {found}")
PY
for release in 0.11.2 0.12.0.1; do
    "${PYTHON:-python3}" -m venv "$folder/$release"
    "$folder/$release/bin/pip" install --quiet "jax==$release" "jaxlib==$release" flatbuffers==25.12.19
    JAX_PLATFORMS=cpu "$folder/$release/bin/python" "$folder/composite.py"
done
