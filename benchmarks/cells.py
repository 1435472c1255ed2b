"""What does a cold cell cost, against the same cell in a warm process, and a matrix, against a new interpreter for each cell?

Both sides of each ratio do the same: read the artifact and its inputs, deserialize, print the module, lower, compile, run, write the
outputs. A cold cell is measured from when it is given to its process until its last word. That process waits with jax imported, its
client started as in any process that is about to read an artifact, and its own copies of the pages that any cell writes. What it costs
before and after is in the second line: whole matrices on all cores, start of the worker, audit and comparison included. The others are
for comparison: new interpreters one after the other, and where Python keeps no bytecode; and those that can share a process, in warm
processes that do nothing around them. All run in an environment as every reader's, not in the one that this runs in.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from benchmarks.line import Line
from export_core.environments.environment import Environment, Environments
from export_core.environments.placement import Placement
from export_core.goldens import GoldenStore
from export_core.matrix import Cell, Limits
from export_core.matrix.checks import request_of
from export_core.matrix.replay import replay
from export_core.policy import load_policy
from export_core.releases import Calendar
from export_core.worker.client import start_worker
from export_core.worker.processes import PROGRAM
from export_core.worker.protocol import Request

ROOT = Path(__file__).parents[1]
COLD_BUDGET = 1.4
MATRIX_BUDGET = 15.0
FRESH_CELLS = 24


def measure(rounds: int) -> list[Line]:
    """Goldens of this project, read by the newest jaxlib."""
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    reader = calendar.release(calendar.newest())
    environment = Environments(calendar).build(Placement(reader))
    cells = [Cell(golden, reader, "cpu") for golden in GoldenStore(ROOT / "golden").goldens()]
    return [*cold(cells, environment, rounds), *matrix(cells, environment, calendar)]


def cold(cells: Sequence[Cell], environment: Environment, rounds: int) -> list[Line]:
    """The same cells in a warm process and in cold ones, one at a time, in turn: a machine's speed drifts.

    What is held against the budget is the median of the ratios, each of the fastest rounds of a golden; the second line is the time of all
    goldens together. Cells that set up their process in a way of their own (devices, x64, modules that are registered) cannot share a warm
    one with others, and are left out.
    """
    forking, warm = start_worker(environment, 1, fork=True), WarmProcess(environment)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            # What does not run here, a golden that this release refuses for one, is no measure of a cell.
            requests = [each for each in sharing(cells, Path(scratch)) if forking.submit(each).result().end == "ok"]
            for request in requests:
                warm.seconds(request)
            told: dict[str, list[float]] = defaultdict(list)
            warmly: dict[str, list[float]] = defaultdict(list)
            for _ in range(rounds):
                for request in requests:
                    told[request.artifact].append(forking.submit(request).result().seconds)
                    warmly[request.artifact].append(warm.seconds(request))
    finally:
        forking.close()
        warm.close()
    pairs = [(min(told[name]), min(warmly[name])) for name in told]
    colds, warms = zip(*pairs, strict=True)
    ratio = statistics.median(a_cold / a_warm for a_cold, a_warm in pairs)
    return [
        Line(
            f"a cold cell (jaxlib {cells[0].reader.jaxlib}, {len(requests)} goldens, {rounds} rounds)",
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


def sharing(cells: Sequence[Cell], scratch: Path) -> list[Request]:
    """Those that can share a warm process."""
    requests = [request_of(cell, scratch, timeout=120.0, memory=0) for cell in cells]
    return [each for each in requests if each.devices == 1 and not each.x64 and not each.register]


def matrix(cells: Sequence[Cell], environment: Environment, calendar: Calendar) -> list[Line]:
    """Wall seconds a cell, with as many at once as there are cores: all cells forked, and some of all kinds in new interpreters.

    These once more, one after the other, as a script that starts an interpreter for each artifact would do it; and in an environment of
    which Python has compiled nothing, and may not write what it compiles.
    """
    cores = os.cpu_count() or 1
    some = cells[:: max(1, len(cells) // FRESH_CELLS)]
    forked = _seconds_a_cell(cells, environment, calendar, Limits(jobs=cores))
    anew = _seconds_a_cell(some, environment, calendar, Limits(jobs=cores, fork=False))
    alone = _seconds_a_cell(some, environment, calendar, Limits(jobs=1, fork=False))
    count, warm = _warm_seconds_a_cell(cells, environment)
    with tempfile.TemporaryDirectory() as empty:
        none_kept = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": empty}
        bare = dataclasses.replace(environment, variables={**environment.variables, **none_kept})
        compiling = _seconds_a_cell(some, bare, calendar, Limits(jobs=1, fork=False))

    def against(what: str, seconds: float, other: float, budget: float | None = None) -> Line:
        return Line(
            what,
            f"{1000 * seconds:.0f} ms",
            f"{1000 * other:.0f} ms in a new interpreter",
            f"{other / seconds:.1f} times faster",
            f"{budget:.0f} times" if budget else "",
            not budget or other / seconds >= budget,
        )

    return [
        against(
            f"a cell of a matrix ({len(cells)} goldens, {cores} at once; {len(some)} in new interpreters)",
            forked,
            anew,
            MATRIX_BUDGET,
        ),
        against("the same, against new interpreters one after the other", forked, alone),
        against("the same, where these find no bytecode", forked, compiling),
        against(
            f"a bound: {count} of these in {cores} warm processes, neither isolated nor audited nor compared",
            warm,
            anew,
        ),
    ]


def _seconds_a_cell(cells: Sequence[Cell], environment: Environment, calendar: Calendar, limits: Limits) -> float:
    started = time.perf_counter()
    ended = list(replay(cells, lambda reader: environment, calendar, limits=limits))
    return (time.perf_counter() - started) / len(ended)


def _warm_seconds_a_cell(cells: Sequence[Cell], environment: Environment) -> tuple[int, float]:
    """How many cells, and wall seconds a cell with a process for each core, each of which has run one before."""
    processes = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        # Each process writes what comes out of its cells, and one after the other overwrites it.
        requests = [
            sharing(cells, Path(stack.enter_context(tempfile.TemporaryDirectory(dir=scratch))))
            for _ in range(processes)
        ]
        warm = [stack.enter_context(contextlib.closing(WarmProcess(environment))) for _ in range(processes)]
        pool = stack.enter_context(ThreadPoolExecutor(processes))

        def run(number: int, these: Sequence[Request]) -> None:
            for request in these:
                warm[number].seconds(request)

        list(pool.map(run, range(processes), [each[:1] for each in requests]))
        started = time.perf_counter()
        list(pool.map(run, range(processes), [each[number::processes] for number, each in enumerate(requests)]))
        return len(requests[0]), (time.perf_counter() - started) / len(requests[0])


_WARM = """
import importlib.util, json, sys, time
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
for line in sys.stdin:
    started = time.perf_counter()
    try:
        worker.run_cell(json.loads(line), lambda message: None)
    except Exception:  # a golden that this release refuses
        pass
    print(time.perf_counter() - started, flush=True)
"""


class WarmProcess:
    """One process that runs cell after cell with the worker's own code: what a crash would end, and what hides crashes."""

    def __init__(self, environment: Environment) -> None:
        self._process = subprocess.Popen(
            [str(environment.python), "-c", _WARM, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment.variables),
            text=True,
        )

    def seconds(self, request: Request) -> float:
        """Run a cell; wall seconds as the process measured them."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(msgspec.to_builtins(request)) + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate()
