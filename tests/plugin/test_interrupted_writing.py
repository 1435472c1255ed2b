"""A run that writes goldens and is interrupted, or watched on a terminal: whole goldens, a summary, a line of progress.

Each is a new interpreter: a signal is sent to a process of its own.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from warm_pytest import NO_NOISE, own_variables

from export_core.goldens import GoldenStore

if TYPE_CHECKING:
    from projects import Project, Projects

TESTS = """
import time
from pathlib import Path
import jax, numpy as np, pytest

X = np.ones(3, "float32")

@pytest.mark.export_compat
def test_first(export_golden):
    export_golden(jax.jit(lambda x: x + 1), X)

@pytest.mark.export_compat
def test_second(export_golden):
    export_golden(jax.jit(lambda x: x + 2), X)
    Path("waiting").touch()
    time.sleep(120)
"""
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


BACKFILL = """
import sys
from export_core.features.backfill.backfill import _run_to_its_end
from export_core.cli.signals import interruptible

with interruptible():
    _run_to_its_end([sys.executable, "-m", "pytest", *sys.argv[1:]])
"""


def started(
    project: Project, *words: str, stdout: int = subprocess.PIPE, run: tuple[str, ...] = ("-m", "pytest")
) -> subprocess.Popen[str]:
    project.use_warm_workers()
    command = [sys.executable, *run, "--update-goldens", *words]
    variables = {**own_variables(), "JAXEXPORT_CACHE": str(project.cache), "COLUMNS": "80", "TERM": "xterm"}
    return subprocess.Popen(
        command, cwd=project.folder, env=variables, stdout=stdout, stderr=subprocess.STDOUT, text=True
    )


def whole_goldens(project: Project) -> list[str]:
    """The cases of stored goldens, which are complete; nothing else is there."""
    goldens = GoldenStore(project.goldens).goldens()
    for golden in goldens:
        golden.verify()
    assert not list(project.goldens.rglob(".*"))
    return [golden.manifest.case for golden in goldens]


def sent(project: Project, process: subprocess.Popen[str], number: signal.Signals) -> str:
    """What a run prints that gets a signal in its second test."""
    until = time.monotonic() + 60
    while not (project.folder / "waiting").exists() and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(number)
    return process.communicate(timeout=60)[0]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 2)])
def test_an_interrupted_run_says_what_it_has_written(projects: Projects, number: signal.Signals, code: int) -> None:
    project = projects(conftest=NO_NOISE, test_a=TESTS)
    process = started(project)
    text = sent(project, process, number)
    assert process.returncode == code, text
    assert "1 golden new: test_a.test_first/" in text
    assert "interrupted: pytest --update-goldens=missing writes what is missing" in text
    assert whole_goldens(project) == ["test_a.test_first"]


def test_a_backfill_hands_its_sigterm_to_pytest(projects: Projects) -> None:
    project = projects(conftest=NO_NOISE, test_a=TESTS)
    process = started(project, run=("-c", BACKFILL))
    text = sent(project, process, signal.SIGTERM)
    assert process.returncode != 0
    assert "1 golden new: test_a.test_first/" in text


def test_what_the_interrupted_test_has_written_is_in_the_summary(projects: Projects) -> None:
    project = projects(conftest=NO_NOISE + TERMINATED_WHILE_IT_STORES, test_a=TWO_CALLS)
    process = started(project)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 143, text
    assert whole_goldens(project) == ["test_a.test_two.n0"]
    assert "1 golden new: test_a.test_two.n0/" in text


def test_a_sigterm_before_the_first_golden_is_told(projects: Projects) -> None:
    ends = "import os, signal\n\n\ndef test_ends():\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    text, _ = (process := started(projects(test_a=ends))).communicate(timeout=60)
    assert process.returncode == 143, text
    assert "--update-goldens: interrupted before a golden was written." in text


def test_a_handler_of_the_user_stays(projects: Projects) -> None:
    own = "import signal\n\nsignal.signal(signal.SIGTERM, lambda *_: print('own handler'))\n"
    ends = "import os, signal\n\n\ndef test_ends():\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    text, _ = started(projects(conftest=own, test_a=ends), "-s").communicate(timeout=60)
    assert "own handler" in text
    assert "1 passed" in text


def on_a_terminal(project: Project, *words: str) -> str:
    """What a run writes to a terminal."""
    ours, theirs = pty.openpty()
    process = started(project, *words, stdout=theirs)
    os.close(theirs)
    parts = []
    while True:
        try:
            parts.append(os.read(ours, 4096))
        except OSError:  # Linux says so at the end
            break
    os.close(ours)
    assert process.wait(timeout=60) == 0, b"".join(parts)
    return b"".join(parts).decode()


def test_a_terminal_shows_which_golden_is_measured(projects: Projects) -> None:
    project = projects(conftest=SLOW_NOISE, test_a=TWO_CALLS)
    text = on_a_terminal(project)
    shown = re.findall(r"\r?\nmeasuring the noise of test_a\.test_two\.(n\d)/\S+\r\x1b\[K\x1b\[A\x1b\[(\d+)C", text)
    assert shown == [("n0", str(len("test_a.py "))), ("n1", str(len("test_a.py ")))]
    assert "not seen" not in text


def test_a_log_has_no_line_of_progress(projects: Projects) -> None:
    text, _ = started(projects(conftest=SLOW_NOISE, test_a=TWO_CALLS)).communicate(timeout=60)
    assert "2 goldens new" in text
    assert "measuring" not in text
