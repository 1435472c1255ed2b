"""Limits in seconds: to refuse hostile bytes, to end a cell at its timeout, to end an interrupted run.

A busy machine may exceed them. So tests check the same behaviour without a clock: they count executed lines of Python,
or look for what must not have run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.line import Line
from export_core.policy import load_policy
from tools.stored_results import read_results

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
HOSTILE_BUDGET = 1.0
"""The most processor seconds that refusing one input may take."""
TIMEOUT = 3.0
TIMEOUT_BUDGET = 4.0
"""The most seconds that a cell may run beyond its timeout."""
INTERRUPT_BUDGET = 20.0
SECOND_INTERRUPT_BUDGET = 2.0
CASES = ("hangs", "waves")
"""Goldens of tests/write_goldens.py: the program of the first never ends, and the second passes."""


def measure() -> list[Line]:
    """Measure all limits. All but hostile bytes need a reader: the newest jaxlib, whose environment is built before."""
    with tempfile.TemporaryDirectory() as scratch:
        matrix = _Matrix(Path(scratch))
        return [hostile_bytes(), timed_out(matrix), interrupted(matrix), interrupted_twice(matrix)]


def hostile_bytes() -> Line:
    """Measure how long the slowest of the tests' hostile inputs takes to be refused."""
    sys.path[:0] = [str(TESTS), str(TESTS / "artifact")]  # as pytest has them
    from test_hostile import HOSTILE, refuse_reading

    seconds = {name: _processor_seconds(make(), refuse_reading) for name, make in HOSTILE.items()}
    slowest = max(seconds, key=lambda name: seconds[name])
    return _line(f"reading hostile bytes, the slowest of {len(seconds)}", seconds[slowest], slowest, HOSTILE_BUDGET)


def timed_out(matrix: _Matrix) -> Line:
    """Measure how long a cell that never ends runs beyond its timeout."""
    matrix.start("--timeout", str(TIMEOUT)).wait()
    (seconds,) = (result.seconds for result in read_results(matrix.results) if result.case == "hangs")
    return _line("a cell that never ends, beyond its timeout", seconds - TIMEOUT, f"{TIMEOUT:.0f} s", TIMEOUT_BUDGET)


def interrupted(matrix: _Matrix) -> Line:
    """Measure how long a run takes to end after Ctrl-C while a cell that never ends is running."""
    with matrix.hanging() as process:
        seconds = _seconds_to_end(process)
    return _line("Ctrl-C, while a cell never ends", seconds, "", INTERRUPT_BUDGET)


def interrupted_twice(matrix: _Matrix) -> Line:
    """Measure how long a run takes to end after the second Ctrl-C while its worker is stopped and cannot answer."""
    with matrix.hanging() as process:
        (worker,) = _children(process.pid)
        os.kill(worker, signal.SIGSTOP)
        try:
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            seconds = _seconds_to_end(process)
        finally:
            os.kill(worker, signal.SIGCONT)
    return _line("Ctrl-C twice, while a worker is stuck", seconds, "", SECOND_INTERRUPT_BUDGET)


class _Matrix:
    """A matrix of two cells in a scratch folder: the program of one cell never ends."""

    def __init__(self, scratch: Path) -> None:
        self.results = scratch / "results"
        self._scratch = scratch
        subprocess.run([sys.executable, TESTS / "write_goldens.py", scratch / "golden"], check=True)
        for folder in (scratch / "golden").iterdir():
            if folder.name not in CASES:
                shutil.rmtree(folder)
        self._newest = load_policy(ROOT / "export_compat.yaml").calendar().newest()
        self.start("--cases", "waves").wait()  # builds the environment

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "export_core", "matrix", "--readers", self._newest, "--jobs", "2", *words]
        command += ["--no-cache", "--results", str(self.results)]
        return subprocess.Popen(command, cwd=self._scratch, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    @contextlib.contextmanager
    def hanging(self) -> Iterator[subprocess.Popen[bytes]]:
        """Start a run, yield its process once only the cell that never ends is left, and kill it afterwards."""
        shutil.rmtree(self.results, ignore_errors=True)  # else the lines of an earlier run would count
        process = self.start()
        try:
            lines = self.results / "results.jsonl"
            while process.poll() is None and not (lines.exists() and lines.read_bytes().count(b"\n")):
                time.sleep(0.02)
            yield process
        finally:
            process.kill()
            process.wait()


def _children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def _seconds_to_end(process: subprocess.Popen[bytes]) -> float:
    started = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.wait()
    return time.perf_counter() - started


def _processor_seconds(data: bytes, read: Callable[[bytes], None]) -> float:
    started = time.process_time()
    read(data)
    return time.process_time() - started


def _line(what: str, seconds: float, against: str, budget: float) -> Line:
    return Line(what, f"{seconds:.2f} s", against, f"{seconds:.2f} s", f"{budget:.0f} s", seconds <= budget)
