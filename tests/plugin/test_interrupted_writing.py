"""A run that writes goldens and is interrupted, or watched on a terminal: whole goldens, summary, progress line.

Each test sends the signal to its own run; tests/features/backfill has those of a backfill.
"""

import os
import pty
import re
import signal
from pathlib import Path

import pytest
from commands import written_to
from projects import TWO_TESTS, Project
from warm_pytest import NO_NOISE, WHOLE_NOISE, own_variables

from export_core.goldens import GoldenStore

ENDS = "import os, signal\n\n\ndef test_ends():\n    os.kill(os.getpid(), signal.SIGTERM)\n"
TWO_CALLS = """
import jax, numpy as np, pytest

@pytest.mark.export_compat
def test_two(export_golden):
    for number in range(2):
        export_golden(jax.jit(lambda x: x + number), np.ones(3, "float32"), name=f"n{number}")
"""
TERMINATED_WHILE_IT_STORES = """
import os, signal
from export_core.base import atomic

write_whole = atomic.write_whole

def write_and_end(path, data):
    write_whole(path, data)
    if "golden" in path.parts and "n1" in str(path) and path.name == "inputs.npz":
        os.kill(os.getpid(), signal.SIGTERM)

atomic.write_whole = write_and_end
"""
SLOW_NOISE = """
import time
from pytest_jaxexport.replayer import Replayer

def noise(replayer, golden):
    print("not seen")
    time.sleep(0.2)
    return "not measured"

Replayer.noise = noise
"""


def variables_of(project: Project) -> dict[str, str]:
    return {**own_variables(), "JAXEXPORT_CACHE": str(project.cache), "COLUMNS": "80", "TERM": "xterm"}


def whole_goldens(project: Project) -> list[str]:
    """Return the cases of the stored goldens, after a check that each is complete and no other file is there."""
    goldens = GoldenStore(project.goldens).goldens()
    for golden in goldens:
        golden.verify()
    assert not list(project.goldens.rglob(".*"))
    return [golden.manifest.case for golden in goldens]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 2)])
def test_an_interrupted_run_lists_the_goldens_it_wrote(projects, number, code):
    # What a shell starts in the background ignores SIGINT, and so does everything that is started there.
    handler = "    signal.signal(signal.SIGINT, signal.default_int_handler)\n" if number is signal.SIGINT else ""
    project = projects(
        test_a=f"import signal\n{TWO_TESTS}{handler}    os.kill(os.getpid(), {int(number)})\n    time.sleep(120)\n"
    )
    done = project.pytest("--update-goldens")
    assert done.code == code, done.text
    assert "1 golden new: test_a.test_first/" in done.text
    assert "interrupted: pytest --update-goldens=missing writes what is missing" in done.text
    assert whole_goldens(project) == ["test_a.test_first"]


def test_the_summary_lists_goldens_that_an_interrupted_test_wrote(projects):
    project = projects(conftest=TERMINATED_WHILE_IT_STORES, test_a=TWO_CALLS)
    done = project.pytest("--update-goldens")
    assert done.code == 143, done.text
    assert whole_goldens(project) == ["test_a.test_two.n0"]
    assert "1 golden new: test_a.test_two.n0/" in done.text


def test_a_sigterm_sent_twice_still_prints_the_summary(projects):
    kill = 'os.system(f"(kill -TERM {os.getpid()}; sleep 0.1; kill -TERM {os.getpid()}) &")'
    done = projects(test_a=f"{TWO_TESTS}    {kill}\n    time.sleep(120)\n").pytest("--update-goldens")
    assert done.code == 143, done.text
    assert "1 golden new: test_a.test_first/" in done.text
    assert "interrupted: pytest --update-goldens=missing writes what is missing" in done.text


def test_a_sigterm_in_a_destructor_ends_the_run(projects):
    # As in a callback of a weak reference in jax: Python prints what it raises, and goes on.
    ends = "import os, signal\n\nclass Ends:\n    def __del__(self):\n        os.kill(os.getpid(), signal.SIGTERM)\n\n"
    tests = "def test_ends():\n    Ends()\n\ndef test_after():\n    print('it went on')\n"
    done = projects(test_a=ends + tests).pytest("--update-goldens", "-s")
    assert done.code == 143, done.text
    assert "it went on" not in done.text
    assert "--update-goldens: interrupted before a golden was written." in done.text


@pytest.mark.parametrize(
    ("step", "named"),
    [
        ("noise", "measuring the noise of test_a.test_two.n0/"),
        ("first_call", "exporting test_a.test_two.n0 and running it"),
        ("replay", "running test_a.test_two.n0/"),
    ],
)
def test_an_interrupted_run_names_the_test_and_its_step(step, named, projects):
    ends = "def end(*_, **__):\n    os.kill(os.getpid(), signal.SIGINT)\n"
    default = "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    patched = (
        f"import os, signal\nfrom pytest_jaxexport.replayer import Replayer\n{default}{ends}Replayer.{step} = end\n"
    )
    done = projects(conftest=patched, test_a=TWO_CALLS).pytest("--update-goldens", "--no-second-export", "-q")
    assert done.code == 2, done.text
    assert f"test_a.py::test_two was interrupted while {named}" in done.text
    assert ("--noise=later leaves it out" in done.text) == (step == "noise")
    assert "--update-goldens: interrupted before a golden was written." in done.text


def test_a_sigterm_before_the_first_golden_is_reported(projects):
    done = projects(test_a=ENDS).pytest("--update-goldens")
    assert done.code == 143, done.text
    assert "--update-goldens: interrupted before a golden was written." in done.text


def test_a_signal_handler_of_the_user_is_not_replaced(projects):
    own = "import signal\n\nsignal.signal(signal.SIGTERM, lambda *_: print('own handler'))\n"
    done = projects(conftest=own, test_a=ENDS).pytest("--update-goldens", "-s")
    assert "own handler" in done.text
    assert "1 passed" in done.text


def on_a_terminal(project: Project, *words: str) -> str:
    """Run pytest, which must pass, and return what it writes to a terminal."""
    ours, theirs = pty.openpty()
    terminal = Path(os.ttyname(theirs))
    assert project.warm.run(list(words), project.folder, variables_of(project), terminal, WHOLE_NOISE) == 0
    os.close(theirs)
    text = b"".join(written_to(ours)).decode()
    os.close(ours)
    return text


def test_a_terminal_shows_which_golden_is_measured(projects):
    project = projects(conftest=SLOW_NOISE, test_a=TWO_CALLS)
    text = on_a_terminal(project, "--update-goldens", "--no-second-export")
    shown = re.findall(r"\r?\nmeasuring the noise of test_a\.test_two\.(n\d)/\S+ .*\r\x1b\[K\x1b\[A\x1b\[(\d+)C", text)
    assert shown == [("n0", str(len("test_a.py "))), ("n1", str(len("test_a.py ")))]
    assert "not seen" not in text
    for name in ("n0", "n1"):
        assert f"exporting test_a.test_two.{name} and running it\r\x1b[K" in text
        assert re.search(rf"running test_a\.test_two\.{name}/\S+ in a new process\r\x1b\[K", text)


def test_a_terminal_shows_what_a_check_runs(projects):
    project = projects(conftest=NO_NOISE, test_a=TWO_CALLS)
    assert project.pytest("--update-goldens", "--no-second-export").code == 0
    text = on_a_terminal(project)
    for name in ("n0", "n1"):
        assert f"exporting test_a.test_two.{name} and running it\r\x1b[K" in text
        assert f"running the goldens of test_a.test_two.{name} in new processes\r\x1b[K" in text


@pytest.mark.parametrize("quiet", [False, True])
def test_a_log_names_a_step_that_takes_long(projects, quiet):
    at_once = "\nfrom pytest_jaxexport import long_steps\n\nlong_steps.SILENCE_SECONDS = 0.05\n"
    project = projects(conftest=SLOW_NOISE + at_once, test_a=TWO_CALLS)
    done = project.pytest("--update-goldens", "--no-second-export", *["-q"] * quiet)
    named = re.findall(r"^measuring the noise of test_a\.test_two\.(n\d)/.*: for \d+ s$", done.text, re.MULTILINE)
    assert (done.code, sorted({*named})) == (0, [] if quiet else ["n0", "n1"]), done.text
    assert "not seen" not in done.text


def test_a_quiet_run_on_a_terminal_has_no_line_of_progress(projects):
    project = projects(conftest=SLOW_NOISE, test_a=TWO_CALLS)
    text = on_a_terminal(project, "--update-goldens", "--no-second-export", "-q")
    assert "2 goldens new" in text
    assert not [word for word in ("measuring", "exporting", "running", "\x1b[K") if word in text]


def test_a_log_has_no_line_of_progress(projects):
    done = projects(noise=WHOLE_NOISE, conftest=SLOW_NOISE, test_a=TWO_CALLS).pytest("--update-goldens")
    assert "2 goldens new" in done.text
    assert not [word for word in ("measuring", "exporting", "running") if word in done.text]
