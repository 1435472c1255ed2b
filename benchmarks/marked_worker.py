"""A worker that also records marks: the processor time that a cell has taken at the end of each of its parts.

It runs in a reader's environment: as `marked_worker.py serve NOTES HALF` in place of the program that $WORKER names, or
as `marked_worker.py warm PROGRAM HALF`, which runs cell after cell in one process. Each line of the file $MARKS lists
the parts of a cell, each with the processor seconds of the cell's process at the part's end. The last line of a worker
has the seconds of the worker itself, and of all its cells.
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
    """Return the processor seconds, user and system, of this process.

    If `whose` is `RUSAGE_CHILDREN`, return those of its children that have ended and been waited for.
    """
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def mark(part: str) -> None:
    """Add a mark: the name of a part of the cell that ends now, and the processor seconds so far."""
    marks.append((part, seconds()))


def note(line: Any) -> None:
    """Append a line of JSON to the file $MARKS, as a single write, since cells in several processes share the file."""
    with Path(os.environ["MARKS"]).open("a") as file:
        file.write(json.dumps(line) + "\n")


def marking(say: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Return a function that sends a cell's messages by `say`, and also marks the end of each stage.

    A stage ends when the next stage begins or the cell ends. With the last message, the cell's marks are written.
    """
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
    """Replace a function of the worker by one that does more: it calls `before` first, or adds the mark `after`.

    Args:
        worker: the module of Python that has the function.
        name: the name of the function.
        before: what is called before the function, if anything.
        after: the part of a cell that ends with the function; "" if no part does.
    """
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
    """Serve cells as the worker does, and record marks of each cell and the seconds of the worker at its end."""
    parent, writer_to, load_half_or_exit = os.getpid(), worker.writer_to, worker.load_half_or_exit
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
        half = load_half_or_exit(path)
        around(half, "start_ahead", after="client")
        return half

    worker.load_half_or_exit = starting
    around(worker, "die_with", before=begin)
    around(worker, "copy_pages", after="pages")
    around(worker, "report_cell", before=lambda: mark("request"))
    worker.writer_to = lambda descriptor: (
        writer_to(descriptor) if os.getpid() == parent else marking(writer_to(descriptor))
    )
    worker.Server.fork, worker.Server.serve = forking, serving
    worker.main()


def warm(worker: Any) -> None:
    """Run the cells of the requests on stdin, one after the other in this process, and record their marks."""
    half = worker.load_half_or_exit(sys.argv[3])
    for line in sys.stdin:
        marks.clear()
        mark("start")
        say = marking(lambda message: None)
        with contextlib.suppress(Exception):  # a golden that this release refuses
            half.run_cell(json.loads(line), say)
        say({"end": "ok"})
        print("0", flush=True)


def main() -> None:
    """Serve cells in forked processes, or run all in this process if the first argument is `warm`."""
    path = Path(os.environ["WORKER"])
    sys.path[0] = str(path.parent)  # not this folder, whose module names may hide others
    worker = importlib.import_module(path.stem)
    del sys.path[0]
    (warm if sys.argv[1] == "warm" else serve)(worker)


main()
