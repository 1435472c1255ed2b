"""A backfill that is interrupted ends its pytest, and says what was written and how to continue."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import is_alive, wait_for
from projects import TWO_TESTS, Project, Projects
from warm_pytest import NO_NOISE, own_variables

import pytest_jaxexport
from export_core.goldens import GoldenStore

SLEEPS = (
    f'{TWO_TESTS}    Path("new").write_text(str(os.getpid()))\n    Path("new").rename("pid")\n    time.sleep(120)\n'
)
CANNOT_END = """
import os, signal, time
from pathlib import Path
import pytest

@pytest.mark.export_compat
def test_first():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    Path("new").write_text(str(os.getpid()))
    Path("new").rename("pid")
    time.sleep(120)
"""
COMMAND = """
import sys
from types import SimpleNamespace
from export_core.cli.entry import main
from export_core.features.backfill import backfill

*sys.argv, seconds, python = sys.argv
backfill._build_writer = lambda *_: SimpleNamespace(python=python)
backfill.STOP_SECONDS = float(seconds)
main()
"""


def as_timeout(pid: int, number: int) -> None:
    """Send a signal as `timeout` of coreutils does: to the process, then to its whole group."""
    os.kill(pid, number)
    time.sleep(0.1)
    os.killpg(pid, number)


WAYS = {
    "SIGTERM": (os.kill, signal.SIGTERM),
    "SIGINT": (os.kill, signal.SIGINT),
    "Ctrl-C": (os.killpg, signal.SIGINT),
    "timeout": (as_timeout, signal.SIGTERM),
}
"""Ways to end a backfill: a signal to the command alone, Ctrl-C to it and its pytest, or `timeout` of coreutils."""


class Backfill:
    """`jaxexport goldens backfill` in a process group of its own, with this interpreter as the environment."""

    def __init__(self, project: Project, *words: str, stop_seconds: float = 60) -> None:
        project.use_warm_workers()
        python = project.folder / "python"
        # Pytest gets no PYTHONPATH, and must import this package.
        where = Path(pytest_jaxexport.__file__).parents[1]
        python.write_text(f'#!/bin/sh\nPYTHONPATH={where} exec {sys.executable} "$@"\n')
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
        self._pid = project.folder / "pid"
        self._scratch = project.folder / "scratch"
        self._scratch.mkdir()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", COMMAND, "goldens", "backfill", "--writers", "0.12.0.1"),
                *(*words, "--", "--no-second-export", str(stop_seconds), str(python)),
            ],
            cwd=project.folder,
            env={**own_variables(), "JAXEXPORT_CACHE": str(project.cache), "TMPDIR": str(self._scratch)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def pytest(self) -> int:
        """Wait until its pytest runs the slow test, and return the process id of that pytest."""
        wait_for(lambda: self._pid.exists() or self.process.poll() is not None, "that test")
        assert self._pid.exists(), self.process.communicate()
        return int(self._pid.read_text())

    def ended(self) -> tuple[int, str, str]:
        """Return the exit code and what was printed, after a check that no temporary folder is left."""
        out, err = self.process.communicate(timeout=120)
        assert not list(self._scratch.iterdir())
        assert "Traceback" not in out + err
        return self.process.returncode, out, err


def stored(project: Project) -> list[str]:
    return [golden.manifest.case for golden in GoldenStore(project.goldens).goldens()]


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupted_backfill_ends_pytest_and_says_how_to_continue(projects: Projects, way: str) -> None:
    project = projects(conftest=NO_NOISE, test_a=SLEEPS)
    run = Backfill(project)
    pid = run.pytest()
    send, number = WAYS[way]
    send(run.process.pid, number)
    code, out, err = run.ended()
    assert code == 128 + number, err
    assert not is_alive(pid)
    assert "1 golden new: test_a.test_first/" in out
    assert err.endswith(
        "Interrupted: 1 golden written with jaxlib 0.12.0.1. The same command with --writers 0.12.0.1 and "
        "`-- --update-goldens=missing` writes what is missing.\n"
    )
    assert "stopping pytest; " in err
    assert stored(project) == ["test_a.test_first"]


def test_pytest_that_does_not_end_is_killed(projects: Projects) -> None:
    run = Backfill(projects(test_a=CANNOT_END), stop_seconds=0.5)
    pid = run.pytest()
    run.process.terminate()
    code, _, err = run.ended()
    assert code == 143
    assert not is_alive(pid)
    assert "Interrupted: pytest was ended while it ran with jaxlib 0.12.0.1; the goldens that it has written" in err


def test_a_second_signal_kills_pytest_at_once(projects: Projects) -> None:
    run = Backfill(projects(test_a=CANNOT_END))
    pid = run.pytest()
    run.process.terminate()
    time.sleep(1)  # longer than a repeated signal counts as one
    run.process.terminate()
    run.process.communicate(timeout=10)
    assert run.process.returncode == 143
    wait_for(lambda: not is_alive(pid), "the end of pytest", 10)
