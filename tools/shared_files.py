"""What the wheel installs beside Python, in share/: the man page, and completion for bash, zsh and fish.

``python -m tools.shared_files`` writes them; a test keeps them equal to what the commands say.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from export_core.cli.app import jaxexport
from export_core.cli.help import EXAMPLES, GROUPS
from export_core.judge.verdicts import ExitCode
from tools.field_docs import field_docs
from tools.reference.variables import READ

NAME = "jaxexport"
MAN_PAGE = Path("man/man1/jaxexport.1")
COMPLETIONS = {
    "bash": Path("bash-completion/completions/jaxexport"),
    "zsh": Path("zsh/site-functions/_jaxexport"),
    "fish": Path("fish/vendor_completions.d/jaxexport.fish"),
}
FILES = {
    "export_compat.yaml": "The policy; or [tool.jaxexport] in pyproject.toml.",
    "golden/": "The goldens.",
    ".jaxexport/": "The results of the last run.",
}


def escaped(text: str) -> str:
    """Text as roff takes it: no line of it is a request, and a hyphen stays one that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.splitlines())


def plain(text: str) -> str:
    """Text of the reference without the marks of Markdown."""
    return text.replace("`", "")


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its whole name, in the order of the help."""
    order = [name for names in GROUPS.values() for name in names] if not path else []
    for name in sorted(group.commands, key=lambda name: order.index(name) if name in order else len(order)):
        command = group.commands[name]
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


def listed(entries: dict[str, str]) -> Iterator[str]:
    """A list with a term and what it means."""
    for term, meaning in entries.items():
        yield f".TP\n\\fB{escaped(term)}\\fR\n{escaped(meaning)}"


def options(command: click.Command, context: click.Context) -> dict[str, str]:
    """The options of a command with their help; --help itself is told once, at the top."""
    records = [option.get_help_record(context) for option in command.params]
    return {record[0]: record[1] for record in records if record and record[1]}  # without help: an argument


def section(path: str, command: click.Command) -> Iterator[str]:
    """A command: usage, what it does, options, examples."""
    context = click.Context(command, info_name=f"{NAME} {path}")
    yield f".SS {NAME} {escaped(path)}"
    yield f".B {escaped(' '.join([NAME, path, *command.collect_usage_pieces(context)]))}"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield f".PP\n{escaped(' '.join(paragraph.split()))}"
    yield from listed(options(command, context))
    for example in EXAMPLES.get(path, ("",))[1:]:
        yield f".PP\n.EX\n$ {escaped(example)}\n.EE"


def man_page() -> str:
    """One page with all commands, for ``man jaxexport``."""
    context = click.Context(jaxexport, info_name=NAME)
    lines = [
        '.TH JAXEXPORT 1 "" "pytest\\-jaxexport" "User Commands"',
        f".SH NAME\n{NAME} \\- will this exported JAX function still run there?",
        f".SH SYNOPSIS\n.B {NAME}\n[\\-\\-version] [\\-\\-help] COMMAND [ARGUMENTS]",
        f".SH DESCRIPTION\n{escaped(inspect.cleandoc(jaxexport.help or ''))}",
        ".SH OPTIONS",
        *listed(options(jaxexport, context)),
        ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nShow the help of a command, and exit.",
        ".SH COMMANDS",
        *(line for path, command in commands(jaxexport) for line in section(path, command)),
        ".SH EXIT STATUS\nOf matrix, merge and judge:",
        *listed({str(code.value): plain(field_docs(ExitCode)[code.name]) for code in ExitCode}),
        ".SH ENVIRONMENT",
        *listed({", ".join(names): plain(text) for names, text in READ.items() if not text.startswith("Internal")}),
        ".SH FILES",
        *listed(FILES),
    ]
    return "\n".join(lines) + "\n"


def completion(shell: str) -> str:
    """The script by which a shell completes commands, options and their values."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(jaxexport, {}, NAME, "_JAXEXPORT_COMPLETE").source().strip() + "\n"


def shared_files() -> dict[Path, str]:
    """Every file below share/ with its text."""
    return {MAN_PAGE: man_page(), **{path: completion(shell) for shell, path in COMPLETIONS.items()}}


def main(folder: Path) -> None:
    """Write them all."""
    for path, text in shared_files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


if __name__ == "__main__":
    main(Path(*sys.argv[1:] or ["share"]))
