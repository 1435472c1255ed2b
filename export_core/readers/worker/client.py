"""The client of a worker: gives it cells and brings back one reply for each, whatever dies on the way."""

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

from export_core.base.process_groups import kill_group
from export_core.readers.environment import Environment
from export_core.readers.worker import processes
from export_core.readers.worker.errors import WorkerDied
from export_core.readers.worker.preloading import notes_file, remove_notes
from export_core.readers.worker.program import Transcript, last_word, resident_bytes
from export_core.readers.worker.protocol import Reply, Request, Worker

START_SECONDS = 120.0
"""How long a worker may take to import jax."""
CLOSE_SECONDS = 5.0
"""How long a worker may take to end its cells and itself once its stdin is closed."""
GRACE_SECONDS = 30.0
"""How long a worker may be silent beyond its cells' limits, before it counts as stuck."""
LOOK_SECONDS = 0.05
"""How often a cell's time and memory are checked."""


def start_worker(environment: Environment, slots: int, *, fork: bool = hasattr(os, "fork")) -> Worker:
    """A worker that forks, or one new interpreter for each cell where `fork` is missing."""
    return ForkingWorker(environment) if fork else FreshInterpreters(environment, slots)


class ForkingWorker:
    """Talks to ``program.py serve`` over its stdin and stdout."""

    def __init__(self, environment: Environment) -> None:
        notes = notes_file(environment)
        self._process = processes.start(environment, "serve", notes)
        self._stderr = processes.StderrTail(self._process)
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
            remove_notes(notes)  # they may be what it died of
            raise WorkerDied(f"the worker of jaxlib {environment.release.jaxlib} did not start: {problem}")

    def submit(self, request: Request) -> Future[Reply]:
        """See `Worker.submit`."""
        future: Future[Reply] = Future()
        number = secrets.randbits(53)  # garbage in the pipe must not name another cell by chance
        with self._lock:
            self._pending[number] = future
        # The worker enforces the limit of a cell; one that is stuck itself (stopped, or its requests lost) must not
        # hang the run. Twice the limit, since a cell may have waited for the first one, which goes alone.
        watch = threading.Timer(2 * request.timeout + GRACE_SECONDS, kill_group, (self._process,))
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
        # Again: the worker may have died after the last look at what is pending, and before this cell was.
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
            kill_group(self._process)
            self._process.wait()
        processes.close(self._process, self._reader, self._stderr)

    def _read(self) -> None:
        for line in processes.lines(self._process.stdout):
            if not self._ready.is_set():
                if processes.is_ready(line):
                    self._ready.set()
                continue  # what a library prints when it is imported
            try:
                number, reply = _decode_reply(line)
                self._take(number).set_result(reply)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError):
                # Nobody knows whose reply this was, and which others are lost in it.
                self._garbage = f"there was garbage in the pipe of its replies: {line[:80]!r}"
                kill_group(self._process)
                break
        # In this order: a cell that is submitted from now on sees `ended`, or is among those that fail here.
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
            state = f"exit status {self._process.wait(timeout=1)}"
        except subprocess.TimeoutExpired:
            state = f"it still runs, after {time.monotonic() - self._started:.0f} s"
        return f"{self._garbage or state}\n{self._stderr.last_lines()}".strip()


class FreshInterpreters:
    """Starts ``program.py cell`` anew for every cell: slower, and needs no fork."""

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
        stderr, stdout = processes.StderrTail(process), _StdoutReader(process)
        assert process.stdin
        with contextlib.suppress(OSError):  # it is gone already
            process.stdin.write(json.dumps(msgspec.to_builtins(request)).encode() + b"\n")
            process.stdin.flush()
        killed_for = _wait_until_ended(process, request, self._closing)
        processes.close(process, stdout, stderr)
        if not stdout.is_ready or self._closing.is_set():
            what = "did not start" if not stdout.is_ready else "was ended"
            raise WorkerDied(
                f"the interpreter of jaxlib {self._environment.release.jaxlib} {what}: "
                f"exit status {process.returncode}\n{stderr.last_lines()}"
            )
        transcript = stdout.transcript
        transcript.close()
        killed_by = -process.returncode if process.returncode < 0 and not killed_for else None
        end = {"end": killed_for} if killed_for else last_word(transcript, None if killed_by else process.returncode)
        seconds = round(time.monotonic() - started, 4)
        fields = {**transcript.fields, "signal": killed_by, "stderr": stderr.text(), "seconds": seconds}
        return msgspec.convert({**fields, **end}, Reply)


class _StdoutReader(threading.Thread):
    """Reads what a single cell says on stdout once it is ready; libraries may print on it before that."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.transcript = Transcript()
        self.is_ready = False
        self.start()

    def run(self) -> None:
        """See `threading.Thread`."""
        for line in processes.lines(self._process.stdout):
            if processes.is_ready(line):
                self.is_ready = True
                break
        while data := processes.read(self._process.stdout):
            self.transcript.feed(data)


def _wait_until_ended(process: subprocess.Popen[bytes], request: Request, closing: threading.Event) -> str:
    """Wait until a cell's process has ended. Answers what it was killed for: "timeout", "memory", or "" for nothing."""
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
            kill_group(process)


class _Numbered(msgspec.Struct, frozen=True):
    id: int


def _decode_reply(line: bytes) -> tuple[int, Reply]:
    """A reply with the number of its cell. Raises `msgspec.MsgspecError`, `UnicodeDecodeError` or `RecursionError`."""
    return msgspec.json.decode(line, type=_Numbered).id, msgspec.json.decode(line, type=Reply)
