"""Where do the modules of a cell go as text, when somebody asks for them (--dump-ir)?"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from export_core.matrix.cell import Cell
from export_core.matrix.errors import MatrixError

MODULE = "module.mlir"


def dump_folder(path: Path) -> Path:
    """Make the folder for all cells. Raises `MatrixError` where that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MatrixError(f"--dump-ir: cannot make the folder {path}: {error.strerror}.") from None
    return path.resolve()


def dump_of(cell: Cell, check: str, folder: Path) -> str:
    """Make the folder of a cell, ``<case>/<writer>/<reader>-<platform>``, and put the module as its writer printed it above.

    What goes in is the worker's: ``exported.mlir`` as this reader reads it, what jax dumps (``jax_dump_ir_to``), ``compiled.hlo``. Every
    further check of the golden has a folder in it, by its name.
    """
    golden = folder / cell.golden.manifest.case / cell.golden.manifest.writer.id
    own = golden / f"{cell.reader.jaxlib}-{cell.platform}" / re.sub(r"[^\w.-]+", "_", check)
    own.mkdir(parents=True, exist_ok=True)
    printed = cell.golden.folder / MODULE
    if printed.exists():
        shutil.copyfile(printed, golden / "exported.mlir")
    return str(own)
