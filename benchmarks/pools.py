"""Cells in a process pool of Python's library: `pools.py PROGRAM HALF fork|forkserver JOBS`.

It runs in a reader's environment, reads requests as JSON lines from stdin, and prints the wall seconds of all cells
together. Each cell runs in a new process, forked from a process that has imported jax, by the worker's own code. Time
and memory have no limit, nothing is audited or compared, and a cell that crashes ends the pool.
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
    """Run the cell of a request, which is a line of JSON. An error that the cell raises is ignored."""
    path = Path(sys.argv[1])
    sys.path.insert(0, str(path.parent))
    program = importlib.import_module(path.stem)
    del sys.path[0]
    with contextlib.suppress(Exception):  # a golden that this release refuses
        program.load_half_or_exit(sys.argv[2]).run_cell(json.loads(line), lambda message: None)


def main() -> None:
    """Run all requests, as many at once as JOBS says, and print the wall seconds."""
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
