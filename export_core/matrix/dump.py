"""The folders into which the modules of cells are written as text (--dump-ir)."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from export_core.base.untrusted import read_regular
from export_core.matrix.cell import Cell
from export_core.matrix.errors import MatrixError

MODULE = "module.mlir"


def make_dump_folder(path: Path) -> Path:
    """Make the folder for all cells. Raises `MatrixError` where that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MatrixError(f"--dump-ir: cannot make the folder {path}: {error.strerror}.") from None
    return path.resolve()


def cell_dump_folder(cell: Cell, check: str, folder: Path) -> str:
    """Make the folder of a cell, ``<case>/<writer>/<reader>-<platform>``, and put the writer's module above it.

    The worker writes into it: ``exported.mlir`` as this reader reads it, what jax dumps (``jax_dump_ir_to``) and
    ``compiled.hlo``. Each further check of the golden has a folder of its own in it, by its name.
    """
    golden = folder / cell.golden.manifest.case / cell.golden.manifest.writer.id
    own = golden / f"{cell.reader.jaxlib}-{cell.platform}" / re.sub(r"[^\w.-]+", "_", check)
    own.mkdir(parents=True, exist_ok=True)
    writers_module = cell.golden.folder / MODULE
    with contextlib.suppress(FileNotFoundError):
        (golden / "exported.mlir").write_bytes(read_regular(writers_module))
    return str(own)
