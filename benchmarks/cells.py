"""The cost of a cold cell against a warm process.

Both sides do the same: read the artifact and its inputs, deserialize, print the module, lower, compile, run, write the
outputs. A cold cell is measured from when its process receives it until that process sends its last message. Before
the cell arrives, the process has imported jax, started XLA's client, and copied the memory pages that any cell writes.
`bound.py` measures what this preparation costs. Both sides run in an environment that is built as for any reader.
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
    """Measure cells of this project's goldens in the newest jaxlib, alone and in a matrix on all cores."""
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

    For each golden, the fastest cold round is divided by the fastest warm round. The budget limits the median of these
    ratios; a second line has the mean over all goldens.

    Args:
        cells: the cells to measure.
        environment: the environment of their reader.
        rounds: how often each cell runs.
        asked: returns the requests of the cells that can share a warm process. `sharing`, the default, leaves out
            cells that need several devices, x64 or registered modules.
        caches: whether the runtime caches what it has compiled. If so, each round starts a new warm process, in which
            only the first golden has run. Each cold process is then given `AHEAD_SECONDS` to prepare before its cell,
            since such a cell may be shorter than the preparation.
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
