"""The first measured run of a golden: a cold process that replays the golden and then runs its variants.

A later replay of the same request would do in a process of its own what this process did before its variants began. So
that replay gets the reply and the outputs of this process.
"""

from concurrent.futures import Future
from pathlib import Path
from typing import TypeAlias

import msgspec

from export_core.base.untrusted import read_regular
from export_core.goldens.store import sha256
from export_core.readers.worker.protocol import Reply, Request, Worker

_Stored: TypeAlias = tuple[Reply, list[bytes | None]]
"""A reply, and the content of each call's file of outputs; None if the call wrote no outputs."""


class FirstRuns:
    """A store of replies of cold processes, each of which answers the same request once more without a new process."""

    def __init__(self) -> None:
        self._replies: dict[bytes, _Stored] = {}

    def run(self, worker: Worker, request: Request, most: int | None = None) -> Reply:
        """Run a request in a cold process, and store its reply and outputs for one later replay.

        Nothing is stored if a variant, a limit of time or memory, or a fault of the machine ended the process, or if
        the outputs have more than `most` bytes.
        """
        reply = worker.submit(request).result()
        ended = reply.end in ("ok", "error", "crash")
        if ended and (reply.end == "ok" or not reply.variant):
            paths = [Path(check.outputs) if check.outputs else None for check in request.checks]
            if most is not None and sum(path.stat().st_size for path in paths if path and path.exists()) > most:
                return reply
            outputs = [read_regular(path) if path and path.exists() else None for path in paths]
            seconds = reply.ran or reply.seconds
            plain = msgspec.structs.replace(reply, variant="", failed={}, seconds=seconds, ran=0.0)
            self._replies[_content(request)] = plain, outputs
        return reply

    def before(self, worker: Worker) -> Worker:
        """Return a worker that answers requests from the stored replies and passes all others to `worker`."""
        return _Answering(worker, self._replies)


class _Answering:
    """A worker that answers from stored replies, and passes all other requests to another worker."""

    def __init__(self, worker: Worker, replies: dict[bytes, _Stored]) -> None:
        self._worker = worker
        self._replies = replies
        self.close = worker.close

    def submit(self, request: Request) -> Future[Reply]:
        """Answer a request with its stored reply, which is then forgotten, or pass the request to the other worker."""
        known = self._replies.pop(_content(request), None) if self._replies else None
        if known is None:
            return self._worker.submit(request)
        reply, outputs = known
        for check, data in zip(request.checks, outputs, strict=True):
            if check.outputs and data is not None:
                Path(check.outputs).write_bytes(data)
        future: Future[Reply] = Future()
        future.set_result(reply)
        return future


def _content(request: Request) -> bytes:
    """Return bytes by which a stored reply is looked up: requests with equal bytes run alike.

    They leave out the time limit and the variants of a request, and have the hash of each file in place of its path.
    """

    def of_file(path: str) -> str:
        return sha256(read_regular(Path(path)))

    replace = msgspec.structs.replace
    checks = tuple(
        replace(check, inputs=of_file(check.inputs), outputs=check.outputs and "", variants=())
        for check in request.checks
    )
    register = tuple((name, of_file(path)) for name, path in request.register)
    # What ended before its limit would have ended before any other.
    plain = replace(request, timeout=0.0, by_processor=False, checks=checks, register=register)
    return msgspec.json.encode(replace(plain, artifact=of_file(request.artifact)))
