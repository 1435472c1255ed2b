"""Every command with its arguments, options and examples, as `--help` has them. What many take is described once."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from export_core.cli.app import jaxexport
from export_core.cli.help import HelpfulCommand, HelpfulGroup
from tools.reference.markdown import code

NAME = "jaxexport"
ROOT = Path(__file__).parents[2]
MANY = 2
"""An option that this many commands take, with the same text, is described once."""

Option = tuple[str, str]


def every_command() -> str:
    """All commands, in the sections of the help."""
    assert isinstance(jaxexport, HelpfulGroup)
    common = _common()
    return "\n".join(
        line for title, commands in jaxexport.in_sections().items() for line in _section(title, commands, common)
    )


def common_options() -> str:
    """The options that many commands take; where two have one name, with their commands."""
    common = _common()
    times = Counter(_short(names) for names, _ in common)
    lines = []
    for (names, meaning), commands in common.items():
        whose = f" ({', '.join(commands)})" if times[_short(names)] > 1 else ""
        lines.append(f"- {code(names)}{whose}: {' '.join(meaning.split())}\n")
    return "".join(lines)


def own_options() -> str:
    """The options of `jaxexport` itself."""
    return _lines(_options(click.Context(jaxexport, info_name=NAME)))


def _common() -> dict[Option, list[str]]:
    """The options of at least `MANY` commands, by name, with these commands."""
    found: dict[Option, list[str]] = {}
    for path, command in _runnable(jaxexport, ""):
        for option in _options(click.Context(command, info_name=command.name)):
            found.setdefault(option, []).append(path)
    return {option: commands for option, commands in sorted(found.items()) if len(commands) >= MANY}


def _runnable(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, with what is typed after `jaxexport`."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _runnable(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def _short(names: str) -> str:
    """An option without its value and its other names."""
    return names.split(" ")[0].rstrip(",")


def _section(title: str, commands: Sequence[click.Command], common: Mapping[Option, list[str]]) -> Iterator[str]:
    yield f"## {title}\n"
    parent = click.Context(jaxexport, info_name=NAME)
    for command in commands:
        yield from _command(command, parent, common)


def _command(command: click.Command, parent: click.Context, common: Mapping[Option, list[str]]) -> Iterator[str]:
    context = click.Context(command, info_name=command.name, parent=parent)
    yield f"### {context.command_path}\n"
    if isinstance(command, click.Group):
        yield f"{_paragraphs(command)}\n"
        for name in command.list_commands(context):
            yield from _command(command.commands[name], context, common)
        return
    assert isinstance(command, HelpfulCommand)
    page = posixpath.relpath(command.page, "docs/reference")
    arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    more = "" if page == "commands.md" else f" More: [{_title(command.page)}]({page})."
    if arguments:
        yield f"`{' '.join([context.command_path, *arguments])}`\n"
    yield f"{_paragraphs(command)}\n"
    yield "```sh\n" + "".join(f"{example}\n" for example in command.examples) + "```\n"
    options = _options(context)
    shared = [code(_short(names)) for names, meaning in options if (names, meaning) in common]
    yield _lines([option for option in options if option not in common])
    named = f"Common options: {', '.join(shared)}." if shared else ""
    yield f"{named}{more}".strip() + "\n"


def _paragraphs(command: click.Command) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))


def _options(context: click.Context) -> list[Option]:
    # With the records of the help, so that defaults and limits are said as they are there.
    records = [parameter.get_help_record(context) for parameter in context.command.get_params(context)]
    # An argument without a text is in the usage, and the text of the command says what it is.
    return [(names, meaning) for names, meaning in filter(None, records) if meaning and "--help" not in names]


def _lines(options: Sequence[Option]) -> str:
    return "".join(f"- {code(names)}: {' '.join(meaning.split())}\n" for names, meaning in options)


def _title(page: str) -> str:
    found = re.search(r"^# (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else posixpath.basename(page)


PARTS = {"commands": every_command, "common options": common_options, "options of jaxexport": own_options}
