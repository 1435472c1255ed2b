"""What does a cold cell cost, against the same cell in a warm process and in a new interpreter?"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.line import Line
from export_core.export import installed_writer
from export_core.goldens import GoldenStore
from export_core.matrix import Cell, Environment, this_interpreter
from export_core.matrix.checks import request_of
from export_core.matrix.pool import Request, start_worker
from export_core.matrix.processes import WORKER
from export_core.policy import load_policy
from export_core.releases import Release

ROOT = Path(__file__).parents[1]
COLD_BUDGET = 1.4
MATRIX_BUDGET = 15.0
FRESH_CELLS = 8


def measure(rounds: int) -> list[Line]:
    """The same goldens in a warm process, forked and in new interpreters, one cell at a time, the three in turn.

    In turn, because a machine's speed drifts: what is held against the budget is the median of the ratios of neighbours.
    """
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    here = installed_writer(calendar)
    environment = this_interpreter(Release(here.jaxlib, here.jax, here.built))
    forking = start_worker(environment, 1, fork=True)
    fresh = start_worker(environment, 1, fork=False)
    warm = WarmProcess(environment)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            reader = Release(here.jaxlib, here.jax, here.built)
            requests = [
                request_of(Cell(golden, reader, "cpu"), Path(scratch), timeout=120.0, memory=0)
                for golden in GoldenStore(ROOT / "golden").goldens()
            ]
            # What does not run here, a golden that this release refuses for one, is no measure of a cell.
            requests = [request for request in requests if forking.submit(request).result().end == "ok"]
            for request in requests:
                warm.seconds(request)
            pairs = []
            for _ in range(rounds):
                for request in requests:
                    started = time.perf_counter()
                    told = forking.submit(request).result().seconds
                    pairs.append((told, time.perf_counter() - started, warm.seconds(request)))
            anew = []
            for request in requests[:: max(1, len(requests) // FRESH_CELLS)]:
                started = time.perf_counter()
                fresh.submit(request).result()
                anew.append(time.perf_counter() - started)
    finally:
        forking.close()
        fresh.close()
        warm.close()
    forked, whole, in_warm = (statistics.median(pair[i] for pair in pairs) for i in range(3))
    new_interpreter = statistics.median(anew)
    cold_ratio = statistics.median(told / warmly for told, _, warmly in pairs)
    matrix_ratio = new_interpreter / whole
    name = f"jaxlib {here.jaxlib}, {len(requests)} goldens, {rounds} rounds"
    return [
        Line(
            f"a cold cell ({name})",
            f"{1000 * forked:.0f} ms",
            f"{1000 * in_warm:.0f} ms warm",
            f"{cold_ratio:.2f} times",
            f"{COLD_BUDGET} times",
            cold_ratio <= COLD_BUDGET,
        ),
        Line(
            f"a cell of a matrix ({len(anew)} in new interpreters)",
            f"{1000 * whole:.0f} ms",
            f"{1000 * new_interpreter:.0f} ms in a new interpreter",
            f"{matrix_ratio:.1f} times faster",
            f"{MATRIX_BUDGET:.0f} times",
            matrix_ratio >= MATRIX_BUDGET,
        ),
    ]


_WARM = """
import importlib.util, json, sys, time
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
for line in sys.stdin:
    started = time.perf_counter()
    worker.run_cell(json.loads(line), lambda message: None)
    print(time.perf_counter() - started, flush=True)
"""


class WarmProcess:
    """One process that runs cell after cell with the worker's own code: what a crash would end, and what hides crashes."""

    def __init__(self, environment: Environment) -> None:
        self._process = subprocess.Popen(
            [str(environment.python), "-c", _WARM, str(WORKER)],
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
