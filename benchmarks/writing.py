"""The cost of noise: goldens written with it, with ``--noise=later``, and without, of each of eight programs.

All sides are whole processes, `pytest --update-goldens` in a project that has no goldens yet, in turn: one for each
program, and one for all small ones, in which the start of pytest and the import of jax count for less.
Without noise, the plugin's measurement is replaced by one that finds nothing, and nothing is exported twice.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.line import Line

PROGRAMS = Path(__file__).with_name("programs_to_write.py")
BUDGET = 2.0
DEAR_BUDGET = 2.5
DEAR = ("train_step",)
"""Programs whose compilation takes longer than all else."""
LATER_BUDGET = 1.1

WITHOUT = """
from pytest_jaxexport.replayer import Replayer

Replayer.noise = lambda replayer, golden: "not measured"
"""


def measure(rounds: int) -> list[Line]:
    """The budgets limit the ratio of the medians of all rounds."""
    names = programs()
    selections = {f"a golden of {name.replace('_', ' ')}": words_for(name) for name in names}
    small = [word for name in names if name not in DEAR for word in words_for(name)]
    selections[f"{len(small)} small goldens"] = small
    with tempfile.TemporaryDirectory() as scratch:
        measured = make_project(Path(scratch) / "with", "")
        unmeasured = make_project(Path(scratch) / "without", WITHOUT)
        for project in (measured, unmeasured):
            write_goldens(project, *small)  # to warm the file cache and write the bytecode
        lines: list[Line] = []
        for what, words in selections.items():
            sides = [
                (
                    write_goldens(measured, *words),
                    write_goldens(measured, *words, "--noise=later"),
                    write_goldens(unmeasured, *words, "--no-second-export"),
                )
                for _ in range(rounds)
            ]
            with_noise, later, without = map(statistics.median, zip(*sides, strict=True))
            budget = DEAR_BUDGET if words in map(words_for, DEAR) else BUDGET
            lines += [
                _line(f"writing {what} with noise, as a process", with_noise, without, budget),
                _line(f"writing {what} with --noise=later, as a process", later, without, LATER_BUDGET),
            ]
        return lines


def programs() -> list[str]:
    """The names of the programs, without ``test_``."""
    return re.findall(r"^def test_(\w+)", PROGRAMS.read_text(), re.MULTILINE)


def words_for(name: str) -> list[str]:
    """The words of a command that select a program."""
    return [f"test_programs.py::test_{name}"]


def make_project(folder: Path, conftest: str) -> Path:
    """A project of these programs."""
    folder.mkdir()
    shutil.copy(PROGRAMS, folder / "test_programs.py")
    (folder / "conftest.py").write_text(conftest)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def write_goldens(project: Path, *words: str) -> float:
    """Seconds of a run that writes the goldens of the selected programs into a new folder of the project."""
    shutil.rmtree(project / "golden", ignore_errors=True)
    # The outcome of an earlier round must not stand for the first replay.
    command = [sys.executable, "-m", "pytest", "--update-goldens", "--no-export-cache", "-q", *words]
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=project, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return seconds


def _line(what: str, seconds: float, without: float, budget: float) -> Line:
    ratio = seconds / without
    return Line(
        what, f"{seconds:.1f} s", f"{without:.1f} s without", f"{ratio:.2f} times", f"{budget:g} times", ratio <= budget
    )
