"""The cost of a cold cell against a warm process.

Both sides do the same: read the artifact and its inputs, deserialize, print the module, lower, compile, run, write the
outputs. A cold cell is measured from when its process receives it until its last message. Before, that process has
imported jax, started its client, and copied the memory pages that any cell writes. `bound.py` measures what that costs.
All run in an environment like every reader's, not in that of the benchmark.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import bound
from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from benchmarks.warm import WarmProcess, sharing
from export_core.goldens import GoldenStore
from export_core.matrix import Cell
from export_core.policy import load_policy
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.readers.worker.client import start_worker
from export_core.readers.worker.protocol import Request

ROOT = Path(__file__).parents[1]
COLD_BUDGET = BUDGETS["cold"].limit
AHEAD_SECONDS = 0.3


def measure(rounds: int) -> list[Line]:
    """Measure goldens of this project, read by the newest jaxlib."""
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    reader = calendar.release(calendar.newest())
    environment = ReaderEnvironments(calendar).build(Placement(reader))
    goldens = GoldenStore(ROOT / "golden").goldens()
    cells = [Cell(golden, reader, "cpu") for golden in goldens if "cpu" in golden.manifest.replayed_on]
    return [*cold(cells, environment, rounds), *bound.measure(cells, environment, calendar, rounds)]


def cold(
    cells: Sequence[Cell],
    environment: Environment,
    rounds: int,
    asked: Callable[[Sequence[Cell], Path], list[Request]] = sharing,
    *,
    caches: bool = False,
) -> list[Line]:
    """Measure the same cells in a warm process and in cold ones, in turn, since a machine's speed drifts.

    The budget limits the median of the ratios, each of the fastest rounds of a golden. The second line is the mean of
    all goldens. Cells that set up their process in their own way (devices, x64, registered modules) are left out.

    Args:
        cells: the cells to measure.
        environment: the environment of their reader.
        rounds: how often each cell runs.
        asked: makes the requests of the cells that can share a warm process.
        caches: whether the runtime caches what it has compiled. Then each round has a new warm process, which has run
            the first golden only. And each cold process gets `AHEAD_SECONDS` before its cell, since such cells may be
            shorter than its preparation.
    """
    forking, warm = start_worker(environment, 1), WarmProcess(environment)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            # A cell that fails, such as a golden that this release refuses, would measure something else.
            all_requests = asked(cells, Path(scratch))
            requests = [request for request in all_requests if forking.submit(request).result().end == "ok"]
            for request in requests:
                warm.seconds(request)
            cold_seconds: dict[str, list[float]] = defaultdict(list)
            warm_seconds: dict[str, list[float]] = defaultdict(list)
            for _ in range(rounds):
                if caches:
                    warm.close()
                    warm = WarmProcess(environment)
                    warm.seconds(requests[0])
                for request in requests[1:] if caches else requests:
                    time.sleep(AHEAD_SECONDS if caches else 0)
                    cold_seconds[request.artifact].append(forking.submit(request).result().seconds)
                    warm_seconds[request.artifact].append(warm.seconds(request))
    finally:
        forking.close()
        warm.close()
    pairs = [(min(cold_seconds[name]), min(warm_seconds[name])) for name in cold_seconds]
    colds, warms = zip(*pairs, strict=True)
    ratio = statistics.median(a_cold / a_warm for a_cold, a_warm in pairs)
    return [
        Line(
            f"a cold cell ({cells[0].reader.title}, {len(requests)} goldens, {rounds} rounds)",
            f"{1000 * statistics.median(colds):.0f} ms",
            f"{1000 * statistics.median(warms):.0f} ms warm",
            f"{ratio:.2f} times",
            f"{COLD_BUDGET} times",
            ratio <= COLD_BUDGET,
        ),
        Line(
            "the same, the mean of all goldens",
            f"{1000 * statistics.mean(colds):.0f} ms",
            f"{1000 * statistics.mean(warms):.0f} ms warm",
            f"{statistics.mean(colds) / statistics.mean(warms):.2f} times",
            "",
            True,
        ),
    ]
