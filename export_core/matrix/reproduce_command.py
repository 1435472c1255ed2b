"""The command that reproduces one cell, as every report prints it and `jaxexport explain` reads it."""

import os
import shlex
from collections.abc import Mapping, Sequence

from export_core.base.processes import shell_settings
from export_core.matrix.plan import Plan
from export_core.readers.cell import Cell


def reproduce_command(
    plan: Plan,
    cell: Cell,
    options: Sequence[str],
    added: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> str:
    """Return the shell command that runs one cell of a plan again, just as it was run.

    Args:
        plan: the plan.
        cell: the cell.
        options: those of `reproduce_options`.
        added: the names of variables that the policy adds to those of cells.
        variables: those of the process that ran the cell; None is this process.
    """
    golden = cell.golden.manifest
    reader = plan.spelled.get(cell.reader, cell.reader.name)
    # Without the mode, another machine would run what this one compiled, or the other way round.
    platform = cell.platform if cell.platform == "cpu" else f"{cell.platform}:{cell.mode}"
    words = ["jaxexport", "matrix", "--cases", golden.case, "--writers", golden.writer.jaxlib]
    command = shlex.join([*words, "--readers", reader, "--platforms", platform, *options])
    return with_settings(command, added, variables)


def with_settings(command: str, added: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """Return a shell command with the variables before it that decide its cells.

    See `shell_settings`.
    """
    return " ".join([*shell_settings(os.environ if variables is None else variables, added), command])
