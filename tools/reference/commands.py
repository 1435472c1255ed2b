"""The parts about commands: each with its arguments, options and examples, as `--help` shows them.

An option that several commands take is described once.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click

from export_core.cli.app import jaxexport
from export_core.cli.help import HelpfulCommand, HelpfulGroup
from tools.reference.markdown import code

NAME = "jaxexport"
MANY = 2
"""An option that at least so many commands take, with the same text, is described once."""
MOST_EXAMPLES = 2
OF_ALL = re.compile(r", 2 [^,.;]+(?=, \d|\.)| Ctrl-C ends it with 130\.")
"""The part of the text on exit codes that is the same for all commands, and so is only in verdicts.md."""
JSON = ("--json", "Print JSON: [the documents](json-output.md).")
"""The option `--json` as the reference shows it, without the schema, in which the commands differ."""
OF_A_CELL = ("explain", "bisect", "reduce")
"""Commands that take a cell. The options that all of them take are listed once."""

Option = tuple[str, str]


def every_command() -> str:
    """Return the descriptions of all commands, in the sections in which the help lists them."""
    assert isinstance(jaxexport, HelpfulGroup)
    common = _common()
    return "\n".join(
        line for title, commands in jaxexport.in_sections().items() for line in _section(title, commands, common)
    )


def common_options() -> str:
    """Return a list of the options that several commands take, and of the options of a cell.

    If two options of the list have the same name, each is shown with the commands that take it.
    """
    common = _common()
    times = Counter(_short(names) for names, _ in common)
    lines = []
    for (names, meaning), commands in common.items():
        whose = f" ({', '.join(commands)})" if times[_short(names)] > 1 else ""
        lines.append(f"- {code(names)}{whose}: {_in_short(meaning)}\n")
    return f"{''.join(lines)}\nThe options of a cell are {', '.join(_of_a_cell(common))}.\n"


def own_options() -> str:
    """Return a list of the options that `jaxexport` takes before a command."""
    return _lines(_options(click.Context(jaxexport, info_name=NAME)))


def _common() -> dict[Option, list[str]]:
    """Return the options that at least `MANY` commands take, sorted by name, each with these commands."""
    found: dict[Option, list[str]] = {}
    for path, command in _runnable(jaxexport, ""):
        for option in _options(click.Context(command, info_name=command.name)):
            found.setdefault(option, []).append(path)
    return {option: commands for option, commands in sorted(found.items()) if len(commands) >= MANY}


def _of_a_cell(common: Mapping[Option, list[str]]) -> list[str]:
    """Return the names of the options that all commands of `OF_A_CELL` take."""
    return [code(_short(names)) for (names, _), commands in common.items() if {*OF_A_CELL} <= {*commands}]


def _runnable(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands of a group and of its subgroups, each with what is typed after `jaxexport`.

    Args:
        group: the group.
        path: what is typed before the group's commands.
    """
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _runnable(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def _short(names: str) -> str:
    """Return the first name of an option, without the placeholder of its value."""
    return names.split(" ")[0].rstrip(",")


def _section(title: str, commands: Sequence[click.Command], common: Mapping[Option, list[str]]) -> Iterator[str]:
    yield f"## {title}\n"
    parent = click.Context(jaxexport, info_name=NAME)
    for command in commands:
        yield from _command(command, parent, common)


def _command(command: click.Command, parent: click.Context, common: Mapping[Option, list[str]]) -> Iterator[str]:
    context = click.Context(command, info_name=command.name, parent=parent)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _command(command.commands[name], context, common)
        return
    assert isinstance(command, HelpfulCommand)
    yield f"### {context.command_path}\n"
    page = posixpath.relpath(command.page, "docs/reference")
    arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    if arguments:
        yield f"`{' '.join([context.command_path, *arguments])}`\n"
    first, *others = _paragraphs(command)
    yield f"{first} ([more]({page}))\n"
    yield from (f"{OF_ALL.sub('', paragraph)}\n" for paragraph in others if paragraph.startswith("Exit codes"))
    yield "```sh\n" + "".join(f"{example}\n" for example in command.examples[:MOST_EXAMPLES]) + "```\n"
    options = _options(context)
    shared = [code(_short(names)) for names, meaning in options if (names, meaning) in common]
    yield _lines([option for option in options if option not in common])
    if command.name in OF_A_CELL:
        of_a_cell = _of_a_cell(common)
        shared = ["the options of a cell", *(name for name in shared if name not in of_a_cell)]
    if shared:
        yield f"Also {', '.join(shared)}.\n"


def _paragraphs(command: click.Command) -> list[str]:
    """Return the paragraphs of a command's help, each on one line.

    The reference shows the first paragraph and the paragraph on exit codes; the command's page has the others.
    """
    return [" ".join(part.split()) for part in (command.help or "").split("\n\n")]


def _options(context: click.Context) -> list[Option]:
    # From the records that the help prints, so that defaults and limits have the same words.
    records = [parameter.get_help_record(context) for parameter in context.command.get_params(context)]
    # An argument without a text is in the usage, and the command's own text explains it.
    options = [(names, meaning) for names, meaning in filter(None, records) if meaning and "--help" not in names]
    return [
        JSON if re.fullmatch(r"Print JSON \(schema/\S+\)\.", meaning) else (names, meaning)
        for names, meaning in options
    ]


def _lines(options: Sequence[Option]) -> str:
    return "".join(f"- {code(names)}: {_in_short(meaning)}\n" for names, meaning in options)


def _in_short(meaning: str) -> str:
    """Return the help of an option on one line, without the limits of its value and the name of a schema."""
    text = re.sub(r" \[[^];]*x[<>]=[^];]*\]|; [^];]*x[<>]=[^];]*(?=\])", "", " ".join(meaning.split()))
    return re.sub(r" \(schema/\S+\)", "", text).replace("may be given several times", "repeatable")


PARTS = {"commands": every_command, "common options": common_options, "options of jaxexport": own_options}
