"""The matrix command with stubs instead of readers: `python -m benchmarks.coordinator matrix …`.

A stub replies at once with the outputs that the golden expects, so that what is measured is the coordinator itself. At
the end, the coordinator's /proc/self/status is written to the file that $STATUS names. It tells the peak memory, for
which wait4 may report the peak of the parent process.
"""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import sys
from concurrent.futures import Future
from pathlib import Path

from export_core.cli import app as cli
from export_core.goldens.store import OUTPUTS
from export_core.matrix import cached_replay as local
from export_core.matrix.replay import replay
from export_core.readers.environment import Environment, ReaderEnvironments, this_interpreter
from export_core.readers.placement import Placement
from export_core.readers.worker.program import few_digits
from export_core.readers.worker.protocol import Cost, Reply, Request, Stage, Timings


class Stub:
    """A stub of a worker, which answers every cell at once with the outputs that its golden expects."""

    def submit(self, request: Request) -> Future[Reply]:
        """Copy the golden's outputs to the file of the request, and return a reply that is already there."""
        (check,) = request.checks
        assert check.outputs
        shutil.copyfile(Path(request.artifact).with_name(OUTPUTS), check.outputs)
        done: Future[Reply] = Future()
        seconds = few_digits(random.random())  # many cells have the same cost, and times of three digits
        stages = [few_digits(part * seconds) for part in range(1, 5)]
        timings = Timings(*stages, peak_bytes=int(few_digits(170_000_000 + 1e7 * seconds)))
        cost = Cost(1024, 64, 64, 0, 0, 5e3 + int(1000 * seconds), 84.0, 8e3, 131, 16)
        done.set_result(Reply(Stage.RUN, "ok", seconds=0.0, cost=cost, timings=timings))
        return done

    def close(self) -> None:
        """Do nothing: a stub has no process to end."""


def start(environment: Environment, slots: int) -> Stub:
    """Return a stub in place of the worker that would serve an environment."""
    return Stub()


def build(environments: ReaderEnvironments, placement: Placement) -> Environment:
    """Return this interpreter as the environment of any release."""
    return this_interpreter(placement.reader)


if __name__ == "__main__":
    local.replay = functools.partial(replay, start=start)  # type: ignore[assignment]
    ReaderEnvironments.build = build  # type: ignore[method-assign]
    atexit.register(lambda: Path(os.environ["STATUS"]).write_text(Path("/proc/self/status").read_text()))
    sys.exit(cli.main())
