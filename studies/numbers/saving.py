"""The command `jaxexport`, which also stores outputs: `OUTPUTS=DIR python -m studies.numbers.saving matrix …`.

The outputs of each reader are copied to DIR/READER/CASE/WRITER/CALL.npz before they are judged, so that other rules can
judge them too. CALL is the number of the golden's call, from 0.
"""

from __future__ import annotations

import functools
import os
import shutil
from concurrent.futures import Future
from pathlib import Path

from export_core.cli import app as cli
from export_core.matrix import cached_replay as local
from export_core.matrix.replay import replay
from export_core.readers.environment import Environment
from export_core.readers.worker.client import start_worker
from export_core.readers.worker.protocol import Reply, Request, Worker


class Saving:
    """A worker that also copies the outputs of its cells into a folder."""

    def __init__(self, worker: Worker, folder: Path) -> None:
        self._worker, self._folder = worker, folder

    def submit(self, request: Request) -> Future[Reply]:
        """Send a cell to the worker, and copy the cell's outputs before the reply is passed on."""
        reply: Future[Reply] = Future()
        self._worker.submit(request).add_done_callback(functools.partial(self._copy, request, reply))
        return reply

    def close(self) -> None:
        """End the worker, as `Worker.close` does."""
        self._worker.close()

    def _copy(self, request: Request, reply: Future[Reply], replied: Future[Reply]) -> None:
        golden = Path(request.artifact).parent
        try:
            if replied.result().end == "ok":
                for number, check in enumerate(request.checks):
                    if check.outputs and Path(check.outputs).exists():
                        target = self._folder / golden.parent.name / golden.name / f"{number}.npz"
                        target.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(check.outputs, target)
            reply.set_result(replied.result())
        except Exception as error:
            reply.set_exception(error)


def start(environment: Environment, slots: int) -> Saving:
    """Start a worker in an environment, and return it wrapped so that it copies the outputs of its cells."""
    folder = Path(os.environ["OUTPUTS"]) / environment.release.jaxlib
    return Saving(start_worker(environment, slots), folder)


if __name__ == "__main__":
    local.replay = functools.partial(replay, start=start)  # type: ignore[attr-defined]
    cli.main()
