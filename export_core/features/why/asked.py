"""What a person says of the one cell that is meant: options, or words and commands as reports print them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from export_core.features.why.errors import WhyError
from export_core.policy.run_options import ONE_CELL, RunOptions, Selection, given_over, read_options, values_in
from export_core.run.results import RecordedRun

_WORDS = re.compile(r"(?P<golden>.+) in (?:jaxlib )?(?P<reader>\S+)(?: on (?P<platform>\S+))?")
"""A cell as messages and plans name it: ``CASE/WRITER in 0.10.2-jax0.10.2 on cpu``."""
_COMMAND = re.compile(r"(?:[A-Z_\d]+=\S* )*jaxexport matrix ")
"""A command that reproduces a cell, after the variables that it sets."""


@dataclass(frozen=True)
class Asked:
    """What a person said of the cell. What is empty was not said; each word narrows the choice."""

    cell: str = ""
    """``GOLDEN in READER on PLATFORM``, a golden, a case, the id of a cause, or a command that reproduces a cell."""
    case: str = ""
    """The case, or a glob."""
    writer: str = ""
    """The jaxlib that wrote the golden, or the name of its folder, such as 0.9.2-cpu."""
    reader: str = ""
    """A jaxlib, one with its jax (0.11.2-jax0.12.0.1), or the path of its wheel."""
    platform: str = ""
    """A platform, also with a mode: cuda:run."""
    results: Path | None = None
    """The folder of a finished run; None is the usual one, if there is one."""
    selection: Selection = field(default_factory=Selection)
    """Where unpublished releases come from, and which devices are compiled for; nothing else of it counts."""
    run: RunOptions = field(default_factory=RunOptions)
    """The goldens, the policy, the day, and how the cell is run."""


def of_command(asked: Asked) -> Asked:
    """What was asked, with what a command says that reproduces a cell, as findings print it: it names everything.

    An option that was given beside the command counts. Raises `WhyError` for what is no such command.
    """
    if not _COMMAND.match(asked.cell):
        return asked
    try:
        values = values_in(shlex.split(asked.cell))
        taken = {name: value for name, value in values.items() if name in ONE_CELL}
        selection, run = read_options(Selection, taken), read_options(RunOptions, taken)
    except ValueError as error:
        raise WhyError(f"{asked.cell}: expected a command as `reproduce` of a finding has it: {error}.") from None
    return replace(
        asked,
        cell="",
        case="".join(values.get("cases", ())),
        writer=values.get("writers", ""),
        reader=values.get("readers", ""),
        platform=values.get("platforms", ""),
        selection=given_over(asked.selection, selection),
        run=given_over(asked.run, run),
    )


def of_words(asked: Asked, run: RecordedRun | None) -> Asked:
    """What was asked, with the parts of a cell in words as options. `run` has the causes that may be named.

    Raises `WhyError` where an option that was given too says otherwise.
    """
    if not asked.cell:
        return asked
    if run and (cause := next((cause for cause in run.summary.causes if cause.id == asked.cell), None)):
        key = cause.example
        words = {"golden": key.golden, "reader": f"{key.jaxlib}-jax{key.jax}", "platform": key.platform}
    elif match := _WORDS.fullmatch(asked.cell):
        words = {name: value or "" for name, value in match.groupdict().items()}
    else:
        words = {"golden": asked.cell}
    for name in ("reader", "platform"):
        word, option = words.get(name, ""), getattr(asked, name)
        if word and option and word != option:
            raise WhyError(f"--{name} {option}: the cell already says {word}. Leave out one of them.")
    return replace(
        asked,
        cell=words["golden"],
        reader=asked.reader or words.get("reader", ""),
        platform=asked.platform or words.get("platform", ""),
    )
