#!/usr/bin/env bash
# Expected: the compiler_options of a jax.jit are part of its artifact, or jax.export refuses such a function.
# It is so: they are dropped without a warning, also by Exported.call in the process that exports. An option that no
# compiler knows shows it: jax.jit refuses the call ("No such compile option"), and the artifact runs. A reader who
# needs an option writes it again: jax.jit(exported.call, compiler_options=...).
# Seen with jax and jaxlib 0.12.0.1, CPython 3.12, x86_64, on 2026-11-28: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/options.py" <<'PY'
import sys

import jax
import numpy as np
from jax import export

OPTIONS = {"xla_there_is_no_such_option": True}
x = np.ones(4, np.float32)
function = jax.jit(lambda x: x + 1, compiler_options=OPTIONS)
exported = export.export(function)(x)
read = export.deserialize(exported.serialize())
calls = {
    "jit": function,
    "exported": exported.call,
    "deserialized": read.call,
    "deserialized, with options again": jax.jit(read.call, compiler_options=OPTIONS),
}
found = {}
for name, call in calls.items():
    try:
        found[name] = call(x).tolist() == [2.0] * 4
    except Exception as error:
        found[name] = "refused"
        print(f"{name}: {error}")
print(f"jax {jax.__version__}: {found}")
if list(found.values()) != ["refused", True, True, "refused"]:
    sys.exit(f"expected jax.export alone to drop the options, found {found}")
PY
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 flatbuffers==25.12.19
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/options.py"
