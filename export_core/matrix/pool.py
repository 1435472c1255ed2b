"""How does a cell reach a worker, and its result come back, whatever dies on the way?"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import msgspec

from export_core.matrix.environments import LAST_LINES, Environment
from export_core.matrix.errors import WorkerDied

WORKER = Path(__file__).with_name("worker.py")
START_SECONDS = 120.0


class Request(msgspec.Struct, frozen=True):
    """What a worker is told of a cell. `timeout` in seconds; `memory` in bytes of resident size, 0 for no limit."""

    artifact: str
    inputs: str
    outputs: str
    x64: bool
    timeout: float
    memory: int


class Reply(msgspec.Struct, frozen=True):
    """What a worker answers: the stage reached, and how the process ended (see worker.py)."""

    stage: str
    end: str
    type: str | None = None
    message: str | None = None
    signal: int | None = None
    stderr: str = ""
    seconds: float = 0.0


class Worker(Protocol):
    """One reader on one platform, ready to run cells."""

    def submit(self, request: Request) -> Future[Reply]:
        """Run a cell in a cold process. The future raises `WorkerDied` when the worker is lost."""

    def close(self) -> None:
        """End the worker and everything it started."""


class WorkerStarter(Protocol):
    """Something that gives a worker for an environment."""

    def __call__(self, environment: Environment, slots: int, *, fork: bool) -> Worker:
        """Start a worker for up to `slots` cells at once. Raises `WorkerDied` when it does not start."""


def start_worker(environment: Environment, slots: int, *, fork: bool = hasattr(os, "fork")) -> Worker:
    """A worker that forks, or one new interpreter for each cell where `fork` is missing."""
    return ForkingWorker(environment) if fork else FreshInterpreters(environment, slots)


class ForkingWorker:
    """Talks to ``worker.py serve`` over its stdin and stdout."""

    def __init__(self, environment: Environment) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._process = _start(environment, "serve", self._stderr)
        self._pending: dict[int, Future[Reply]] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._count = 0
        self.ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(START_SECONDS) or self.ended:
            self.close()
            raise WorkerDied(f"the worker of jaxlib {environment.release.jaxlib} did not start:\n{self._last_lines()}")

    def submit(self, request: Request) -> Future[Reply]:
        """See `Worker.submit`."""
        future: Future[Reply] = Future()
        with self._lock:
            self._count += 1
            number = self._count
            self._pending[number] = future
        line = json.dumps({"id": number, **msgspec.to_builtins(request)}) + "\n"
        assert self._process.stdin
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError:
            self._fail_pending()
        if self.ended:
            self._fail_pending()
        return future

    def close(self) -> None:
        """See `Worker.close`."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.close()
            self._process.wait(timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=5)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            try:
                message: dict[str, Any] = json.loads(line)
            except ValueError:
                continue  # not ours: a library wrote to the descriptor; the cell it belongs to still answers or dies
            if message.get("ready"):
                self._ready.set()
            elif future := self._take(message.pop("id", None)):
                future.set_result(msgspec.convert(message, Reply))
        self.ended = True
        self._ready.set()
        self._fail_pending()

    def _take(self, number: int | None) -> Future[Reply] | None:
        with self._lock:
            return self._pending.pop(number, None) if number is not None else None

    def _fail_pending(self) -> None:
        with self._lock:
            lost, self._pending = list(self._pending.values()), {}
        for future in lost:
            future.set_exception(WorkerDied(f"the worker died with this cell still out:\n{self._last_lines()}"))

    def _last_lines(self) -> str:
        self._process.poll()
        return f"exit status {self._process.returncode}\n{_tail(self._stderr)}".strip()


class KeptWorkers:
    """Starts a worker once and hands it out again, for many small replays in one reader."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def start(self, environment: Environment, slots: int, *, fork: bool) -> Worker:
        """A `WorkerStarter`. The worker that it gives ignores `close`; one that has died is replaced."""
        if self._worker is None or (isinstance(self._worker, ForkingWorker) and self._worker.ended):
            self.close()
            self._worker = start_worker(environment, slots, fork=fork)
        return _Borrowed(self._worker)

    def close(self) -> None:
        """End the kept worker."""
        if self._worker is not None:
            self._worker.close()
        self._worker = None


class _Borrowed:
    """A worker that somebody else closes."""

    def __init__(self, worker: Worker) -> None:
        self.submit = worker.submit

    def close(self) -> None:
        """Leave it open."""


class FreshInterpreters:
    """Starts ``worker.py cell`` anew for every cell: slower, and needs no fork."""

    def __init__(self, environment: Environment, slots: int) -> None:
        self._environment = environment
        self._threads = ThreadPoolExecutor(max_workers=slots)

    def submit(self, request: Request) -> Future[Reply]:
        """See `Worker.submit`."""
        return self._threads.submit(self._run, request)

    def close(self) -> None:
        """See `Worker.close`."""
        self._threads.shutdown()

    def _run(self, request: Request) -> Reply:
        started = time.monotonic()
        with tempfile.TemporaryFile() as stderr:
            process = _start(self._environment, "cell", stderr)
            end: dict[str, Any] = {}
            timed_out = False
            try:
                out, _ = process.communicate(json.dumps(msgspec.to_builtins(request)).encode() + b"\n", request.timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
                timed_out = True
            stage = "read"
            for line in out.splitlines():
                message = json.loads(line)
                stage = message.get("stage", stage)
                end = message if "end" in message else end
            killed_by = -process.returncode if process.returncode < 0 and not timed_out else None
            if timed_out:
                end = {"end": "timeout"}
            elif killed_by or not end:
                end = {
                    "end": "crash",
                    "message": None
                    if killed_by
                    else f"the process ended without a word, with status {process.returncode}",
                }
            seconds = round(time.monotonic() - started, 4)
            reply = {"stage": stage, "signal": killed_by, "stderr": _tail(stderr), "seconds": seconds, **end}
            return msgspec.convert(reply, Reply)


def _start(environment: Environment, what: str, stderr: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(environment.python), str(WORKER), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=dict(environment.variables),
        start_new_session=True,  # Ctrl-C is for the coordinator, which then ends its workers
    )


def _tail(file: Any) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 4000))
    return "\n".join(file.read().decode(errors="replace").strip().splitlines()[-LAST_LINES:])
