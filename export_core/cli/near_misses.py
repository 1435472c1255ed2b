"""What is said of a command or an option that does not exist: which one is likely to be meant, and nothing else."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_COMMANDS = {
    "plan": "jaxexport matrix --dry-run",
    "merge": "jaxexport judge DIR DIR",
    "badge": "jaxexport report --badge FILE",
    "trend": "jaxexport report --trend",
    "compare": "jaxexport judge NEW --baseline OLD",
    "open": "jaxexport report --open",
    "run": "jaxexport matrix",
    "test": "jaxexport matrix",
    "check": "jaxexport matrix",
    "replay": "jaxexport matrix",
    "export": "pytest --update-goldens",
    "update": "pytest --update-goldens",
    "list": "jaxexport goldens list",
    "show": "jaxexport inspect CASE/WRITER",
    "readers": "jaxexport releases list",
    "calendar": "jaxexport releases list",
    "clean": "jaxexport environments --clean",
    "cache": "jaxexport environments",
    "deploy": "jaxexport can-i-deploy",
    "help": "jaxexport --help",
    "version": "jaxexport --version",
    "goldens update": "pytest --update-goldens",
    "goldens show": "jaxexport inspect CASE/WRITER",
    "goldens coverage": "jaxexport goldens list --coverage",
    "goldens noise": "jaxexport goldens verify --noise",
    "goldens import": "jaxexport goldens add --from FOLDER",
    "goldens delete": "jaxexport goldens prune",
    "goldens remove": "jaxexport goldens prune",
    "policy known": "jaxexport policy show --known",
    "policy schema": "jaxexport policy show --schema",
    "policy list": "jaxexport policy show",
}
"""What people type, after `jaxexport`, and the command that does it."""
_OPTIONS = {"--delete": "--yes", "--force": "--yes", "-y": "--yes", "--out": "--output", "--verbose": "--full"}
"""Options of other programs, and what they are called here."""
_CLOSE = 0.75  # How alike two names are, of which one is likely the other misspelled; --html and --help are 0.67.
_MOST = 3  # An option that more commands have, such as --json, says nothing of which one is meant.
_FIRST = ("report", "matrix")  # Named first, where several commands have an option.


def meant_command(group: click.Group, ctx: click.Context, name: str) -> str:
    """A sentence that names the command that a word after `jaxexport`, or after a group of commands, stands for."""
    typed = " ".join((*ctx.command_path.split()[1:], name))
    if known := _COMMANDS.get(typed):
        return f" `{known}` does that."
    if match := _close(name, group.commands):
        return f" Did you mean {match!r}?"
    found = [words for words, _ in _every_command(ctx) if words[1:] == (name,)]
    return f" Did you mean `jaxexport {' '.join(found[0])}`?" if len(found) == 1 else ""


def meant_option(command: click.Command, ctx: click.Context, option: str) -> str:
    """A sentence that names the option of this command, or of another one, that is likely to be meant."""
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    if match := _OPTIONS.get(option, ""):
        match = match if match in own else ""
    if match := match or _close(option, (name for name in own if name.startswith("--"))):
        return f" Did you mean {match!r}?"
    found = [words for words, other in _every_command(ctx) if any(option in param.opts for param in other.params)]
    found.sort(key=lambda words: words[0] not in _FIRST)
    found.sort(key=lambda words: words[0] != _FIRST[0])
    return f" Did you mean `jaxexport {' '.join(found[0])} {option}`?" if 0 < len(found) <= _MOST else ""


def _every_command(ctx: click.Context) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands with the words after `jaxexport` that name them."""
    root = ctx.find_root().command
    for name, command in root.commands.items() if isinstance(root, click.Group) else ():
        yield (name,), command
        for below, inner in command.commands.items() if isinstance(command, click.Group) else ():
            yield (name, below), inner


def _close(name: str, known: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=_CLOSE)), "")
