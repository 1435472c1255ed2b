"""The share of a run's time after which all promised cells have their results, so that the gate's answer is known."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from export_core.judge import Result
from export_core.matrix import Selection
from export_core.policy import load_policy
from export_core.policy.run_options import RunOptions
from export_core.run.session import Observer, run_matrix

ROOT = Path(__file__).parents[1]
READERS = ("0.7.2", "0.8.1", "0.9.2", "0.10.1", "0.11.0", "0.11.2", "0.12.0", "0.12.0.1")
CASES = ("*.test_models.*", "*.test_programs.*", "*.test_linear_algebra.*")
MORE = BUDGETS["gate"].limit / 100
"""How much later than at the promised cells' share of the work the last of them may end, as a part of the whole run."""


def measure() -> list[Line]:
    """Measure when the last promised cell of a run ends. An earlier run has built all environments.

    The run has some cases, in old and new readers, and does not use the cache of outcomes.
    """
    _times()
    times = _times()
    answer = max(after for after, result in times if result.promised)
    whole = max(after for after, _ in times)
    # In seconds and not in cells: a cell outside the window is often refused at once, and costs next to nothing.
    seconds = {kind: sum(cell.seconds for _, cell in times if cell.promised is kind) for kind in (True, False)}
    share = seconds[True] / sum(seconds.values())
    promised = sum(result.promised for _, result in times)
    return [
        Line(
            f"the gate's answer: {promised:,} promised of {len(times):,} cells, {len(READERS)} readers",
            f"{answer:.1f} s",
            f"{whole:.1f} s, the whole run",
            f"{answer / whole:.0%} of the run",
            f"{share:.0%} + {MORE:.0%}",
            answer / whole <= share + MORE,
        )
    ]


def _times() -> list[tuple[float, Result]]:
    """Run the cells, and return each result with the seconds from the start of the run until it was known."""
    times: list[tuple[float, Result]] = []
    started = time.perf_counter()
    run_matrix(
        load_policy(ROOT / "export_compat.yaml"),
        Selection(readers=",".join(READERS), cases=CASES),
        RunOptions(results=None, goldens=ROOT / "golden", cache=False),
        observer=Observer(result=lambda result: times.append((time.perf_counter() - started, result))),
    )
    return times
