"""Commands and options that do not exist: likely guesses get our suggestion, and others that of click."""

import shlex

import click
import pytest
from commands import assert_bad_input

from export_core.cli.app import jaxexport as root
from export_core.cli.help import _COMMANDS


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("plan", "No such command: plan. `jaxexport matrix --dry-run` does that."),
        ("merge a b", "`jaxexport judge DIR DIR --results MERGED` does that."),
        ("badge", "`jaxexport report --badge FILE` does that."),
        ("check a.jaxexport", "`jaxexport audit FILE` does that."),
        ("show t.a", "`jaxexport inspect CASE/WRITER` does that."),
        ("goldens noise", "`jaxexport goldens verify --noise` does that."),
        ("policy known", "`jaxexport policy show --known` does that."),
        ("init", "Did you mean `jaxexport policy init`?"),
        ("backfill --writers 0.9.2", "Did you mean `jaxexport goldens backfill`?"),
        ("reprot", "Did you mean 'report'?"),
        ("goldens lst", "Did you mean 'list'?"),
        ("audit a --html b", "No such option: --html. Did you mean `jaxexport report --html`?"),
        ("judge --open", "Did you mean `jaxexport report --open`?"),
        ("report --resume", "Did you mean `jaxexport matrix --resume`?"),
        ("matrix --casse t.a", "'--cases'"),
        ("explain --casse t.a", "Did you mean '--case'"),
        ("goldens prune --delete", "Did you mean '--yes'?"),
        ("matrix --output out", "No such option: --output. Did you mean '--results'?"),
        ("matrix -o out", "Did you mean '--results'?"),
        ("judge a --output-dir out", "Did you mean '--results'?"),
        ("report --output report.html", "Did you mean '--html'?"),
        ("reduce --out here", "Did you mean '--output'?"),
        ("environments --clean", "Did you mean `jaxexport environments clean`?"),
    ],
)
def test_an_unknown_word_gets_a_suggestion(typed, answer, jaxexport):
    assert_bad_input(jaxexport(*shlex.split(typed)), answer)


@pytest.mark.parametrize("typed", ["nothing", "goldens nothing"])
def test_a_word_unlike_all_commands_has_no_suggestion(typed, jaxexport):
    ended = jaxexport(*shlex.split(typed))
    assert_bad_input(ended, "No such ")
    assert "Did you mean" not in ended.err


@pytest.mark.parametrize("named", sorted({words for words in _COMMANDS.values() if words.startswith("jaxexport")}))
def test_every_suggested_command_exists(named):
    _, *words = named.split()
    command: click.Command = root
    while isinstance(command, click.Group) and not words[0].startswith("-"):
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.get_params(click.Context(command)) for name in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= options


def test_no_word_with_a_suggestion_is_an_existing_command():
    for typed in _COMMANDS:
        command: click.Command = root
        *groups, last = typed.split()
        for word in groups:
            assert isinstance(command, click.Group)
            command = command.commands[word]
        assert isinstance(command, click.Group)
        assert last not in command.commands


def test_jaxexport_alone_prints_the_first_steps(jaxexport):
    for words in ((), ("--help",)):
        ended = jaxexport(*words)
        lines = [line.strip() for line in f"{ended.out}{ended.err}".partition("First:\n")[2].splitlines()]
        starts = [line for line in lines[: lines.index("")] if line.startswith(("pytest", "jaxexport"))]
        assert [line.split("  ")[0] for line in starts] == [
            "pytest --update-goldens",
            "jaxexport matrix",
            "jaxexport report --open",
        ]
