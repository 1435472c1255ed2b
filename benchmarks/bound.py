"""The cost of a cell in a matrix on all cores, against a lower bound and against other ways to isolate cells.

The lower bound runs the same artifacts in as many warm processes as there are cores; these processes isolate, audit and
compare nothing. A matrix adds the start of its worker, the audit, a cold process for each cell, and the comparison. The
other ways give each cell a process too: a new interpreter, a fork of a process that has imported jax, a process pool.
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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from benchmarks import parts
from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from benchmarks.warm import WarmProcess, sharing
from export_core.goldens.store import ARTIFACT
from export_core.matrix import Cell, CellLimits
from export_core.matrix.replay import replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.readers.environment import Environment
from export_core.readers.worker.client import PROGRAM, FreshInterpreters, start_worker
from export_core.readers.worker.protocol import WorkerStarter
from export_core.releases import Calendar

BUDGET = BUDGETS["matrix"].limit
PEERS_CELLS = 24
POOLS = Path(__file__).with_name("pools.py")
CORES = os.cpu_count() or 1


def measure(cells: Sequence[Cell], environment: Environment, calendar: Calendar, rounds: int) -> list[Line]:
    """Measure the mean wall seconds of a cell, in the matrix and in the bound in turn.

    The other ways to isolate cells are then measured on some of the cells.
    """
    with tempfile.TemporaryDirectory() as scratch:
        artifacts = {request.artifact for request in sharing(cells, Path(scratch))}
    cells = [cell for cell in cells if str(cell.golden.folder.resolve() / ARTIFACT) in artifacts]

    def matrix(
        some: Sequence[Cell] = cells, reader: Environment = environment, start: WorkerStarter = start_worker
    ) -> float:
        options = ReplayOptions(calendar, limits=CellLimits(jobs=CORES))
        started = time.perf_counter()
        ended = list(replay(some, lambda placement: reader, options, start=start))
        return (time.perf_counter() - started) / len(ended)

    pairs = [(matrix(), bound(cells, environment)) for _ in range(rounds)]
    ours, warm = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    return [
        Line(
            f"a cell of a matrix ({len(cells)} goldens, {CORES} at once, {rounds} rounds)",
            f"{1000 * ours:.0f} ms",
            f"{1000 * warm:.0f} ms, the bound: {CORES} warm processes that isolate, audit and compare nothing",
            f"{ratio:.2f} times",
            f"{BUDGET} times",
            ratio <= BUDGET,
        ),
        *peers(cells, environment, matrix),
        *parts.measure(cells, environment, matrix),
    ]


def peers(cells: Sequence[Cell], environment: Environment, matrix: Callable[..., float]) -> list[Line]:
    """Measure the other ways to isolate cells, on a sample of the cells, against `matrix` over the same sample."""
    sample = cells[:: max(1, len(cells) // PEERS_CELLS)]
    ours = matrix(sample)
    with tempfile.TemporaryDirectory() as empty:
        no_bytecode = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": empty}
        bare = dataclasses.replace(environment, variables={**environment.variables, **no_bytecode})
        seconds = {
            "a new interpreter for each cell": matrix(sample, start=FreshInterpreters),
            "a new interpreter for each cell, where Python finds no bytecode": matrix(sample, bare, FreshInterpreters),
            "a plain fork for each cell, of a process that has imported jax": pool(sample, environment, "fork"),
            "a process pool with one task per child (forkserver)": pool(sample, environment, "forkserver"),
        }
    return [
        Line(
            f"{len(sample)} of these cells: {what}",
            f"{1000 * other:.0f} ms",
            f"{1000 * ours:.0f} ms for the matrix of these alone",
            f"{other / ours:.1f} times",
            "",
            True,
        )
        for what, other in seconds.items()
    ]


def pool(cells: Sequence[Cell], environment: Environment, kind: str) -> float:
    """Return the mean wall seconds of a cell in a process pool of Python.

    Args:
        cells: the cells to run.
        environment: the environment of their reader.
        kind: how the pool starts a process, "fork" or "forkserver".
    """
    command = [str(environment.python), str(POOLS), str(PROGRAM), str(environment.half), kind, str(CORES)]
    with tempfile.TemporaryDirectory() as scratch:
        lines = ""
        for number, cell in enumerate(cells):
            (Path(scratch) / str(number)).mkdir()
            (request,) = sharing([cell], Path(scratch) / str(number))
            lines += json.dumps(msgspec.to_builtins(request)) + "\n"
        done = subprocess.run(
            command, input=lines, capture_output=True, check=True, text=True, env=dict(environment.variables)
        )
    return float(done.stdout.splitlines()[-1]) / len(cells)


def bound(cells: Sequence[Cell], environment: Environment) -> float:
    """Return the mean wall seconds of a cell when warm processes, one for each core, share the cells."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        # Each process has a folder for outputs, which its cells overwrite.
        requests = [
            sharing(cells[number::CORES], Path(stack.enter_context(tempfile.TemporaryDirectory(dir=scratch))))
            for number in range(CORES)
        ]
        warm = [stack.enter_context(contextlib.closing(WarmProcess(environment))) for _ in range(CORES)]
        pool = stack.enter_context(ThreadPoolExecutor(CORES))
        list(pool.map(lambda process, own: process.seconds(own[0]), warm, requests))
        started = time.perf_counter()
        list(pool.map(lambda process, own: [process.seconds(request) for request in own], warm, requests))
        return (time.perf_counter() - started) / len(cells)
