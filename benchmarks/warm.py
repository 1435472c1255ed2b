"""Warm processes, which run cell after cell with the worker's own code, and the cells that can share such a process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from export_core.matrix import Cell, CellLimits
from export_core.readers.cell import request_of
from export_core.readers.environment import Environment
from export_core.readers.worker.client import PROGRAM
from export_core.readers.worker.protocol import Request

_WARM = """
import json, os, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import program
del sys.path[0]
half = program.load_half_or_exit(sys.argv[2])
for line in sys.stdin:
    started = time.perf_counter()
    try:
        half.run_cell(json.loads(line), lambda message: None)
    except Exception:  # a golden that this release refuses
        pass
    print(time.perf_counter() - started, flush=True)
"""


class WarmProcess:
    """A process that runs cell after cell with the worker's own code, in a reader's environment.

    It does not isolate cells: a crash may go unnoticed, or end the process.
    """

    def __init__(self, environment: Environment, program: Sequence[str] = ("-c", _WARM)) -> None:
        self._process = subprocess.Popen(
            [str(environment.python), *program, str(PROGRAM), str(environment.half)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment.variables),
            text=True,
        )

    def seconds(self, request: Request) -> float:
        """Run the cell of a request, and return the wall seconds that the process measured."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(msgspec.to_builtins(request)) + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """Close the process's input, which ends it, and wait for its end."""
        self._process.communicate()


def sharing(cells: Sequence[Cell], scratch: Path) -> list[Request]:
    """Return the requests of the cells that can share a warm process: one device, no x64, no registered modules."""
    requests = [request_of(cell, scratch, CellLimits(timeout=120.0, memory=0)) for cell in cells]
    return [request for request in requests if request.devices == 1 and not request.x64 and not request.register]
