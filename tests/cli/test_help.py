"""The texts of --help, with an example and a page of the docs for each command, and shell completion."""

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
from export_core.policy.run_options import ONE_OF_SEVERAL

ROOT = Path(__file__).parents[2]


def commands(group: click.Group = root, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """Return all commands by the words that name them."""
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


def test_help_groups_commands_and_truncates_no_sentence(jaxexport):
    text = help_of(jaxexport, ())
    titles = [line.rstrip(":") for line in text.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    assert titles == ["First", "Options", "Artifacts", "Goldens", "Matrix", "Why", "Days", "Project", "Examples"]
    assert "..." not in text.partition("Options:")[2], "no sentence is cut"


@EVERY
def test_the_help_of_each_command_has_example_and_page(words, jaxexport):
    command = COMMANDS[words]
    assert isinstance(command, HelpfulCommand)
    text = help_of(jaxexport, words)
    assert command.page.startswith("docs/"), "a page of the site"
    assert (ROOT / command.page).exists()
    assert text.endswith(f"\nDocumentation: {docs_link(command.page)}\n")
    assert command.examples
    for example in command.examples:
        assert f"\n  {example}\n" in text, "on one line, to be copied"


def test_help_puts_optional_arguments_in_brackets():
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


def asked_by_bash(typed: str) -> dict[str, str]:
    """Return the variables by which bash asks for the completions of the words after `jaxexport`."""
    line = f"jaxexport {typed}"
    return {"_JAXEXPORT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}


def completed(typed: str) -> list[str]:
    """Return the completions that a shell gets for the words after `jaxexport`."""
    program = "import sys; sys.argv[:] = ['jaxexport']; from export_core.cli.entry import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked_by_bash(typed)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.stdout.split("\n")[:-1] if ended.stdout.strip() else []


def test_a_shell_completes_commands_and_values():
    assert "plain,matrix" in completed("m")
    assert completed("matrix --only p") == ["plain,promised"]
    assert completed("inspect a") == ["file,a"]


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("matrix t.", ["plain,t.a", "plain,t.b[1,2]"]),
        ("matrix --cases t.a", ["plain,t.a"]),
        ("explain --case t.b", ["plain,t.b[1,2]"]),
        ("explain t.a/", ["plain,t.a/0.12.0.1-cpu", "plain,t.a/0.9.2-cpu"]),
        ("inspect t.a/0.9", ["file,t.a/0.9", "plain,t.a/0.9.2-cpu"]),
        ("goldens rename t.b", ["plain,t.b[1,2]"]),
        ("matrix --readers 0.12.0.1,0.9.2", ["plain,0.12.0.1,0.9.2"]),
        ("bisect --reader 0.9.2", ["plain,0.9.2"]),
        ("matrix --goldens other t", ["plain,t.other"]),
        ("matrix --policy missing.yaml t", []),
    ],
)
def test_a_shell_completes_cases_goldens_and_releases(typed, completions, cwd, jaxexport, monkeypatch):
    goldens = (
        "golden/t.a/0.9.2-cpu",
        "golden/t.a/0.12.0.1-cpu",
        "golden/t.b[1,2]/0.9.2-cpu",
        "other/t.other/0.9.2-cpu",
    )
    for name in goldens:
        (cwd / name).mkdir(parents=True)
        (cwd / name / "golden.yaml").touch()
    for name, value in asked_by_bash(typed).items():
        monkeypatch.setenv(name, value)
    assert sorted(jaxexport(code=0).out.strip().splitlines()) == completions


def test_option_names_are_plural_only_if_they_take_several_values():
    for words, command in COMMANDS.items():
        for option in command.params:
            several = option.multiple if isinstance(option, click.Option) else False
            for name in {"--cases", "--writers", "--readers", "--platforms"}.intersection(option.opts):
                assert several or "…" in (option.metavar or ""), f"{words}: exactly one {name} is chosen"
            for name in {"--case", "--writer", "--reader", "--platform"}.intersection(option.opts):
                assert not several, f"{words}: several {name} can be chosen"


def test_every_command_accepts_singular_and_plural_options():
    tried = set()
    for words, command in COMMANDS.items():
        for option in command.params:
            for several, one in ONE_OF_SEVERAL.items():
                if {several, one}.isdisjoint(option.opts):
                    continue
                parsed = [
                    command.make_parser(click.Context(command)).parse_args([name, "0.9.2"])[0][option.name]
                    for name in (several, one)
                ]
                assert parsed[0] == parsed[1], words
                tried.add(one)
    assert tried == {*ONE_OF_SEVERAL.values()}


def test_values_of_case_and_cases_are_combined(jaxexport):
    command = COMMANDS["matrix",]
    values = command.make_context("matrix", ["--cases", "a", "--case", "b", "--reader=0.9.2"]).params
    assert (values["cases"], values["readers"]) == (("a", "b"), "0.9.2")
    assert "--case " not in help_of(jaxexport, ("matrix",))


def test_the_short_version_option_prints_the_version(jaxexport):
    assert jaxexport("-V", code=0).out == jaxexport("--version", code=0).out
