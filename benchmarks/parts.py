"""The processor time of a cell by part, in a matrix and in a warm process that runs the same cells."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.line import Line
from benchmarks.warm import WarmProcess, sharing
from export_core.matrix import Cell
from export_core.readers.environment import Environment
from export_core.readers.worker import client

MARKED = Path(__file__).with_name("marked_worker.py")
BEFORE = {"fork": "its process begins", "pages": "pages that any cell writes are copied", "client": "the client starts"}
STAGES = {
    "read": "artifact read",
    "deserialize": "deserialize",
    "module": "module parsed",
    "lower": "lower",
    "compile": "compile",
    "run": "run, outputs written",
}


def measure(cells: Sequence[Cell], environment: Environment, matrix: Callable[..., float]) -> list[Line]:
    """Measure how much processor time each part of a cell takes in a matrix, and in a warm process.

    Args:
        cells: the cells to measure.
        environment: the environment of their reader.
        matrix: runs cells in an environment as a matrix does, and returns the mean wall seconds of a cell.
    """
    with tempfile.TemporaryDirectory() as scratch:
        cold, warm = Path(scratch) / "cold", Path(scratch) / "warm"
        used = time.process_time()
        with marked(environment, cold) as marked_environment:
            wall = matrix(cells, marked_environment)
        coordinator = time.process_time() - used
        with marked(environment, warm) as marked_environment:
            process = WarmProcess(marked_environment, [str(MARKED), "warm"])
            for request in sharing([*cells[:1], *cells], Path(scratch)):
                process.seconds(request)
            process.close()
        ours, whole = read(cold.read_text().splitlines())
        # Without its first cell, which imports jax.
        theirs, _ = read(warm.read_text().splitlines()[1:])
    count, known = len(cells), sum(ours.values())
    rows = [(f"before it has its cell: {text}", ours[part], 0.0) for part, text in BEFORE.items()]
    rows += [(text, ours[part], theirs[part]) for part, text in STAGES.items()]
    rows.append(("its process ends; spare processes that got no cell", whole["cells"] - known, 0.0))
    rows.append(("the worker starts: jax is imported", whole["start"], 0.0))
    rows.append(("the worker: forks, messages", whole["worker"], 0.0))
    rows.append(("the coordinator: audit, requests, comparison", coordinator, 0.0))
    total, bound = (sum(row[side] for row in rows) for side in (1, 2))
    rows.append(("all of it", total, bound))
    lines = [line(what, one / count, other / count) for what, one, other in rows]
    idle = wall * (os.cpu_count() or 1) - total / count
    return [*lines, line("processors idle, or used by others", idle, 0.0)]


def line(what: str, cold: float, warm: float) -> Line:
    """Return the table's line for a part of a cell, given its processor seconds in a cold and in a warm process."""
    return Line(
        f"where a cell's milliseconds go: {what}",
        f"{1000 * cold:.1f} ms",
        f"{1000 * warm:.1f} ms in a warm process",
        f"{1000 * (cold - warm):+.1f} ms",
        "",
        True,
    )


@contextlib.contextmanager
def marked(environment: Environment, marks: Path) -> Iterator[Environment]:
    """Make workers run marked_worker.py inside the `with` block, and yield the environment for them.

    The environment has the variables that marked_worker.py needs; it writes its marks to the file `marks`.
    """
    program = client.PROGRAM
    variables = {**environment.variables, "MARKS": str(marks), "WORKER": str(program)}
    client.PROGRAM = MARKED
    try:
        yield dataclasses.replace(environment, variables=variables)
    finally:
        client.PROGRAM = program


def read(lines: Sequence[str]) -> tuple[Counter[str], dict[str, float]]:
    """Return the processor seconds of all cells by part, and the worker's last line, from lines of marks.

    The worker's last line has the seconds of the worker itself ("start", "worker") and of all its cells ("cells"). It
    is an empty dict if cells ran in a warm process.
    """
    seconds: Counter[str] = Counter()
    whole: dict[str, float] = {}
    for noted in map(json.loads, lines):
        if isinstance(noted, dict):
            whole = noted
            continue
        # A forked process begins with no seconds; a warm one has those of earlier cells.
        before = 0.0 if noted[0][0] == "fork" else noted[0][1]
        for part, after in noted:
            seconds["fork" if part == "request" else part] += after - before
            before = after
    return seconds, whole
