"""The command line of a matrix with stubs for readers, all else real: `python -m benchmarks.coordinator matrix …`.

A stub replies at once with the outputs that the golden expects, so that the rest is the cost of the coordinator itself.
At the end its /proc/self/status is written to the file that $STATUS names: wait4 may report the memory of the process
that started it.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
from concurrent.futures import Future
from pathlib import Path

from export_core.cli import app as cli
from export_core.environments.environment import Environment, this_interpreter
from export_core.goldens.store import OUTPUTS
from export_core.matrix import local_replay as local
from export_core.matrix.replay import replay
from export_core.releases import Release
from export_core.worker.protocol import Reply, Request, Stage


class Stub:
    """A worker that has run every cell already."""

    def submit(self, request: Request) -> Future[Reply]:
        """See `pool.Worker.submit`."""
        (check,) = request.checks
        assert check.outputs
        shutil.copyfile(Path(request.artifact).with_name(OUTPUTS), check.outputs)
        done: Future[Reply] = Future()
        done.set_result(Reply(Stage.RUN, "ok", seconds=0.0))
        return done

    def close(self) -> None:
        """Nothing to end."""


def start(environment: Environment, slots: int, *, fork: bool) -> Stub:
    """A stub for any environment."""
    return Stub()


def environment(release: Release, *_: object) -> Environment:
    """This interpreter, for any release."""
    return this_interpreter(release)


if __name__ == "__main__":
    local.replay = functools.partial(replay, start=start)  # type: ignore[assignment]
    local.build_environment = environment  # type: ignore[assignment]
    atexit.register(lambda: Path(os.environ["STATUS"]).write_text(Path("/proc/self/status").read_text()))
    sys.exit(cli.main())
