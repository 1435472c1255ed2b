#!/usr/bin/env bash
# Expected: jax.export refuses each callback into Python alike, whatever the sizes: "serialization of host_callbacks is
# not yet implemented", a NotImplementedError that says what is wrong.
# It is so: a pure_callback, io_callback or jax.debug.callback that takes or returns an array of a symbolic size ends the
# export with RuntimeError: std::bad_cast and nothing else, from the lowering, so that nobody sees that a callback is the
# cause (checks of equinox are such calls). One whose arrays have fixed sizes is refused in words, beside a symbolic
# size too. No public issue is known.
# Seen with jax 0.9.2 and 0.12.0.1, CPython 3.12, x86_64, on 2026-11-30: measured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/callback.py" <<'PY'
import sys

import jax
import jaxlib
import numpy as np
from jax import export
from jax.experimental import io_callback


def same(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def debug(x):
    jax.debug.callback(print, x)
    return x


def outcome(function, argument):
    try:
        export.export(jax.jit(function))(argument).serialize()
    except (NotImplementedError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "exported"


fixed = jax.ShapeDtypeStruct((3,), np.float32)
symbolic = jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32)
functions = {
    "pure_callback": lambda x: jax.pure_callback(np.sin, same(x), x),
    "io_callback": lambda x: io_callback(np.sin, same(x), x),
    "debug": debug,
    "debug beside": lambda x: debug(np.float32(1)) + x,
}
found = {name: (outcome(function, fixed), outcome(function, symbolic)) for name, function in functions.items()}
print({"jax": jax.__version__, "jaxlib": jaxlib.__version__}, found)
words = [of.startswith("NotImplementedError: ") and "callback" in of for pair in found.values() for of in pair]
bare = [pair[1] == "RuntimeError: std::bad_cast" for pair in found.values()]
if words != [True, False, True, False, True, False, True, True] or bare != [True, True, True, False]:
    sys.exit("expected std::bad_cast for arrays of a symbolic size, and words for all others")
PY
for release in 0.9.2 0.12.0.1; do
    "${PYTHON:-python3}" -m venv "$folder/$release"
    "$folder/$release/bin/pip" install --quiet "jax==$release" "jaxlib==$release" flatbuffers==25.12.19
    JAX_PLATFORMS=cpu "$folder/$release/bin/python" "$folder/callback.py"
done
