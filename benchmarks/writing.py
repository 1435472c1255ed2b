"""The cost of noise and second export when goldens of several kinds of programs are written.

A run with both is compared with a run without them, in turn. Each is a whole run of `pytest --update-goldens` in a
project that has no goldens yet. Each program has its own runs, and all small programs together have others, in which
the start of pytest and the import of jax matter less. Processor seconds of all processes are compared, since they do
not depend on the number of cores.
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
"""The budgets of the larger programs, in which compiling or running takes most of the time."""
LATER_BUDGET = BUDGETS["writing-later"].limit
PLAIN = ("--noise=later", "--no-second-export")


def measure(rounds: int) -> list[Line]:
    """Measure each program alone, and all small programs together.

    The budgets limit a ratio of two medians, with and without noise and second export, each over all rounds.
    """
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
    """Return the programs of the benchmark by name, each with the id of its test in the project."""
    tests = [test.rpartition("/")[2].partition("::test_") for group in choose("benchmark") for test in group.tests]
    return {name: f"test_{file}::test_{name}" for file, _, name in tests}


def make_project(folder: Path) -> Path:
    """Make a project with the files of the benchmark's programs, and return its folder."""
    folder.mkdir()
    for file in {path.partition("::")[0] for group in choose("benchmark") for path in group.paths}:
        shutil.copy(ROOT / file, folder / f"test_{Path(file).name}")
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    return folder


def write_goldens(project: Path, *words: str) -> float:
    """Write goldens by a run of pytest into an empty folder, and return the processor seconds of all its processes.

    Args:
        project: the folder of the project; its goldens are deleted first.
        words: the tests to run, and more options of pytest.
    """
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
