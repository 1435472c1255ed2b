"""The progress of a long command: a line for each step, and in a log more lines while a step takes long."""

import io
import time

import pytest
from click.testing import CliRunner
from rich.console import Console

from export_core.cli import steps as steps_module
from export_core.cli.app import jaxexport
from export_core.cli.steps import Steps


@pytest.fixture
def shown(monkeypatch) -> io.StringIO:
    """The text that steps print to stderr, here without a terminal; they report at once that they are still running."""
    text = io.StringIO()
    monkeypatch.setattr(steps_module, "console", lambda **_: Console(file=text, width=200))
    monkeypatch.setattr(steps_module, "SILENCE_SECONDS", 0.0)
    monkeypatch.setattr(steps_module, "_LOOK_SECONDS", 0.01)
    return text


def wait_for(text: io.StringIO, expected: str) -> None:
    end = time.monotonic() + 10
    while expected not in text.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    assert expected in text.getvalue()


def test_a_log_says_still_running_during_a_long_step(shown):
    steps = Steps()
    with steps:
        steps("building [an environment]")
        wait_for(shown, "still running, for 0 s")
    assert "building [an environment]\n" in shown.getvalue()
    ended = shown.getvalue()
    time.sleep(0.1)
    assert shown.getvalue() == ended, "nothing is running"


def test_with_quiet_a_long_step_prints_nothing(shown):
    with Steps(quiet=True) as steps:
        steps("building")
        time.sleep(0.1)
    assert shown.getvalue() == ""


def test_progress_never_interrupts_the_output_lines_of_a_command(shown):
    steps = Steps()

    def items():
        steps("first")
        yield 1
        steps("second")
        wait_for(shown, "still running")
        yield 2

    lengths = []
    for _ in steps.over(items()):
        lengths.append(len(shown.getvalue()))
        time.sleep(0.1)
        assert len(shown.getvalue()) == lengths[-1], "a line came between those that others print"
    assert len(lengths) == 2


def test_a_spinner_on_a_terminal_leaves_stdout_clean(monkeypatch, capsys):
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, force_interactive=True, color_system=None)
    monkeypatch.setattr(steps_module, "console", lambda **_: console)
    with Steps() as steps:
        steps("running t.f in 0.9.2")
        print("an answer")
        time.sleep(0.3)
    assert "working, 0:00:00" in text.getvalue()
    assert text.getvalue().endswith("\x1b[2K"), "the line is gone"
    assert "still running" not in text.getvalue()
    assert capsys.readouterr().out == "an answer\n"


def test_verifying_many_goldens_prints_its_progress(shown, monkeypatch, tmp_path):
    """Progress is printed while files are read, and again while noise is checked."""

    def slow(*_: object, **__: object) -> list[object]:
        shown.truncate(shown.seek(0))
        wait_for(shown, "still running")
        return []

    monkeypatch.setattr("export_core.goldens.verify.verify_goldens", slow)
    monkeypatch.setattr("export_core.numbers.noise.check_noise", slow)
    for command in ("verify", "prune"):
        result = CliRunner().invoke(jaxexport, ["goldens", command, "--goldens", str(tmp_path)])
        assert "0 goldens" in result.output, f"{command} was silent"
