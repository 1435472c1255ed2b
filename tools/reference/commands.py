"""Every command with its arguments, options and examples, as `--help` has them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from export_core.cli.app import jaxexport
from export_core.cli.help import HelpfulCommand, HelpfulGroup
from tools.reference.markdown import code, table

NAME = "jaxexport"
ROOT = Path(__file__).parents[2]


def every_command() -> str:
    """All commands, in the sections of the help."""
    assert isinstance(jaxexport, HelpfulGroup)
    return "\n".join(line for title, commands in jaxexport.in_sections().items() for line in _section(title, commands))


def own_options() -> str:
    """The options of `jaxexport` itself."""
    return _options(click.Context(jaxexport, info_name=NAME))


def _section(title: str, commands: Sequence[click.Command]) -> Iterator[str]:
    yield f"## {title}\n"
    parent = click.Context(jaxexport, info_name=NAME)
    for command in commands:
        yield from _command(command, parent)


def _command(command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=command.name, parent=parent)
    yield f"### {context.command_path}\n"
    if isinstance(command, click.Group):
        yield f"{_paragraphs(command)}\n"
        for name in command.list_commands(context):
            yield from _command(command.commands[name], context)
        return
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    assert isinstance(command, HelpfulCommand)
    link = f"[{_title(command.page)}]({posixpath.relpath(command.page, 'docs/reference')})"
    yield f"`{usage}`\n"
    yield f"{_paragraphs(command)}\n"
    yield f"For example {', '.join(map(code, command.examples))}. More: {link}.\n"
    yield _options(context)


def _paragraphs(command: click.Command) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))


def _options(context: click.Context) -> str:
    # With the records of the help, so that defaults and limits are said as they are there.
    records = [parameter.get_help_record(context) for parameter in context.command.get_params(context)]
    # An argument without a text is in the usage, and the text of the command says what it is.
    rows = [(code(names), meaning) for names, meaning in filter(None, records) if meaning and "--help" not in names]
    return table(("option", "what"), rows) if rows else ""


def _title(page: str) -> str:
    found = re.search(r"^# (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else posixpath.basename(page)


PARTS = {"commands": every_command, "options of jaxexport": own_options}
