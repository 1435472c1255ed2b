"""The cost of writing goldens: with noise and second export, and with neither, of programs of several kinds.

Each side is a whole run of `pytest --update-goldens` in a project that has no goldens yet, in turn: one for each
program, and one for all small ones, in which the start of pytest and the import of jax matter less. Processor seconds
of all processes are compared, which do not depend on the number of cores.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from benchmarks.processor import processor_seconds
from studies.corpus.choosing import ROOT, choose

BUDGET = BUDGETS["writing"].limit
OWN_BUDGETS = {
    "decoding_with_a_cache": BUDGET,
    "training_step_with_adam": BUDGET,
    "joint_chain": BUDGETS["writing-compiled"].limit,
    "kinetics": BUDGET,
}
"""The budgets of larger programs, whose compilation or run takes most of the time."""
LATER_BUDGET = BUDGETS["writing-later"].limit
PLAIN = ("--noise=later", "--no-second-export")


def measure(rounds: int) -> list[Line]:
    """Measure each program and all small ones; the budgets limit the ratio of the medians of all rounds."""
    selections = programs()
    small = [word for name, word in selections.items() if name not in OWN_BUDGETS]
    with tempfile.TemporaryDirectory() as scratch:
        project = make_project(Path(scratch) / "project")
        write_goldens(project, *small)  # to warm the file cache and write the bytecode
        lines: list[Line] = []
        for name, word in selections.items():
            sides = ((), PLAIN)
            whole, plain = _medians(project, [word], sides, rounds)
            what = f"a golden of {name.replace('_', ' ')}"
            lines.append(_line(f"writing {what}, noise and second export", whole, plain, OWN_BUDGETS.get(name, BUDGET)))
        whole, later, plain = _medians(project, small, ((), PLAIN[:1], PLAIN), rounds)
        what = f"{len(small)} small goldens"
        lines += [
            _line(f"writing {what}, noise and second export", whole, plain, BUDGET),
            _line(f"writing {what}, --noise=later", later, plain, LATER_BUDGET),
        ]
        return lines


def programs() -> dict[str, str]:
    """Return the programs that are written: the ids of their tests in the project, by name."""
    tests = [test.rpartition("/")[2].partition("::test_") for group in choose("benchmark") for test in group.tests]
    return {name: f"test_{file}::test_{name}" for file, _, name in tests}


def make_project(folder: Path) -> Path:
    """Make a project of these programs, and return its folder."""
    folder.mkdir()
    for file in {path.partition("::")[0] for group in choose("benchmark") for path in group.paths}:
        shutil.copy(ROOT / file, folder / f"test_{Path(file).name}")
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    return folder


def write_goldens(project: Path, *words: str) -> float:
    """Write the goldens of the selected programs into an empty folder, and return the run's processor seconds."""
    shutil.rmtree(project / "golden", ignore_errors=True)
    # Without --no-export-cache, the outcome of an earlier round would replace the first replay.
    command = [sys.executable, "-m", "pytest", "--update-goldens", "--no-export-cache", "-q", *words]
    return processor_seconds(command, project, {**os.environ, "JAX_PLATFORMS": "cpu"})


def _medians(project: Path, words: list[str], sides: tuple[tuple[str, ...], ...], rounds: int) -> tuple[float, ...]:
    measured = [[write_goldens(project, *words, *options) for options in sides] for _ in range(rounds)]
    return tuple(map(statistics.median, zip(*measured, strict=True)))


def _line(what: str, seconds: float, plain: float, budget: float) -> Line:
    ratio = seconds / plain
    return Line(
        what,
        f"{seconds:.1f} s of processors",
        f"{plain:.1f} s with {' '.join(PLAIN)}",
        f"{ratio:.2f} times",
        f"{budget:g} times",
        ratio <= budget,
    )
