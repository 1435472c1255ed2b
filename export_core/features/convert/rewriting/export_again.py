"""The program that exports an artifact again, in a process of another release, in that release's format.

``export_again.py FOLDER`` reads job.json and original.jaxexport in the folder, and writes again.jaxexport and
result.json. It works on every jax that has jax.export, and imports nothing of this project:

    {"vjp_order": 1, "x64": false}
    {"by": "0.11.0"}   or   {"refused": "why"}
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import jax
import jaxlib.version

LONGEST_REASON = 400


def main(folder: Path) -> None:
    """Export the artifact in a folder again, and write result.json there: the jaxlib that did it, or the refusal."""
    job = json.loads((folder / "job.json").read_text())
    jax.config.update("jax_enable_x64", job["x64"])
    result = {"by": jaxlib.version.__version__}
    try:
        data = exported_again((folder / "original.jaxexport").read_bytes(), job["vjp_order"])
        (folder / "again.jaxexport").write_bytes(data)
    except Exception as error:  # whatever it is, this release does not export it
        result = {"refused": f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]}
    (folder / "result.json").write_text(json.dumps(result))


def exported_again(data: bytes, vjp_order: int) -> bytes:
    """Deserialize an artifact and export its call, for the same platforms and with the same checks disabled."""
    is_new = jax.__version_info__ >= (0, 4, 30)
    export: Any = importlib.import_module("jax.export" if is_new else "jax.experimental.export")
    original = export.deserialize(bytearray(data))
    # Symbolic dimensions stay symbolic: all of them belong to the scope of the artifact.
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in original.in_avals]
    args, kwargs = jax.tree_util.tree_unflatten(original.in_tree, shapes)

    def call(*args: Any, **kwargs: Any) -> Any:
        return original.call(*args, **kwargs)

    call.__name__ = original.fun_name
    again = export.export(jax.jit(call), platforms=original.platforms, disabled_checks=original.disabled_safety_checks)(
        *args, **kwargs
    )
    return bytes(again.serialize(vjp_order=vjp_order))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
