"""The script that runs every example program with each planted error, in a writer's environment.

`python -m studies.numbers.wrong DIR [PROGRAM…]` writes outputs to DIR/PROGRAM.KIND.npz. It needs jax and numpy only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax

from export_core.readers.worker.jaxlib_worker import save_leaves
from studies.corpus.programs.planted import PROGRAMS


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or PROGRAMS:
        program = PROGRAMS[name]
        jax.config.update("jax_enable_x64", program.x64)
        for kind, function in program.variants.items():
            outputs = jax.tree_util.tree_leaves(jax.jit(function)(*program.arguments))
            save_leaves(str(folder / f"{name}.{kind}.npz"), outputs)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
