"""What a person says of the one cell that is meant: options, or words and commands as reports print them."""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from export_core.runs.results import RecordedRun
from export_core.why.errors import WhyError

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
    goldens: Path | None = None
    """The folder of goldens; None is that of the policy."""
    wheels: tuple[str, ...] = ()
    """Folders with releases that are not published."""
    indexes: tuple[str, ...] = ()
    """Package indexes with releases that are not published."""
    targets: tuple[str, ...] = ()
    """Other devices to compile for than the usual ones: cuda=a100."""
    policy_file: str | None = None
    """The file of the policy; None is that of the project."""


def in_options(asked: Asked, run: RecordedRun | None) -> Asked:
    """The same with its words as options. `run` has the causes that may be named. Raises `WhyError`."""
    return _of_words(_of_command(asked), run)


def _of_command(asked: Asked) -> Asked:
    """The same with what a command says that reproduces a cell, as findings print it: it names everything."""
    if not _COMMAND.match(asked.cell):
        return asked
    try:
        words = shlex.split(asked.cell)
    except ValueError as error:
        raise WhyError(f"{asked.cell}: expected a command as `reproduce` of a finding has it: {error}.") from None
    values: dict[str, list[str]] = {}
    for option, value in itertools.pairwise(words):
        values.setdefault(option, []).append(value)
    goldens = values.get("--goldens", [])
    return replace(
        asked,
        cell="",
        case="".join(values.get("--cases", ())),
        writer="".join(values.get("--writers", ())),
        reader="".join(values.get("--readers", ())),
        platform="".join(values.get("--platforms", ())),
        goldens=asked.goldens or (Path(goldens[0]) if goldens else None),
        wheels=asked.wheels or tuple(values.get("--wheels", ())),
        indexes=asked.indexes or tuple(values.get("--index", ())),
        targets=asked.targets or tuple(values.get("--target", ())),
    )


def _of_words(asked: Asked, run: RecordedRun | None) -> Asked:
    """The same with the parts of a cell in words: an option that was given too has to say the same."""
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
