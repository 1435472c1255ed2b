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
        plan: the plan, which knows how each reader was named.
        cell: the cell, in the mode in which it was run.
        options: the options of the run, as `reproduce_options` returns them.
        added: the names of the environment variables that the policy passes to cells in addition.
        variables: the environment variables of the process that ran the cell; None means those of this process.
    """
    golden = cell.golden.manifest
    reader = plan.spelled.get(cell.reader, cell.reader.name)
    # Without the mode, another machine would run what this one compiled, or the other way round.
    platform = cell.platform if cell.platform == "cpu" else f"{cell.platform}:{cell.mode}"
    words = ["jaxexport", "matrix", "--cases", golden.case, "--writers", golden.writer.jaxlib]
    command = shlex.join([*words, "--readers", reader, "--platforms", platform, *options])
    return with_settings(command, added, variables)


def with_settings(command: str, added: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """Return a shell command, preceded by the settings of the environment variables that decide its cells.

    `added` names the variables that the policy passes to cells in addition. `variables` are all that the process had;
    None means those of this process. See `shell_settings`.
    """
    return " ".join([*shell_settings(os.environ if variables is None else variables, added), command])
