"""The cost of a cold cell against a warm process, and of a matrix against a new interpreter for each cell.

Both sides of each ratio do the same: read the artifact and its inputs, deserialize, print the module, lower, compile,
run, write the outputs. A cold cell is measured from when its process receives it until its last message. That process
waits with jax imported, its client started as in any process that is about to read an artifact, and its own copies of
the pages that any cell writes. The second line shows what that costs before and after: whole matrices on all cores,
with the start of the worker, the audit and the comparison. The others are there to compare: new interpreters one after
the other, also where Python finds no bytecode; and cells that can share a process, in warm processes that do nothing
else. All run in an environment like every reader's, not in the one that runs the benchmark.
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
from export_core.environments.environment import Environment, ReaderEnvironments
from export_core.environments.placement import Placement
from export_core.goldens import GoldenStore
from export_core.matrix import Cell, Limits
from export_core.matrix.checks import request_of
from export_core.matrix.limits import ReplayOptions
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
    environment = ReaderEnvironments(calendar).build(Placement(reader))
    cells = [Cell(golden, reader, "cpu") for golden in GoldenStore(ROOT / "golden").goldens()]
    return [*cold(cells, environment, rounds), *matrix(cells, environment, calendar)]


def cold(cells: Sequence[Cell], environment: Environment, rounds: int) -> list[Line]:
    """The same cells in a warm process and in cold ones, one at a time, in turn: a machine's speed drifts.

    The budget limits the median of the ratios, each of the fastest rounds of a golden; the second line is the mean of
    all goldens. Cells that set up their process in their own way (devices, x64, registered modules) cannot share a warm
    one with others, and are left out.
    """
    forking, warm = start_worker(environment, 1, fork=True), WarmProcess(environment)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            # What does not run here, such as a golden that this release refuses, is no measure of a cell.
            all_requests = sharing(cells, Path(scratch))
            requests = [request for request in all_requests if forking.submit(request).result().end == "ok"]
            for request in requests:
                warm.seconds(request)
            cold_seconds: dict[str, list[float]] = defaultdict(list)
            warm_seconds: dict[str, list[float]] = defaultdict(list)
            for _ in range(rounds):
                for request in requests:
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
    requests = [request_of(cell, scratch, Limits(timeout=120.0, memory=0)) for cell in cells]
    return [request for request in requests if request.devices == 1 and not request.x64 and not request.register]


def matrix(cells: Sequence[Cell], environment: Environment, calendar: Calendar) -> list[Line]:
    """Wall seconds a cell, as many at once as there are cores: all cells forked, and a sample in new interpreters.

    The sample once more, one after the other, as a script would do it that starts an interpreter for each artifact; and
    in an environment of which Python has compiled nothing, and may not write what it compiles.
    """
    cores = os.cpu_count() or 1
    sample = cells[:: max(1, len(cells) // FRESH_CELLS)]
    forked = _seconds_a_cell(cells, environment, calendar, Limits(jobs=cores))
    anew = _seconds_a_cell(sample, environment, calendar, Limits(jobs=cores, fork=False))
    alone = _seconds_a_cell(sample, environment, calendar, Limits(jobs=1, fork=False))
    count, warm = _warm_seconds_a_cell(cells, environment)
    with tempfile.TemporaryDirectory() as empty:
        no_bytecode = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": empty}
        bare = dataclasses.replace(environment, variables={**environment.variables, **no_bytecode})
        compiling = _seconds_a_cell(sample, bare, calendar, Limits(jobs=1, fork=False))

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
            f"a cell of a matrix ({len(cells)} goldens, {cores} at once; {len(sample)} in new interpreters)",
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
    ended = list(replay(cells, lambda placement: environment, ReplayOptions(calendar, limits=limits)))
    return (time.perf_counter() - started) / len(ended)


def _warm_seconds_a_cell(cells: Sequence[Cell], environment: Environment) -> tuple[int, float]:
    """How many cells, and wall seconds a cell in one process for each core, each of which has run one before."""
    processes = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        # A folder of outputs for each process, which every cell of it overwrites.
        requests = [
            sharing(cells, Path(stack.enter_context(tempfile.TemporaryDirectory(dir=scratch))))
            for _ in range(processes)
        ]
        warm = [stack.enter_context(contextlib.closing(WarmProcess(environment))) for _ in range(processes)]
        pool = stack.enter_context(ThreadPoolExecutor(processes))

        def run(number: int, these: Sequence[Request]) -> None:
            for request in these:
                warm[number].seconds(request)

        list(pool.map(run, range(processes), [of_one[:1] for of_one in requests]))
        started = time.perf_counter()
        list(pool.map(run, range(processes), [of_one[number::processes] for number, of_one in enumerate(requests)]))
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
    """One process that runs cell after cell with the worker's own code. Some crashes hide in it, others end it."""

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
