"""--help: commands in groups and whole sentences, an example and a page of the docs for each, and shell completion."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from export_core.cli.app import jaxexport as root
from export_core.cli.help import HelpfulCommand, docs_link

ROOT = Path(__file__).parents[2]


def commands(group: click.Group = root, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """All commands by the words that name them."""
    found: dict[tuple[str, ...], click.Command] = {}
    for name, command in group.commands.items():
        found[*path, name] = command
        if isinstance(command, click.Group):
            found |= commands(command, (*path, name))
    return found


COMMANDS = {(): root, **commands()}
EVERY = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


def help_of(jaxexport, words) -> str:
    ended = jaxexport(*words, "--help")
    assert (ended.code, ended.err, ended.out[:7]) == (0, "", "Usage: ")
    return ended.out


def test_commands_are_in_groups_with_whole_sentences(jaxexport):
    text = help_of(jaxexport, ())
    titles = [line.rstrip(":") for line in text.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    assert titles == ["First", "Options", "Artifacts", "Goldens", "Matrix", "Why", "Days", "Project", "Examples"]
    assert "..." not in text.partition("Options:")[2], "no sentence is cut"


@EVERY
def test_every_command_has_an_example_and_a_page_of_the_docs(words, jaxexport):
    command = COMMANDS[words]
    assert isinstance(command, HelpfulCommand)
    text = help_of(jaxexport, words)
    assert command.page.startswith("docs/"), "a page of the site"
    assert (ROOT / command.page).exists()
    assert text.endswith(f"\nDocumentation: {docs_link(command.page)}\n")
    assert command.examples
    for example in command.examples:
        assert f"\n  {example}\n" in text, "on one line, to be copied"


def test_arguments_that_can_be_left_out_are_in_brackets():
    for command in COMMANDS.values():
        for argument in (each for each in command.params if isinstance(each, click.Argument)):
            assert argument.required != argument.make_metavar(click.Context(command)).startswith("[")


@pytest.mark.parametrize("example", [example for command in COMMANDS.values() for example in command.examples])
def test_examples_are_commands_that_exist(example):
    _, *words = shlex.split(example.partition(">")[0])
    command: click.Command = root
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words)


def test_a_shell_completes_commands_and_values():
    def completed(line: str, at: int) -> list[str]:
        variables = {**os.environ, "_JAXEXPORT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(at)}
        program = "import sys; sys.argv[:] = ['jaxexport']; from export_core.cli.entry import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False
        )
        return ended.stdout.split()

    assert "plain,matrix" in completed("jaxexport m", 1)
    assert completed("jaxexport matrix --only p", 3) == ["plain,promised"]
    assert completed("jaxexport inspect a", 2) == ["file,a"]
