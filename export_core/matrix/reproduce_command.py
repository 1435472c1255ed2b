"""The command that reproduces one cell, as every report prints it and `jaxexport explain` reads it."""

import os
import shlex
from collections.abc import Sequence

from export_core.base.processes import kernel_settings
from export_core.matrix.plan import Plan
from export_core.readers.cell import Cell


def reproduce_command(plan: Plan, cell: Cell, options: Sequence[str]) -> str:
    """The shell command that runs one cell of a plan again, just as it was run; `options` of `reproduce_options`."""
    golden = cell.golden.manifest
    reader = plan.spelled.get(cell.reader, cell.reader.name)
    # Without the mode, another machine would run what this one compiled, or the other way round.
    platform = cell.platform if cell.platform == "cpu" else f"{cell.platform}:{cell.mode}"
    words = ["jaxexport", "matrix", "--cases", golden.case, "--writers", golden.writer.jaxlib]
    command = shlex.join([*words, "--readers", reader, "--platforms", platform, *options])
    return " ".join([*kernel_settings(os.environ), command])
