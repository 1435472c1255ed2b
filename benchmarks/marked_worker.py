"""The worker's program with marks: it records the processor time of each cell after each of its parts.

It runs in a reader's environment: as `marked_worker.py serve NOTES HALF` in place of the program that $WORKER names, or
as `marked_worker.py warm PROGRAM HALF`, which runs cell after cell in one process. A line of the file $MARKS has the
parts of a cell, each with the processor seconds of its process at the part's end. The last line of a worker has the
seconds of the worker itself, and of all its cells.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

marks: list[tuple[str, float]] = []


def seconds(whose: int = resource.RUSAGE_SELF) -> float:
    """Return the processor seconds of this process, or of its children that were waited for."""
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def mark(part: str) -> None:
    """Record that a part of the cell ends."""
    marks.append((part, seconds()))


def note(line: Any) -> None:
    """Append a whole line to the file: cells of several processes share it."""
    with Path(os.environ["MARKS"]).open("a") as file:
        file.write(json.dumps(line) + "\n")


def marking(say: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Return a `say` for a cell that also marks the end of a stage when the next one begins."""
    stage = ["read"]

    def marked(message: dict[str, Any]) -> None:
        if "stage" in message or "end" in message:
            mark(stage[0])
            stage[0] = message.get("stage", stage[0])
        if "end" in message:
            note(marks)
        say(message)

    return marked


def around(worker: Any, name: str, *, before: Callable[[], None] | None = None, after: str = "") -> None:
    """Call something before a function of the worker, or mark a part after it."""
    function = getattr(worker, name)

    def wrapped(*arguments: Any) -> Any:
        if before:
            before()
        result = function(*arguments)
        if after:
            mark(after)
        return result

    setattr(worker, name, wrapped)


def serve(worker: Any) -> None:
    """Serve cells as the worker does, with marks."""
    parent, writer_to, start_half = os.getpid(), worker.writer_to, worker.start_half
    fork, serve_cells = worker.Server.fork, worker.Server.serve
    before_cells: list[float] = []

    def begin() -> None:
        marks.clear()
        mark("fork")

    def forking(server: Any, *, spare: bool) -> Any:
        before_cells.append(seconds())
        return fork(server, spare=spare)

    def serving(server: Any) -> None:
        serve_cells(server)
        with contextlib.suppress(ChildProcessError):
            while True:  # processes that have sent their last message, and may still be ending
                os.waitpid(-1, 0)
        start, cells = before_cells[0], seconds(resource.RUSAGE_CHILDREN)
        note({"start": start, "worker": seconds() - start, "cells": cells})

    def starting(path: str) -> Any:
        half = start_half(path)
        around(half, "start_ahead", after="client")
        return half

    worker.start_half = starting
    around(worker, "die_with", before=begin)
    around(worker, "copy_pages", after="pages")
    around(worker, "report_cell", before=lambda: mark("request"))
    worker.writer_to = lambda descriptor: (
        writer_to(descriptor) if os.getpid() == parent else marking(writer_to(descriptor))
    )
    worker.Server.fork, worker.Server.serve = forking, serving
    worker.main()


def warm(worker: Any) -> None:
    """Run cells one after the other in this process."""
    half = worker.start_half(sys.argv[3])
    for line in sys.stdin:
        marks.clear()
        mark("start")
        say = marking(lambda message: None)
        with contextlib.suppress(Exception):  # a golden that this release refuses
            half.run_cell(json.loads(line), say)
        say({"end": "ok"})
        print("0", flush=True)


def main() -> None:
    """Serve, or run cells in this process."""
    path = Path(os.environ["WORKER"])
    sys.path[0] = str(path.parent)  # not this folder, whose module names may hide others
    worker = importlib.import_module(path.stem)
    del sys.path[0]
    (warm if sys.argv[1] == "warm" else serve)(worker)


main()
