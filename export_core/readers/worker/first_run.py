"""The first run of a golden that is measured: a cold process that replays it, and then runs its variants.

A replay that comes later would do in a process of its own what this one has done before its variants began. So it gets
this reply, and these outputs.
"""

from concurrent.futures import Future
from pathlib import Path
from typing import TypeAlias

import msgspec

from export_core.base.untrusted import read_regular
from export_core.goldens.store import sha256
from export_core.readers.worker.protocol import Reply, Request, Worker

_Stored: TypeAlias = tuple[Reply, list[bytes | None]]
"""A reply, and the outputs of each call: None where it had none."""


class FirstRuns:
    """The replies of cold processes, each for one replay of the same request."""

    def __init__(self) -> None:
        self._replies: dict[bytes, _Stored] = {}

    def run(self, worker: Worker, request: Request) -> Reply:
        """Run a request in a cold process and store how its calls ended: not where a variant ended the process.

        What the machine did, such as a timeout, is not stored either.
        """
        reply = worker.submit(request).result()
        ended = reply.end in ("ok", "error", "crash")
        if ended and (reply.end == "ok" or not reply.variant):
            paths = [Path(check.outputs) if check.outputs else None for check in request.checks]
            outputs = [read_regular(path) if path and path.exists() else None for path in paths]
            seconds = reply.ran or reply.seconds
            plain = msgspec.structs.replace(reply, variant="", failed={}, seconds=seconds, ran=0.0)
            self._replies[_content(request)] = plain, outputs
        return reply

    def before(self, worker: Worker) -> Worker:
        """Return a worker that answers from these runs where it can, and else has this one run the cell."""
        return _Answering(worker, self._replies)


class _Answering:
    """A worker in front of another one, which it closes."""

    def __init__(self, worker: Worker, replies: dict[bytes, _Stored]) -> None:
        self._worker = worker
        self._replies = replies
        self.close = worker.close

    def submit(self, request: Request) -> Future[Reply]:
        """Answer from a run that there was, once, or have the other worker run it."""
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
    """Return the content of a request without its limit, with the hash of each file in place of its path."""

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
