"""Cells in pools of Python's own: `pools.py PROGRAM HALF fork|forkserver JOBS`, with requests as JSON lines on stdin.

Each cell has a process of its own, forked from one that has imported jax, and runs as the worker runs it. Nothing
limits its time or its memory, nothing is audited or compared, and a cell that crashes ends the pool. It prints the
seconds of all cells, and runs in a reader's environment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path


def run(line: str) -> None:
    """Run one cell."""
    path = Path(sys.argv[1])
    sys.path.insert(0, str(path.parent))
    program = importlib.import_module(path.stem)
    del sys.path[0]
    with contextlib.suppress(Exception):  # a golden that this release refuses
        program.start_half(sys.argv[2]).run_cell(json.loads(line), lambda message: None)


def main() -> None:
    """Run all requests, as many at once as there are jobs."""
    lines, kind, jobs = sys.stdin.readlines(), sys.argv[3], int(sys.argv[4])
    if kind == "fork":
        importlib.import_module("jax.export")

        context = multiprocessing.get_context("fork")
        started = time.perf_counter()
        with context.Pool(jobs, maxtasksperchild=1) as pool:
            pool.map(run, lines, chunksize=1)
    else:
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["jax", "jax.export"])
        started = time.perf_counter()
        with ProcessPoolExecutor(jobs, mp_context=server, max_tasks_per_child=1) as executor:
            list(executor.map(run, lines))
    print(time.perf_counter() - started)


if __name__ == "__main__":
    sys.path.pop(0)  # not this folder, whose module names may hide others
    main()
