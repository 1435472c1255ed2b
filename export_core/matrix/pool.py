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
from typing import Any, Literal, Protocol

import msgspec

from export_core.matrix.environments import LAST_LINES, Environment
from export_core.matrix.errors import WorkerDied
from export_core.matrix.worker import keep, resident_bytes

WORKER = Path(__file__).with_name("worker.py")
START_SECONDS = 120.0
CLOSE_SECONDS = 5.0
GRACE_SECONDS = 30.0
"""How long a worker may be silent beyond its cells' limits, before it counts as stuck."""
LOOK_SECONDS = 0.05
"""How often a cell's time and memory are looked at."""


class CheckRequest(msgspec.Struct, frozen=True):
    """One call of the artifact (see worker.py). Paths; without `outputs` it must be refused; `dump` is a folder that is there."""

    name: str
    vjp: int
    inputs: str
    outputs: str | None
    mesh: tuple[tuple[str, int], ...]
    place: Literal["own", "whole", "spread"]
    dump: str | None = None


class Request(msgspec.Struct, frozen=True):
    """What a worker is told of a cell. `timeout` in seconds; `memory` in bytes of resident size, 0 for no limit.

    `checks` are the calls in order, the plain one first; `register` names modules and the files they are imported from.
    """

    artifact: str
    checks: tuple[CheckRequest, ...]
    register: tuple[tuple[str, str], ...]
    devices: int
    x64: bool
    timeout: float
    memory: int


class Reply(msgspec.Struct, frozen=True):
    """What a worker answers: the stage and the check reached, and how the process ended (see worker.py).

    `refusals` are the messages of the calls that were to be refused; `shardings` says where the outputs of the plain call lay.
    """

    stage: str
    end: str
    check: str = ""
    refusals: dict[str, str] = {}
    shardings: tuple[str, ...] = ()
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
        try:
            self._process = _start(environment, "serve", self._stderr)
        except WorkerDied:
            self._stderr.close()
            raise
        self._started = time.monotonic()
        self._pending: dict[int, Future[Reply]] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._count = 0
        self.ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(START_SECONDS) or self.ended:
            problem = self._last_lines()
            self.close()
            raise WorkerDied(f"the worker of jaxlib {environment.release.jaxlib} did not start:\n{problem}")

    def submit(self, request: Request) -> Future[Reply]:
        """See `Worker.submit`."""
        future: Future[Reply] = Future()
        with self._lock:
            self._count += 1
            number = self._count
            self._pending[number] = future
        # The worker keeps the limit of a cell; one that is stuck itself (stopped, or its requests lost) must not hang the run. A
        # cell may have waited for the first one, which goes alone.
        watch = threading.Timer(2 * request.timeout + GRACE_SECONDS, self._process.kill)
        watch.daemon = True
        watch.start()
        future.add_done_callback(lambda _: watch.cancel())
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
            self._process.wait(timeout=CLOSE_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=5)
        self._process.stdout.close()
        self._stderr.close()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            message = _message(line)
            if message.get("ready"):
                self._ready.set()
            elif future := self._take(message.get("id")):
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
        if lost:
            problem = f"the worker died with this cell still out:\n{self._last_lines()}"
            for future in lost:
                future.set_exception(WorkerDied(problem))

    def _last_lines(self) -> str:
        try:
            how = f"exit status {self._process.wait(timeout=1)}"
        except subprocess.TimeoutExpired:
            how = f"it still runs, after {time.monotonic() - self._started:.0f} s"
        return f"{how}\n{_tail(self._stderr)}".strip()


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
            out, killed_for = _communicate(process, request)
            told: dict[str, Any] = {"stage": "read", "refusals": {}}
            for line in out.splitlines():
                message = _message(line)
                keep(message, told)
                end = message if "end" in message else end
            killed_by = -process.returncode if process.returncode < 0 and not killed_for else None
            if killed_for:
                end = {"end": killed_for}
            elif killed_by or not end:
                end = {
                    "end": "crash",
                    "message": None
                    if killed_by
                    else f"the process ended without a word, with status {process.returncode}",
                }
            seconds = round(time.monotonic() - started, 4)
            reply = {**told, "signal": killed_by, "stderr": _tail(stderr), "seconds": seconds, **end}
            return msgspec.convert(reply, Reply)


def _start(environment: Environment, what: str, stderr: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [str(environment.python), str(WORKER), what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=dict(environment.variables),
            start_new_session=True,  # Ctrl-C is for the coordinator, which then ends its workers
        )
    except OSError as error:
        raise WorkerDied(f"cannot start {environment.python}: {error.strerror}") from error


def _communicate(process: subprocess.Popen[bytes], request: Request) -> tuple[bytes, str]:
    """What a cell's process said until it ended, or was killed for its time or memory; the second says for which."""
    said: bytes | None = json.dumps(msgspec.to_builtins(request)).encode() + b"\n"
    until = time.monotonic() + request.timeout
    killed_for = ""
    while True:
        try:
            return process.communicate(said, timeout=LOOK_SECONDS)[0], killed_for
        except subprocess.TimeoutExpired:
            said = None
        if time.monotonic() > until:
            killed_for = "timeout"
        elif request.memory and resident_bytes(process.pid) > request.memory:
            killed_for = "memory"
        if killed_for:
            process.kill()
            return process.communicate()[0], killed_for


def _message(line: bytes) -> dict[str, Any]:
    """What a worker said in a line; nothing where the line is not its own, since libraries write to that descriptor too."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _tail(file: Any) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 4000))
    return "\n".join(file.read().decode(errors="replace").strip().splitlines()[-LAST_LINES:])
