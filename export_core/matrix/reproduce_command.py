"""The command that reproduces one cell, as every report prints it and `jaxexport explain` reads it."""

import contextlib
import itertools
import os
import re
import shlex
from collections.abc import Mapping, Sequence

from export_core.base.processes import shell_settings
from export_core.matrix.plan import Plan
from export_core.policy.run_options import OPTIONS, CellOptions
from export_core.readers.cell import Cell

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")  # A variable that a shell sets for one command.
_TIMEOUT = OPTIONS["timeout"].flag
_MORE_TIME = 4
"""The factor by which a longer limit exceeds the one that ended a cell, in the command that runs it again."""
_QUOTES = re.compile(r"[\"'\\]")


def reproduce_command(
    plan: Plan,
    cell: Cell,
    options: Sequence[str],
    added: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> str:
    """Return the shell command that runs one cell of a plan again, in the same way.

    Args:
        plan: The plan, which has the name of each reader as it was given.
        cell: The cell, in the mode in which it was run.
        options: The options of the run, as `reproduce_options` returns them.
        added: The names of further environment variables that the policy passes to cells.
        variables: The environment variables of the process that ran the cell; None means those of this process.
    """
    golden = cell.golden.manifest
    reader = plan.spelled.get(cell.reader, cell.reader.name)
    # Without the mode, another machine would run what this one compiled, or the other way round.
    platform = cell.platform if cell.platform == "cpu" else f"{cell.platform}:{cell.mode}"
    words = ["jaxexport", "matrix", "--cases", golden.case, "--writers", golden.writer.jaxlib]
    # Else a run of this cell alone ends as one that tests no promise, exit code 3, although it was meant so. What
    # another runtime refuses may turn out not to be promised.
    decides = cell.decides and (cell.deployed or not cell.reader.runtime)
    accepted = [] if decides else ["--unpromised", "reproduced"]
    command = shlex.join([*words, "--readers", reader, "--platforms", platform, *accepted, *options])
    return with_settings(command, added, variables)


def with_settings(command: str, added: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """Return a shell command with assignments of the environment variables in front that can change its cells.

    `variables` are all variables of the process that ran the cells; None means those of this process. `added` are the
    names of further variables that the policy passes to cells. See `shell_settings`.
    """
    return " ".join([*shell_settings(os.environ if variables is None else variables, added), command])


def command_parts(command: str) -> tuple[list[str], list[str]]:
    """Return the variable assignments at the start of a shell command, quoted for a shell, and its other words.

    Both are empty if the text is not a valid shell command, which may happen in results from elsewhere.
    """
    try:
        # `shlex` takes 0.1 ms, and a run may have 100,000 commands, most of them without a quote.
        given = shlex.split(command) if _QUOTES.search(command) else command.split()
    except ValueError:
        return [], []
    assigned = [*itertools.takewhile(_ASSIGNMENT.match, given)]
    settings = dict(word.split("=", 1) for word in assigned)
    return shell_settings(settings, settings), given[len(assigned) :]


def with_options(command: str, options: Mapping[str, str]) -> str:
    """Return a shell command with these options set to these values; options that it lacks are added."""
    settings, words = command_parts(command)
    if not words or not options:
        return command
    for option, value in options.items():
        if option in words[:-1]:
            words[words.index(option) + 1] = value
        else:
            end = words.index("--no-cache") if "--no-cache" in words else len(words)
            words[end:end] = [option, value]
    return " ".join([*settings, shlex.join(words)])


def longer_limit(command: str) -> str:
    """Return a value for --timeout that is several times as long as the limit in a command that reproduces a cell.

    It is at least the default limit.
    """
    _, words = command_parts(command)
    seconds = CellOptions.timeout
    with contextlib.suppress(ValueError):  # results of others may hold any text
        seconds = float(dict(itertools.pairwise(words)).get(_TIMEOUT, seconds))
    return OPTIONS["timeout"].write(max(seconds * _MORE_TIME, CellOptions.timeout))


def with_more_time(command: str) -> str:
    """Return a command that reproduces a cell with its time limit made several times as long."""
    return with_options(command, {_TIMEOUT: longer_limit(command)})
