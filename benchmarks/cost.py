"""What it costs in a matrix to ask the compiler for its figures, such as the memory that a call needs.

The same cells of one reader are run by a worker that asks for the figures and by one that does not, in turn. The budget
limits the ratio of the median processor seconds of all processes. Wall time on a shared machine varies by more than the
figures take.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from export_core.goldens import GoldenStore
from export_core.matrix import Cell
from export_core.matrix.replay import replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import load_policy
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.placement import Placement

ROOT = Path(__file__).parents[1]
BUDGET = BUDGETS["cost"].limit
EVERY = 5
"""Every fifth golden is run: about 150 cells are enough, and both sides run all of them in each round."""
COST_QUESTION = '"cost": cost_of(compiled), '
"""The text by which the worker's program asks for the figures."""


def measure(rounds: int) -> list[Line]:
    """Measure every fifth golden of this project in the newest jaxlib, with and without the compiler's figures."""
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    reader = calendar.release(calendar.newest())
    environment = ReaderEnvironments(calendar).build(Placement(reader))
    cells = [Cell(golden, reader, "cpu") for golden in GoldenStore(ROOT / "golden").goldens()[::EVERY]]
    options = ReplayOptions(calendar)
    with tempfile.TemporaryDirectory() as folder:
        silent = Path(folder, "silent_worker.py")
        silent.write_text(_without_figures(environment.half.read_text()))
        environments = {True: environment, False: dataclasses.replace(environment, half=silent)}
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for number in range(2 * rounds + 1):
            asked = number % 2 == 1
            used = _processor_seconds(cells, environments[asked], options, asked=asked)
            if number:  # the first round warms the disk's cache
                seconds[asked].append(used / len(cells))
    with_figures, without = (statistics.median(seconds[asked]) for asked in (True, False))
    return [
        Line(
            f"figures of the compiler, in a matrix of {len(cells)} goldens (jaxlib {reader.jaxlib}, {rounds} rounds)",
            f"{1000 * with_figures:.1f} ms of processor a cell",
            f"{1000 * without:.1f} ms without",
            f"{with_figures / without:.3f} times",
            f"{BUDGET} times",
            with_figures / without <= BUDGET,
        )
    ]


def _without_figures(program: str) -> str:
    assert program.count(COST_QUESTION) == 1, "expected jaxlib_worker.py to ask for the figures once"
    return program.replace(COST_QUESTION, "")


def _processor_seconds(
    cells: Sequence[Cell], environment: Environment, options: ReplayOptions, *, asked: bool
) -> float:
    """Replay the cells; return the processor seconds of this process, of the worker and of its cells together.

    `asked` tells whether the worker in this environment asks the compiler for its figures, which is then checked.
    """
    before = os.times()
    outcomes = list(replay(cells, lambda placement: environment, options))
    after = os.times()
    assert any(outcome.cost for _, outcome in outcomes) is asked
    return sum(after[:4]) - sum(before[:4])
