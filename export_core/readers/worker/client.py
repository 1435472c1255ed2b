"""The client of a worker: starts its process, gives it cells and brings back one reply for each, whatever dies.

The process runs the half of a runtime, of which the client knows only the path. Of what the process prints, only the
end is stored. The Python modules that its cells import are noted for the next worker of the same environment.
"""

import contextlib
import hashlib
import io
import json
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import msgspec

from export_core.base.processes import kill_group
from export_core.readers.build import LAST_LINES, cache_folder
from export_core.readers.environment import Environment, problem_of_imported
from export_core.readers.errors import WorkerDied
from export_core.readers.worker.program import (
    ELSEWHERE,
    LONGEST_LINE,
    LONGEST_STDERR,
    MOST_WALL,
    Transcript,
    limited_seconds,
    reply_of,
    resident_bytes,
)
from export_core.readers.worker.protocol import Reply, Request, Worker

PROGRAM = Path(__file__).with_name("program.py")
NOTES = "modules-"  # The beginning of the names of files with notes.
START_SECONDS = 120.0  # How long a worker may take to import its runtime.
CLOSE_SECONDS = 5.0  # How long a worker may take to end its cells and itself once its stdin is closed.
GRACE_SECONDS = 30.0  # How long a worker may be silent beyond its cells' limits, before it counts as stuck.
JOIN_SECONDS = 5.0
"""How many seconds to wait for the end of a pipe, which a process that the worker has started may still hold open."""
LOOK_SECONDS = 0.05  # How often a cell's time and memory are checked.


def start_worker(environment: Environment, slots: int) -> "ForkingWorker | FreshInterpreters":
    """Return a worker that forks for each cell, or else starts a new interpreter for each cell.

    New interpreters are started on systems without `fork`, such as Windows, and if the runtime starts threads when it
    is imported. `slots` is the number of cells that run at once in new interpreters.
    """
    if hasattr(os, "fork"):
        with contextlib.suppress(_HasThreadsError):
            return ForkingWorker(environment)
    return FreshInterpreters(environment, slots)


class _HasThreadsError(Exception):
    """An error for a runtime that starts threads when it is imported: a fork has no such threads, and would hang."""


class ForkingWorker:
    """A worker that imports the runtime once and forks a process for each cell: the client of ``program.py serve``."""

    def __init__(self, environment: Environment) -> None:
        """Start the worker. Raises `WorkerDied` if it does not start."""
        notes = prepare_notes(environment)
        self._process = start_process(environment, "serve", notes)
        self._started = time.monotonic()
        self._pending: dict[int, Future[Reply]] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._greeting: dict[str, Any] = {}
        self._garbage = ""
        self.ended = False
        self._pipes = _Pipes(self._process, self._read)
        started = self._ready.wait(START_SECONDS)
        if "threads" in self._greeting:
            self.close()
            raise _HasThreadsError
        if not started or self.ended:
            problem = self._last_lines()
            self.close()
            for path in (Path(notes), Path(notes).with_name(ELSEWHERE)) if notes else ():
                with contextlib.suppress(OSError):  # the notes may be what it died of
                    path.unlink()
            raise WorkerDied(f"the worker of {environment.release.title} did not start: {problem}")
        if problem := problem_of_imported(environment, self._greeting.get("imported")):
            self.close()
            raise WorkerDied(problem)

    def submit(self, request: Request) -> Future[Reply]:
        """Run a cell in a process that the worker forks for it."""
        future: Future[Reply] = Future()
        number = secrets.randbits(53)  # garbage in the pipe must not name another cell by chance
        with self._lock:
            self._pending[number] = future
        # The worker enforces the limit of a cell; one that is stuck itself (stopped, or its requests lost) must not
        # hang the run. Twice the limit, since a cell may have waited for the first one, which goes alone.
        longest = request.timeout * (MOST_WALL if request.by_processor else 1)
        watch = threading.Timer(2 * longest + GRACE_SECONDS, kill_group, (self._process,))
        watch.daemon = True
        watch.start()
        future.add_done_callback(lambda _: watch.cancel())
        try:
            self._pipes.send({"id": number, **msgspec.to_builtins(request)})
        except OSError:
            self._fail_pending()
        # Again: the worker may have died after the last look at what is pending, and before this cell was.
        if self.ended:
            self._fail_pending()
        return future

    def fork_program(self, program: Path, address: str) -> bool:
        """Have a fork of the worker run a Python program: see `run_program` in program.py.

        Returns False if the worker has ended. `address` is the socket to which the program connects.
        """
        try:
            self._pipes.send({"program": str(program), "address": address})
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End the worker and everything it started."""
        assert self._process.stdin
        try:
            self._process.stdin.close()
            self._process.wait(timeout=CLOSE_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            kill_group(self._process)
            self._process.wait()
        self._pipes.close()

    def _read(self) -> None:
        self._greeting = read_greeting(self._process)
        if self._greeting:
            self._ready.set()
        # A line that is longer than any message comes in pieces, none of which is a message.
        while line := _open(self._process.stdout).readline(LONGEST_LINE):
            try:
                reply = msgspec.json.decode(line, type=Reply)
                with self._lock:
                    future = self._pending.pop(reply.id)
                future.set_result(reply)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError):
                # Nobody knows whose reply this was, and which others are lost in it.
                self._garbage = f"there was garbage in the pipe of its replies: {line[:80]!r}"
                kill_group(self._process)
                break
        # In this order: a cell that is submitted from now on sees `ended`, or is among those that fail here.
        self.ended = True
        self._ready.set()
        self._fail_pending()

    def _fail_pending(self) -> None:
        with self._lock:
            lost, self._pending = list(self._pending.values()), {}
        if lost:
            problem = f"the worker died before this cell ended: {self._last_lines()}"
            for future in lost:
                future.set_exception(WorkerDied(problem))

    def _last_lines(self) -> str:
        try:
            state = f"exit status {self._process.wait(timeout=1)}"
        except subprocess.TimeoutExpired:
            state = f"it still runs, after {time.monotonic() - self._started:.0f} s"
        return self._pipes.ended_with(self._garbage or state)


class FreshInterpreters:
    """A worker that starts a new interpreter, ``program.py cell``, for each cell. It is slower and needs no `fork`."""

    def __init__(self, environment: Environment, slots: int) -> None:
        self._environment = environment
        self._threads = ThreadPoolExecutor(max_workers=slots)
        self._closing = threading.Event()

    def fork_program(self, program: Path, address: str) -> bool:
        """Return False, since this kind of worker has no process to fork."""
        return False

    def submit(self, request: Request) -> Future[Reply]:
        """Run a cell in a new interpreter."""
        return self._threads.submit(self._run, request)

    def close(self) -> None:
        """End the worker and everything it started."""
        self._closing.set()
        self._threads.shutdown()

    def _run(self, request: Request) -> Reply:
        started = time.monotonic()
        process = start_process(self._environment, "cell")
        transcript, greeting = Transcript(), dict[str, Any]()

        def read() -> None:
            greeting.update(read_greeting(process))
            while data := available_bytes(process.stdout):
                transcript.feed(data)

        pipes = _Pipes(process, read)
        with contextlib.suppress(OSError):  # it is gone already
            pipes.send(msgspec.to_builtins(request))
        killed_for = self._wait_until_ended(process, request)
        pipes.close()
        if problem := problem_of_imported(self._environment, greeting.get("imported")):
            raise WorkerDied(problem)
        if not greeting or self._closing.is_set():
            what = "was ended" if greeting else "did not start"
            raise WorkerDied(
                f"the interpreter of {self._environment.release.title} {what}: "
                + pipes.ended_with(f"exit status {process.returncode}")
            )
        seconds = time.monotonic() - started
        return msgspec.convert(reply_of(transcript, process.returncode, killed_for, pipes.printed, seconds), Reply)

    def _wait_until_ended(self, process: subprocess.Popen[bytes], request: Request) -> str:
        """Wait until a cell's process has ended, and return why it was killed: "timeout", "memory", or ""."""
        started, killed_for = time.monotonic(), ""
        while True:
            try:
                process.wait(timeout=LOOK_SECONDS)
                return killed_for
            except subprocess.TimeoutExpired:
                pass
            if limited_seconds(process.pid, started, request.timeout, request.by_processor) > request.timeout:
                killed_for = "timeout"
            elif request.memory and resident_bytes(process.pid) > request.memory:
                killed_for = "memory"
            if killed_for or self._closing.is_set():
                kill_group(process)


def start_process(environment: Environment, *words: str) -> subprocess.Popen[bytes]:
    """Start ``program.py WORDS MODULE`` in an environment, where MODULE is the file with its runtime's code.

    Raises `WorkerDied` if the environment's interpreter cannot be started.
    """
    try:
        return subprocess.Popen(
            [str(environment.python), str(PROGRAM), *words, str(environment.half)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment.variables),
            start_new_session=True,  # Ctrl-C is for the coordinator, which then ends its workers
        )
    except OSError as error:
        raise WorkerDied(f"cannot start {environment.python}: {error.strerror}") from error


class _Pipes:
    """The pipes of a worker's process, with two threads that read them.

    One calls `read`, which reads stdout. The other reads stderr, whose end is stored in `printed`.
    """

    def __init__(self, process: subprocess.Popen[bytes], read: Callable[[], None]) -> None:
        self._process = process
        self.printed = b""  # The end of what it printed on stderr.
        self._reader, self._stderr = (threading.Thread(target=do, daemon=True) for do in (read, self._read_stderr))
        self._stderr.start()
        self._reader.start()

    def _read_stderr(self) -> None:
        while data := available_bytes(self._process.stderr):
            self.printed = (self.printed + data)[-LONGEST_STDERR:]

    def send(self, message: dict[str, Any]) -> None:
        """Send a message as a line of JSON. Raises `OSError` if the process has gone."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def ended_with(self, state: str) -> str:
        """Return in words how the process ended: `state`, such as ``exit status 1``, then the last line on stderr.

        The lines of stderr before the last follow, each on a line of its own.
        """
        self._stderr.join(timeout=1)
        *before, last = self.printed.decode(errors="replace").strip().splitlines()[-LAST_LINES:] or [""]
        return "\n".join([f"{state}: {last}" if last else state, *before])

    def close(self) -> None:
        """Close the pipes of a process that has ended."""
        assert self._process.stdin
        with contextlib.suppress(OSError):  # what is still buffered reaches nobody
            self._process.stdin.close()
        for thread, pipe in ((self._reader, self._process.stdout), (self._stderr, self._process.stderr)):
            thread.join(timeout=JOIN_SECONDS)
            if pipe and not thread.is_alive():  # else a process that it left behind holds it open
                pipe.close()


def _open(pipe: IO[bytes] | None) -> io.BufferedReader:
    assert isinstance(pipe, io.BufferedReader)
    return pipe


def available_bytes(pipe: IO[bytes] | None) -> bytes:
    """Return the next bytes of a pipe as soon as any are there; empty at its end."""
    return _open(pipe).read1(1 << 16)


def read_greeting(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the message in which a worker says that it is ready; empty if the worker's output ends without it.

    Lines that libraries print before this message are skipped.
    """
    while line := _open(process.stdout).readline(LONGEST_LINE):
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(line)
            if isinstance(message, dict) and message.get("ready") is True:
                return message
    return {}


def prepare_notes(environment: Environment) -> str:
    """Return the path of the file in which a worker notes the Python modules that its cells import.

    The file is in the environment's folder, or else in the cache folder. Return "" if the folder cannot be made: a
    worker without notes is only slower.
    """
    folder = environment.folder or cache_folder() / "modules"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    release, variables = environment.release, environment.variables
    words = [str(environment.python), release.jax, release.jaxlib, environment.content_hash]
    words += [variables.get(name, "") for name in ("PYTHONPATH", "JAX_PLATFORMS")]
    return str(folder / f"{NOTES}{hashlib.sha256('|'.join(words).encode()).hexdigest()[:24]}.json")


class WarmWorkers:
    """A single worker that stays open between replays, each of which borrows it."""

    def __init__(self) -> None:
        self._worker: ForkingWorker | FreshInterpreters | None = None
        self._environment: Environment | None = None
        self._lock = threading.RLock()

    def start(self, environment: Environment, slots: int) -> Worker:
        """Return the worker as a `WorkerStarter` does, but with a `close` that does nothing: its owner closes it.

        A new worker is started if there is none, if it has died, or if it was started for another environment.
        """
        with self._lock:
            ended = isinstance(self._worker, ForkingWorker) and self._worker.ended
            if self._worker is None or ended or self._environment != environment:
                self.close()
                self._worker, self._environment = start_worker(environment, slots), environment
            return _Borrowed(self._worker)

    def fork_program(self, environment: Environment, slots: int, program: Path, address: str) -> bool:
        """Have a fork of the worker run a Python program, which ends when the worker does.

        Returns False if the worker has ended or cannot fork.
        """
        self.start(environment, slots)
        with self._lock:
            return self._worker is not None and self._worker.fork_program(program, address)

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()
            self._worker = None


class _Borrowed:
    """A worker that a replay borrows and so does not close."""

    def __init__(self, worker: Worker) -> None:
        self.submit = worker.submit

    def close(self) -> None:
        """Do nothing, since the owner of the worker closes it."""
