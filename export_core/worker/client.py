"""How does a cell reach a worker, and its result come back, whatever dies on the way?"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from export_core.environments.environment import Environment
from export_core.worker import processes
from export_core.worker.errors import WorkerDied
from export_core.worker.preloading import forget, learned_file
from export_core.worker.program import Heard, last_word, resident_bytes
from export_core.worker.protocol import Reply, Request, Worker

START_SECONDS = 120.0
CLOSE_SECONDS = 5.0
GRACE_SECONDS = 30.0
"""How long a worker may be silent beyond its cells' limits, before it counts as stuck."""
LOOK_SECONDS = 0.05
"""How often a cell's time and memory are looked at."""


def start_worker(environment: Environment, slots: int, *, fork: bool = hasattr(os, "fork")) -> Worker:
    """A worker that forks, or one new interpreter for each cell where `fork` is missing."""
    return ForkingWorker(environment) if fork else FreshInterpreters(environment, slots)


class ForkingWorker:
    """Talks to ``worker.py serve`` over its stdin and stdout."""

    def __init__(self, environment: Environment) -> None:
        notes = learned_file(environment)
        self._process = processes.start(environment, "serve", notes)
        self._printed = processes.Printed(self._process)
        self._started = time.monotonic()
        self._pending: dict[int, Future[Reply]] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._garbage = ""
        self.ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(START_SECONDS) or self.ended:
            problem = self._last_lines()
            self.close()
            forget(notes)  # they may be what it died of
            raise WorkerDied(f"the worker of jaxlib {environment.release.jaxlib} did not start: {problem}")

    def submit(self, request: Request) -> Future[Reply]:
        """See `Worker.submit`."""
        future: Future[Reply] = Future()
        number = secrets.randbits(53)  # what names another cell by chance names none
        with self._lock:
            self._pending[number] = future
        # The worker keeps the limit of a cell; one that is stuck itself (stopped, or its requests lost) must not hang the run. A
        # cell may have waited for the first one, which goes alone.
        watch = threading.Timer(2 * request.timeout + GRACE_SECONDS, processes.kill, (self._process,))
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
        try:
            self._process.stdin.close()
            self._process.wait(timeout=CLOSE_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            processes.kill(self._process)
            self._process.wait()
        processes.close(self._process, self._reader, self._printed)

    def _read(self) -> None:
        for line in processes.lines(self._process.stdout):
            if not self._ready.is_set():
                if processes.is_ready(line):
                    self._ready.set()
                continue  # what a library prints when it is imported
            try:
                number, reply = _reply(line)
                self._take(number).set_result(reply)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError):
                # Whose reply this was, and which others are lost in it, nobody knows.
                self._garbage = f"there was garbage in the pipe of its replies: {line[:80]!r}"
                processes.kill(self._process)
                break
        self.ended = True
        self._ready.set()
        self._fail_pending()

    def _take(self, number: int) -> Future[Reply]:
        with self._lock:
            return self._pending.pop(number)

    def _fail_pending(self) -> None:
        with self._lock:
            lost, self._pending = list(self._pending.values()), {}
        if lost:
            problem = f"the worker died with this cell still out: {self._last_lines()}"
            for future in lost:
                future.set_exception(WorkerDied(problem))

    def _last_lines(self) -> str:
        try:
            how = f"exit status {self._process.wait(timeout=1)}"
        except subprocess.TimeoutExpired:
            how = f"it still runs, after {time.monotonic() - self._started:.0f} s"
        return f"{self._garbage or how}\n{self._printed.last_lines()}".strip()


class FreshInterpreters:
    """Starts ``worker.py cell`` anew for every cell: slower, and needs no fork."""

    def __init__(self, environment: Environment, slots: int) -> None:
        self._environment = environment
        self._threads = ThreadPoolExecutor(max_workers=slots)
        self._closing = threading.Event()

    def submit(self, request: Request) -> Future[Reply]:
        """See `Worker.submit`."""
        return self._threads.submit(self._run, request)

    def close(self) -> None:
        """See `Worker.close`."""
        self._closing.set()
        self._threads.shutdown()

    def _run(self, request: Request) -> Reply:
        started = time.monotonic()
        process = processes.start(self._environment, "cell")
        printed, said = processes.Printed(process), _Said(process)
        assert process.stdin
        with contextlib.suppress(OSError):  # it is gone already
            process.stdin.write(json.dumps(msgspec.to_builtins(request)).encode() + b"\n")
            process.stdin.flush()
        killed_for = _ended(process, request, self._closing)
        processes.close(process, said, printed)
        if not said.ready or self._closing.is_set():
            what = "did not start" if not said.ready else "was ended"
            raise WorkerDied(
                f"the interpreter of jaxlib {self._environment.release.jaxlib} {what}: "
                f"exit status {process.returncode}\n{printed.last_lines()}"
            )
        said.heard.close()
        killed_by = -process.returncode if process.returncode < 0 and not killed_for else None
        end = {"end": killed_for} if killed_for else last_word(said.heard, None if killed_by else process.returncode)
        seconds = round(time.monotonic() - started, 4)
        told = {**said.heard.told, "signal": killed_by, "stderr": printed.text(), "seconds": seconds}
        return msgspec.convert({**told, **end}, Reply)


class _Said(threading.Thread):
    """Reads what a single cell says on stdout, once it is ready; what libraries print before that is not its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.heard = Heard()
        self.ready = False
        self.start()

    def run(self) -> None:
        """See `threading.Thread`."""
        for line in processes.lines(self._process.stdout):
            if processes.is_ready(line):
                self.ready = True
                break
        while data := processes.read(self._process.stdout):
            self.heard.take(data)


def _ended(process: subprocess.Popen[bytes], request: Request, closing: threading.Event) -> str:
    """Wait until a cell's process has ended, or kill it for its time or memory; the answer says for which."""
    until = time.monotonic() + request.timeout
    killed_for = ""
    while True:
        try:
            process.wait(timeout=LOOK_SECONDS)
            return killed_for
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() > until:
            killed_for = "timeout"
        elif request.memory and resident_bytes(process.pid) > request.memory:
            killed_for = "memory"
        if killed_for or closing.is_set():
            processes.kill(process)


class _Numbered(msgspec.Struct, frozen=True):
    id: int


def _reply(line: bytes) -> tuple[int, Reply]:
    """A reply with the number of its cell. Raises `msgspec.MsgspecError` and what decoders raise for what is none."""
    return msgspec.json.decode(line, type=_Numbered).id, msgspec.json.decode(line, type=Reply)
