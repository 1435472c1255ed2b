"""The time of a matrix on a machine without environments, against a plain venv and a pytest run for each reader.

Both sides find uv's cache filled, as on a machine that has used these releases before. The matrix runs each cell in a
cold process, audits and judges it. The other side, called naive, runs all artifacts of a reader in one warm process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.budgets import BUDGETS, Budget
from benchmarks.line import Line
from benchmarks.processor import processor_seconds
from export_core.policy import load_policy
from export_core.readers.build import interpreter_for, uv_command
from export_core.readers.environment import pythons
from export_core.releases import Calendar

ROOT = Path(__file__).parents[1]
TESTS = Path(__file__).with_name("loads_goldens.py")
CASES = (
    *("test_programs.test_while", "test_programs.test_top_k", "test_programs.test_special_functions"),
    *("test_programs.test_sort", "test_programs.test_scan", "test_programs.test_cond.true"),
    *("test_programs.test_cond.false", "test_models.test_mlp_with_gradients", "test_models.test_convolution"),
    "test_models.test_attention",
)
WRITERS = ("0.10.1-jax0.10.2-cpu", "0.11.0-cpu", "0.12.0.1-cpu")
READERS = 7
WALL, PROCESSORS = BUDGETS["nothing"], BUDGETS["nothing-processors"]
# One after the other, as nox runs its sessions. pytest ends with 1 where a release cannot read an artifact.
_NAIVE = """
set -e
while read -r jax jaxlib python; do
    "$UV" venv -q --no-project --python "$python" "venvs/$jaxlib"
    "$UV" pip install -q --python "venvs/$jaxlib" "jax==$jax" "jaxlib==$jaxlib" numpy flatbuffers pytest
    "venvs/$jaxlib/bin/python" -m pytest -q test_goldens.py > "$jaxlib.log" || [ $? = 1 ]
done < releases
"""


def measure(rounds: int) -> list[Line]:
    """Measure both sides in each round, in alternating order; the budgets limit the median ratio of all rounds."""
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    readers = calendar.versions()[-READERS:]
    measured = [_round(calendar, readers, naive_first=bool(number % 2)) for number in range(-1, rounds)]
    walls, seconds = zip(*measured[1:], strict=True)  # the first one has filled uv's cache
    cells = len(CASES) * len(WRITERS) * READERS
    what = f"from nothing to the answer for {cells} cells, {READERS} readers"
    return [
        _line(what, walls, WALL, "s"),
        _line(f"{what}, processor time of all processes", seconds, PROCESSORS, "s of processors"),
    ]


def _line(what: str, pairs: Sequence[tuple[float, float]], budget: Budget, unit: str) -> Line:
    ours, naive = map(statistics.median, zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    against = f"{naive:.1f} {unit} for a venv and a pytest for each reader"
    return Line(what, f"{ours:.1f} {unit}", against, f"{ratio:.2f} times", str(budget), ratio <= budget.limit)


def _round(
    calendar: Calendar, readers: Sequence[str], *, naive_first: bool
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Run both sides; return the wall seconds of both, and the processor seconds of both, each as (ours, naive).

    Raises:
        SystemExit: the sides differ in how many cells pass.
    """
    with tempfile.TemporaryDirectory() as scratch:
        sides = [(_ours, Path(scratch) / "ours"), (_naive, Path(scratch) / "naive")]
        ended = {}
        for run, folder in sides[::-1] if naive_first else sides:
            make_project(folder)
            ended[run] = run(folder, calendar, readers)
    (our_wall, ours, our_passes), (their_wall, theirs, their_passes) = ended[_ours], ended[_naive]
    if our_passes != their_passes:
        raise SystemExit(f"expected {their_passes} cells to pass, as on the other side, found {our_passes}")
    return (our_wall, their_wall), (ours, theirs)


def make_project(folder: Path) -> None:
    """Make a project with the goldens of `CASES` by `WRITERS`, and the test that the naive side runs."""
    for case in CASES:
        for writer in WRITERS:
            of_case = Path("golden") / f"tests.compat.{case}" / writer
            shutil.copytree(ROOT / of_case, folder / of_case)
    shutil.copy(TESTS, folder / "test_goldens.py")
    (folder / "pytest.ini").write_text("[pytest]\n")


def _ours(folder: Path, calendar: Calendar, readers: Sequence[str]) -> tuple[float, float, int]:
    """Run a matrix; return its wall seconds, its processor seconds, and how many cells pass."""
    command = [sys.executable, "-m", "export_core", "matrix", "--readers", ",".join(readers), "--quiet"]
    seconds = _timed(command, folder, {**os.environ, "JAXEXPORT_CACHE": str(folder / "cache")})
    results = map(json.loads, (folder / ".jaxexport" / "results.jsonl").read_text().splitlines())
    return *seconds, sum(result["verdict"] == "pass" for result in results)


def _naive(folder: Path, calendar: Calendar, readers: Sequence[str]) -> tuple[float, float, int]:
    """Run the naive side; return its wall seconds, its processor seconds, and how many of its tests pass."""
    releases = []
    for release in map(calendar.release, readers):
        python = interpreter_for(pythons(release, calendar), uv_command()).python
        releases.append(f"{release.jax} {release.jaxlib} {python}\n")
    (folder / "releases").write_text("".join(releases))
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    seconds = _timed(["/bin/sh", "-c", _NAIVE], folder, {**variables, "JAX_PLATFORMS": "cpu", "UV": uv_command()})
    passed = [re.search(r"(\d+) passed", log.read_text()) for log in folder.glob("*.log")]
    return *seconds, sum(int(match[1]) for match in passed if match)


def _timed(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> tuple[float, float]:
    """Run a command; return its wall seconds, and the processor seconds of all its processes."""
    started = time.perf_counter()
    seconds = processor_seconds(command, folder, variables)
    return time.perf_counter() - started, seconds
