"""The worker's program: runs goldens in the reader's own interpreter, each in a cold process.

This file runs in every reader's environment. It imports the standard library, numpy and ml_dtypes and nothing of this
project, and works on CPython 3.10 or newer. What it runs is the half of a runtime: a Python module that is loaded by
its path, wherever that is. Such a half has

    warm()                          imports what every cell needs, and starts no thread and no client of the runtime
    run(call, leaves, stage)        one call of one module in a cold process: a `ModuleCall` of protocol.py and NumPy
                                    arrays in, arrays out; `stage` is called with the name of what comes next

or in place of `run`

    run_cell(request, say)          a whole cell, for a runtime that takes the artifact itself
    start_ahead(client)             what any process does before its first cell; `client`: in a process for one cell
    has_client()                    whether this process has started a client of the runtime
    LEARNS_MODULES                  whether `run_cell` says which modules later cells should find imported
    imported()                      the versions of jax and jaxlib that are imported, which are those of the reader

Needed are `warm`, and `run` or `run_cell`. ``program.py serve NOTES HALF`` warms a half once and forks for each cell. A
half that has more than one thread by then cannot be forked: ``program.py cell HALF`` is started for each of its cells,
as on systems that cannot fork. The processes of the next cells are forked ahead; while they wait they start their
clients. Each still runs one cell, and dies. NOTES has the names of the Python modules that cells import, for the next
worker; it may be empty, missing or old. If it is missing, `ELSEWHERE` may be beside it.

Requests come as JSON lines on stdin, replies leave as JSON lines on the descriptor that stdout was at the start. Their
fields are those of `Request` and `Reply` in protocol.py, and the "id" of the cell. A line with "program" is not a cell:
see `run_program`.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
import types

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Say = Callable[[dict[str, Any]], None]

HERE = os.path.dirname(os.path.abspath(__file__))  # not on the path: a runtime must not find its modules
LONGEST_MESSAGE = 4000
LONGEST_STDERR = 4000
MOST_WALL = 20  # After this many times its limit in processor seconds, a process is ended by wall time: it only waits.
ELSEWHERE = "learned-elsewhere.json"
"""The file beside the notes with those of another environment of the same run, for a worker that has no notes."""
LONGEST_LINE = 8 << 20  # of a cell's messages; the longest says where its outputs are on a large mesh


# --- the half of a runtime --------------------------------------------------------------------------------------------


class Half:
    """The half of a worker that belongs to one runtime: the functions of the runtime's Python module.

    Functions that the module lacks have defaults here. `calls` is the module calls.py.
    """

    def __init__(self, module: Any, calls: Any) -> None:
        module.warm()
        self.run_cell = getattr(module, "run_cell", None) or functools.partial(calls.run_calls, module.run)
        self.pass_arrays = calls.pass_arrays
        self.start_ahead = getattr(module, "start_ahead", lambda client: None)
        self.has_client = getattr(module, "has_client", lambda: False)
        self.learns: bool = getattr(module, "LEARNS_MODULES", False)
        self.imported: dict[str, str] = getattr(module, "imported", dict)()


def load_half_or_exit(path: str) -> Half:
    """Load a runtime's Python module from a file and warm it; if it fails, print the error and end this process.

    The module can import this file and calls.py, as in ``from .program import timed``.
    """
    package = types.ModuleType("jaxexport_worker")
    sys.modules.update({"jaxexport_worker": package, "jaxexport_worker.program": sys.modules[__name__]})
    try:
        calls = load_module("jaxexport_worker.calls", os.path.join(HERE, "calls.py"))
        return Half(load_module("jaxexport_worker.half", path), calls)
    except Exception as error:
        traceback.print_exc()
        raise SystemExit("%s does not start: %s" % (path, full_message(error))) from None


def load_module(name: str, path: str) -> types.ModuleType:
    """Import a file as the Python module `name`, and return the module."""
    spec = importlib.util.spec_from_file_location(name, path, loader=SourceOnly(name, path))
    assert spec
    assert spec.loader
    sys.modules[name] = loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class SourceOnly(importlib.machinery.SourceFileLoader):
    """The loader that compiles a Python module each time, so that no bytecode is written beside a golden's files."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


# --- errors of a cell -------------------------------------------------------------------------------------------------


class NotRefusedError(Exception):
    """An error for a call that must be refused, but was run."""

    def __init__(self) -> None:
        super().__init__("expected this call to be refused, and it was not")


class NotWrittenError(Exception):
    """An error for outputs that could not be written."""


# --- one cell: what it costs ------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("temp_bytes", "argument_bytes", "output_bytes", "alias_bytes", "code_bytes"), (int,)),
    **dict.fromkeys(("instructions", "fusions", "peak_bytes"), (int,)),
    **dict.fromkeys(("flops", "transcendentals", "bytes_accessed"), (int, float)),
    **dict.fromkeys(("deserialize", "lower", "compile", "run"), (int, float)),
}
"""The names of a cell's figures, as in `Cost` and `Timings` of protocol.py, with their types."""


def timed(do: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    """Call a function, and return how many seconds it took and what it returned."""
    started = time.perf_counter()
    result = do(*args, **kwargs)
    return time.perf_counter() - started, result


def few_digits(value: float) -> float:
    """Return a number rounded to three digits, which is enough for a measurement that varies.

    Results with equal numbers then share them in memory.
    """
    return float("%.3g" % value)


def peak_bytes() -> int | None:
    """Return the peak of this process's resident memory in bytes; None if the system does not report it."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource else 0
    return int(few_digits(peak * (1 if sys.platform == "darwin" else 1024))) or None


def is_figure(value: Any, kinds: tuple[type, ...] = (int, float)) -> bool:
    """Return whether a value is a number of one of the types `kinds`, not negative and below 2 to the 63."""
    return type(value) in kinds and 0 <= value < 1 << 63


def are_figures(value: Any) -> bool:
    """Return whether a value is a dict of figures, with names and types as in `Cost` and `Timings` of protocol.py."""
    return isinstance(value, dict) and all(
        figure is None
        or (name in KINDS and is_figure(figure, KINDS[name]))
        or (name == "runs" and isinstance(figure, list) and all(map(is_figure, figure)))
        for name, figure in value.items()
    )


# --- one cell: how it ends, and what it says --------------------------------------------------------------------------


def report_cell(half: Half, request: dict[str, Any], say: Say, shared_memory: list[tuple[int, int]]) -> None:
    """Run a cell and report it. The last message says how the cell ended, since its process takes 20 ms more to end.

    Args:
        half: the runtime's functions, one of which runs the cell.
        request: the cell, a `Request` of protocol.py as JSON.
        say: reports a message.
        shared_memory: spans of memory in which to report the pages that the cell wrote; empty for no report.
    """
    try:
        half.run_cell(request, say)
        if shared_memory:
            say({"pages": written_pages(shared_memory)})
        end = {"end": "ok"}
    except BaseException as error:  # the process ends here, whatever it was
        if request.get("learn"):
            say({"modules": sorted(sys.modules)})
        what = "fault" if is_machine_fault(error) else "error"
        end = {"end": what, "type": type(error).__name__, "message": whole_message(error)}
    for stream in (sys.stdout, sys.stderr):  # what Python still buffers of what was printed
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the artifact's code may have closed or replaced it
            continue
    say(end)


def is_machine_fault(error: BaseException) -> bool:
    """Return whether an error comes from the system, such as a full disk: an `OSError` with an errno.

    jax itself raises no errors with an errno.
    """
    return isinstance(error, NotWrittenError) or (isinstance(error, OSError) and error.errno is not None)


def full_message(error: BaseException) -> str:
    """Return the type of an error and its whole message, as text."""
    return "%s: %s" % (type(error).__name__, whole_message(error))


def whole_message(error: BaseException) -> str:
    """Return the message of an error, followed by those of the errors that caused it.

    jax's own error often says no more than "Error refining shapes". The text is cut after `LONGEST_MESSAGE` characters.
    """
    text, behind = str(error), error
    while len(text) < LONGEST_MESSAGE:
        cause = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
        if cause is None:
            break
        behind = cause
        if str(behind) not in text:
            text += "\n%s: %s" % (type(behind).__name__, behind)
    return text[:LONGEST_MESSAGE]


def writer_to(descriptor: int) -> Say:
    """Return a function `say` that writes messages as JSON lines to a file descriptor."""

    def say(message: dict[str, Any]) -> None:
        # JSON cannot hold a surrogate, such as one of a file name that is not UTF-8.
        data = (json.dumps(message, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        while data:
            data = data[os.write(descriptor, data) :]

    return say


# --- what a cell has said: read by the worker, or by the coordinator for a single cell --------------------------------


class Transcript:
    """The messages that a cell has sent so far.

    `garbage` is the first text in the pipe that is not a message, since native code may write anything to any
    descriptor. With garbage, no message of the cell counts. The transcript takes no more memory than the longest line.
    `has_begun` is whether anything was received.
    """

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {"stage": "read", **{name: {} for name in BY_CALL}}
        self.end: dict[str, Any] = {}
        self.modules: list[str] | None = None
        self.pages: list[int] | None = None
        self.garbage = ""
        self.has_begun = False
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        """Add the next bytes that the cell has sent."""
        self.has_begun = self.has_begun or bool(data)
        if self.garbage:
            return
        self._rest += data
        if b"\n" in data:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._read_message(bytes(line))
        if len(self._rest) > LONGEST_LINE:
            self.garbage = "a line of more than %d bytes" % LONGEST_LINE
        if self.garbage:
            self._rest = bytearray()

    @property
    def is_complete(self) -> bool:
        """Whether the last message of the cell was received, without any garbage."""
        return bool(self.end) and not self._rest and not self.garbage

    def close(self) -> None:
        """End the transcript, to which no bytes are added after this. An incomplete last line counts as garbage."""
        if self._rest:
            self.garbage = "half a line: %.80r" % bytes(self._rest)

    def _read_message(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        is_message = isinstance(message, dict) and message and all(k in FORMS and FORMS[k](message[k]) for k in message)
        if self.garbage or not is_message or self.end:
            self.garbage = self.garbage or "%.80r" % line
            return
        if message.get("end") == "ok" and self.fields["stage"] not in ("lower", "compile", "run"):
            self.garbage = "%.80r, in stage %s" % (line, self.fields["stage"])
            return
        self.fields.update((key, message[key]) for key in REPLIED if key in message)
        for name in BY_CALL:
            self.fields[name].update(message.get(name, {}))
        if "timings" in message:
            self.fields["timings"] = {**self.fields.get("timings", {}), **message["timings"]}
        self.modules = message.get("modules", self.modules)
        self.pages = message.get("pages", self.pages)
        self.end = message if "end" in message else {}


BY_CALL = ("refusals", "failed", "shardings_of")
"""The parts of a cell's messages that are dicts by the name of a call or a variant, and are joined."""
REPLIED = ("stage", "check", "variant", "shardings", "device", "driver", "cost", "ran")
"""The parts of a cell's messages of which the last value goes into the reply."""
STAGES = ("environment", "read", "deserialize", "module", "lower", "compile", "run")

FORMS: dict[str, Callable[[Any], bool]] = {
    "stage": lambda value: value in STAGES,
    "end": lambda value: value in ("ok", "error", "fault"),
    **dict.fromkeys(("check", "variant", "device", "driver", "type", "message"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("modules", "shardings"), lambda value: isinstance(value, list) and are_all(value, str)),
    **dict.fromkeys(("seconds", "ran"), is_figure),
    "pages": lambda value: isinstance(value, list) and are_all(value, int) and len(value) % 2 == 0,
    **dict.fromkeys(("refusals", "failed"), lambda value: isinstance(value, dict) and are_all(value.values(), str)),
    "shardings_of": lambda value: isinstance(value, dict) and all(map(FORMS["shardings"], value.values())),
    **dict.fromkeys(("cost", "timings"), are_figures),
}
"""The check of each part of a cell's messages: whether its value has the right form."""


def are_all(values: Any, kind: type) -> bool:
    """Return whether all values have the type `kind`."""
    return all(isinstance(value, kind) for value in values)


def reply_of(transcript: Transcript, status: int, killed_for: str, printed: bytes, seconds: float) -> dict[str, Any]:
    """Return the reply of a cell whose process has ended, as the JSON of `Reply` in protocol.py.

    Args:
        transcript: the messages of the cell.
        status: the exit status of the process; negative for a signal.
        killed_for: why the worker killed the process: "timeout" or "memory"; "" if it did not.
        printed: the end of what the process printed on stderr.
        seconds: how long the process ran.
    """
    transcript.close()
    died = status < 0 and not killed_for  # our own SIGKILL says nothing about the artifact
    if killed_for or died:
        end = {"end": killed_for or "crash"}
    elif transcript.garbage:
        end = {"end": "fault", "message": "there was garbage in the pipe of its replies: %s" % transcript.garbage}
    else:
        silent = {"end": "crash", "message": "the process ended without a reply, with exit status %d" % status}
        end = transcript.end or silent
    return {
        **transcript.fields,
        "signal": -status if died else None,
        "stderr": printed.decode(errors="replace"),
        "seconds": round(seconds, 4),
        **end,
    }


# --- many cells: the worker that forks --------------------------------------------------------------------------------


class CellProcess:
    """A process that was forked for one cell: its three pipes (request, messages, stderr), its limits, how it ended.

    A `spare` process was forked before its cell is known. Meanwhile it copies the pages that any cell writes, and
    starts its client of the runtime. Its time limit begins when it gets its cell.
    """

    def __init__(self, half: Half, spare: bool, not_its_own: list[int], pages: list[int] | None) -> None:
        self.spare = spare
        self.request: dict[str, Any] = {}
        self.transcript = Transcript()
        self.printed = b""
        self.killed_for = ""
        self.silent = False  # no more messages come, or it was killed: only its end is awaited
        self.status: int | None = None  # the status that its process ended with; None while it may still be ending
        self.started = time.monotonic()
        request, self.requests = os.pipe()
        self.messages, messages = os.pipe()
        self.stderr, stderr = os.pipe()  # a file would let a cell fill the disk
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:  # whatever happens, this process must not go on as a second worker
                die_with(parent)
                os.setpgid(0, 0)  # killing the group takes along what the cell has started itself
                for descriptor in (*not_its_own, self.requests):
                    os.close(descriptor)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the worker's stdin has requests, and not for a cell
                os.dup2(stderr, 2)
                os.dup2(2, 1)
                become_cell(half, request, messages, spare, pages)
            except BaseException:  # such as one of `start_ahead`: where it is read, see `Server.end`
                traceback.print_exc()
            finally:
                os._exit(0)
        for descriptor in (request, messages, stderr):
            os.close(descriptor)
        os.set_blocking(self.stderr, False)

    def give(self, request: dict[str, Any]) -> None:
        """Send the process the request of its cell, whose time limit begins now."""
        self.request = request
        self.started = time.monotonic()
        try:
            with os.fdopen(self.requests, "wb") as pipe:
                pipe.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:  # it is dead, as its other pipes will show
            pass

    def read_stderr(self) -> bool:
        """Read what the cell printed on stderr, and store its end. Returns False if there is nothing to read now."""
        try:
            data = os.read(self.stderr, 1 << 16)
        except BlockingIOError:
            return False
        self.printed = (self.printed + data)[-LONGEST_STDERR:]
        return bool(data)

    def kill(self, reason: str) -> None:
        """Kill the process of the cell. Its reply says `reason`, such as "timeout" or "memory"."""
        if not self.killed_for:
            self.killed_for = reason
            self.silent = True  # a child of the cell may keep the pipe open
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:  # it has not got so far as to have a group
                os.kill(self.pid, signal.SIGKILL)

    def is_over(self) -> bool:
        """Return, without waiting, whether the reply of the cell is complete.

        For a cell on a device, the process must also have ended, since until then it occupies memory of the device.
        """
        on_a_device = self.request and self.request["platform"] != "cpu" and not self.request["described"]
        if self.transcript.is_complete and not self.killed_for and not on_a_device:
            return True
        if not self.silent:
            return False
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.status = status if pid else None
        return bool(pid)

    def close(self) -> None:
        """Read the rest of what the cell printed, and close its pipes."""
        ended = time.monotonic()
        while time.monotonic() < ended + 0.5 and self.read_stderr():  # a child of the cell may go on printing
            continue
        os.close(self.messages)
        os.close(self.stderr)
        if not self.request:
            os.close(self.requests)

    def reply(self) -> dict[str, Any]:
        """Return the reply of the cell, once it is over."""
        status, seconds = os.waitstatus_to_exitcode(self.status or 0), time.monotonic() - self.started
        return {
            "id": self.request["id"],
            **reply_of(self.transcript, status, self.killed_for, self.printed, seconds),
        }


def become_cell(half: Half, request: int, messages: int, spare: bool, pages: list[int] | None) -> None:
    """Wait for the request of a cell on one descriptor, run the cell, and write its messages to another descriptor.

    Args:
        half: the runtime's functions, one of which runs the cell.
        request: the descriptor from which the request is read.
        messages: the descriptor to which messages are written.
        spare: whether to prepare for the cell before its request comes.
        pages: the pages to copy ahead, in the form of `copy_pages`; None lets the cell report which pages it wrote.
    """
    # Before the client, which adds memory of its own: what is asked for is what the worker shares.
    memory = writable_memory() if pages is None else []
    if spare:
        copy_pages(pages or [])
        half.start_ahead(True)
        half.pass_arrays()
    with os.fdopen(request, "rb") as pipe:
        line = pipe.readline()
    if line:  # else the worker is gone, or needs no more cells
        started, write = time.monotonic(), writer_to(messages)

        def say(message: dict[str, Any]) -> None:
            # The worker reads this late: it forks the next process, which takes as long as a short cell.
            seconds = {"seconds": round(time.monotonic() - started, 4)} if "end" in message else {}
            write({**message, **seconds})

        report_cell(half, json.loads(line), say, memory)


def run_program(path: str, address: str) -> None:
    """Run a Python program of the coordinator in this fork, where the runtime is imported but has no client yet.

    `path` is a file with a function `run(connection)`, which gets a Unix socket that is connected to `address`.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    load_module("jaxexport_program", path).run(connection)


class Server:
    """The worker that forks a cold process for each request until its stdin closes.

    If the runtime's `half` asks for it, the first cells report which Python modules the worker should import for later
    cells. `notes` is the path of a file in which an earlier worker has noted these modules, or "".
    """

    def __init__(self, half: Half, replies: int, notes: str) -> None:
        self.half = half
        self.replies = replies
        self.notes = notes
        self.say = writer_to(replies)
        self.selector = selectors.DefaultSelector()
        self.waiting: list[dict[str, Any]] = []
        self.incoming = b""
        self.running: list[CellProcess] = []
        self.spares: list[CellProcess] = []
        self.ending: list[int] = []  # processes whose last message has come
        self.first_is_over = False  # until then, cells run one at a time
        self.modules_known = False  # those of a cell that was compiled are imported here
        self.forks_ahead = True
        self.begun = 0
        self.note = ""  # for people, and not about a cell: it leaves with the next reply
        self.pages: list[int] | None = None  # that each cell writes, whatever is in it; None before they are known

    def serve(self) -> None:
        """Run the cells whose requests are read from stdin. When stdin closes, end all cells that still run.

        If this process has more than one thread, its first message says so, and no cell is run.
        """
        if count_threads() > 1:
            self.say({"ready": True, "threads": count_threads()})
            return
        modules = read_notes(self.notes) if self.half.learns else []
        if modules or not self.half.learns:
            self.prepare(modules)
            self.first_is_over = self.modules_known = True
        elif learned := read_notes(self.notes and os.path.join(os.path.dirname(self.notes), ELSEWHERE)):
            self.prepare(learned)  # its own first cell finds most of what it needs, and learns the rest
        self.say({"ready": True, "imported": self.half.imported})
        self.selector.register(0, selectors.EVENT_READ, None)
        while True:
            # The first cell goes alone: the modules that it imports are imported here, and no later fork pays for them.
            while self.waiting and (self.first_is_over or not self.running):
                self.begin(self.waiting.pop(0))
            # Also when no pipe says anything: a process ends, or is at its limits.
            is_ending = any(cell.silent for cell in (*self.running, *self.spares))
            for key, _ in self.selector.select(timeout=0.005 if is_ending else 0.05 if self.running else None):
                if key.data is None:
                    data = os.read(0, 1 << 16)
                    if not data:
                        for cell in (*self.running, *self.spares):
                            cell.kill("shutdown")
                            os.waitpid(cell.pid, 0)
                        return
                    *lines, self.incoming = (self.incoming + data).split(b"\n")
                    for request in map(json.loads, lines):
                        if "program" in request:
                            self.fork_program(**request)
                        else:
                            self.waiting.append(request)
                elif key.data in self.running or key.data in self.spares:  # else it ended in this very round
                    self.read_from(key.data, key.fd)
            self.ending = [pid for pid in self.ending if os.waitpid(pid, os.WNOHANG) == (0, 0)]
            for cell in (*self.running, *self.spares):
                if cell.is_over():
                    self.end(cell)
            for cell in self.running:
                limit, by_processor = cell.request["timeout"], cell.request["by_processor"]
                if limited_seconds(cell.pid, cell.started, limit, by_processor) > limit:
                    cell.kill("timeout")
                elif cell.request["memory"] and resident_bytes(cell.pid) > cell.request["memory"]:
                    cell.kill("memory")

    def begin(self, request: dict[str, Any]) -> None:
        """Give a cell to a spare process, or else to a new one; then fork another spare process if it is needed."""
        # Nothing has to be done before its process starts the client, and it shares no device.
        is_plain = request["devices"] == 1 and not request["register"] and request["platform"] == "cpu"
        may_wait = is_plain and self.modules_known and self.forks_ahead
        cell = self.spares.pop(0) if may_wait and self.spares else self.fork(spare=False)
        # What a golden's own module imports is for its own cell: imported here, it could not be registered there.
        learn = not self.modules_known and not request["register"]
        cell.give(dict(request, learn=learn))
        self.running.append(cell)
        self.begun += 1
        # Not for the first cell, since many a worker of a run of pytest has no other.
        may_wait = may_wait and self.begun > 1
        # Half as many as run: a cell takes longer than its spare process does to get ready, and each has memory.
        if may_wait and len(self.spares) < (len(self.running) + 1) // 2:
            self.spares.append(self.fork(spare=True))

    def fork(self, *, spare: bool) -> CellProcess:
        """Fork a process for a cell and listen to its pipes. `spare` is whether its cell is not known yet."""
        # A spare process that kept the pipe of another one open would keep it waiting after this worker was killed.
        not_its_own = [self.replies, *(other.requests for other in self.spares)]
        cell = CellProcess(self.half, spare, not_its_own, self.pages if self.modules_known else [])
        self.selector.register(cell.messages, selectors.EVENT_READ, cell)
        self.selector.register(cell.stderr, selectors.EVENT_READ, cell)
        return cell

    def fork_program(self, program: str, address: str) -> None:
        """Fork a process that runs a program by `run_program`, in place of a cell. It ends when this worker does."""
        parent, cells = os.getpid(), (*self.running, *self.spares)
        pid = os.fork()
        if pid == 0:
            try:
                die_with(parent)
                os.setpgid(0, 0)
                pipes = [pipe for cell in cells for pipe in (cell.messages, cell.stderr)]
                for descriptor in (self.replies, *pipes, *(cell.requests for cell in self.spares)):
                    os.close(descriptor)
                nowhere = os.open(os.devnull, os.O_RDWR)
                for descriptor in range(3):
                    os.dup2(nowhere, descriptor)
                run_program(program, address)
            finally:
                os._exit(0)
        self.ending.append(pid)

    def read_from(self, cell: CellProcess, descriptor: int) -> None:
        """Read from a pipe of a cell. Note which Python modules the cell imported and which memory pages it wrote."""
        if descriptor == cell.stderr:
            if not cell.read_stderr():
                self.selector.unregister(cell.stderr)
            return
        data, transcript = os.read(cell.messages, 1 << 16), cell.transcript
        transcript.feed(data)
        if self.pages is None:
            self.pages = transcript.pages
        modules, transcript.modules = transcript.modules, None
        if modules and not self.modules_known:
            self.first_is_over, self.modules_known = True, transcript.fields["stage"] in ("compile", "run")
            self.prepare(modules)
            if self.modules_known:
                write_notes(self.notes, modules)
        if transcript.is_complete or not data:
            cell.silent = True
            self.selector.unregister(cell.messages)

    def prepare(self, modules: list[str]) -> None:
        """Import these Python modules in the worker, so that its cells need not import them.

        If this has started threads or a client of the runtime, this process ends: its forks could hang, or would not
        be cold.
        """
        with without_collections():
            import_all(modules)
            self.half.start_ahead(False)
        # Later cells would be warm, or hang.
        if self.half.has_client():
            raise SystemExit(
                "importing the modules of the cells has started a client of the runtime, so that no cell would run in "
                "a cold process: let no module compute anything when it is imported"
            )
        if count_threads() > 1:
            raise SystemExit("the worker has %d threads, so its forks could hang" % count_threads())

    def end(self, cell: CellProcess) -> None:
        """Send the reply of a cell that is over. A cell whose spare process died before it began is begun anew."""
        (self.running if cell.request else self.spares).remove(cell)
        for descriptor in (cell.messages, cell.stderr):
            if descriptor in self.selector.get_map():
                self.selector.unregister(descriptor)
        cell.close()
        if cell.status is None:
            self.ending.append(cell.pid)
        if cell.spare and not cell.transcript.has_begun:  # it died, or hung, while it started the client
            # Whatever killed it: a cell shows what is wrong with the client in the stage in which it starts one itself.
            self.forks_ahead = False
            status = "exit status %d" % os.waitstatus_to_exitcode(cell.status or 0)
            self.note = "no more processes are started ahead of their cells, which makes cells slower: one %s: %s" % (
                "was stuck" if cell.killed_for else "ended with %s" % status,
                cell.printed.decode(errors="replace").strip() or "it printed nothing",
            )
            if cell.request:
                self.waiting.insert(0, cell.request)
            return
        self.first_is_over = True
        self.say({**cell.reply(), "note": self.note})
        self.note = ""


# --- modules that cells import ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def without_collections() -> Any:
    """Collect no garbage during the block, so that the modules in it are imported a fifth faster.

    Later collections ignore all objects that exist at the end of the block. Otherwise each cell would visit, and so
    copy, the memory of all modules.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def import_all(modules: list[str]) -> None:
    """Import the Python modules of these names. A module that raises an error is skipped, since its cell imports it."""
    for name in modules:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except Exception:  # whatever a module raises, its cell imports it itself
                continue


def read_notes(path: str) -> list[str]:
    """Return the names of the Python modules that an earlier worker noted; empty if there are no readable notes."""
    try:
        with open(path, encoding="utf-8") as file:
            names = json.load(file)
    except (OSError, ValueError, RecursionError):
        return []
    return names if isinstance(names, list) and are_all(names, str) else []


def write_notes(path: str, names: list[str]) -> None:
    """Write the names of Python modules for the next worker to a file, all or nothing.

    If the file cannot be written, nothing is raised, since the next worker can learn them from its own cells.
    """
    if not path:
        return
    unfinished = "%s.%d" % (path, os.getpid())
    try:
        with open(unfinished, "x", encoding="utf-8") as file:
            json.dump(names, file)
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)


# --- memory that a fork shares with its worker ------------------------------------------------------------------------
#
# A fork shares the pages of its worker until it writes to them; then the system copies each, one by one, while the cell
# waits. Any cell writes the same 4,000 or so (16 MB with 0.12.0.1), mostly for reference counts of what the worker has
# imported. So the first cell says which, and a spare process copies them in few calls before it has a cell. It keeps a
# cold cell within its budget of 1.4 times a warm one: 1.25 times with it, 1.43 without (benchmarks/cells.py, medians of
# the ratios of the goldens, both in turn on two cores). To copy all writable memory would be simpler: 50 ms a cell.


def writable_memory() -> list[tuple[int, int]]:
    """Return the (start, end) addresses of the writable memory that a process shares with its forks until they write.

    Empty on a system without /proc.
    """
    try:
        with open("/proc/self/maps") as file:
            fields = [line.split() for line in file]
    except OSError:
        return []
    spans = [words[0].partition("-") for words in fields if words[1] == "rw-p"]
    return [(int(start, 16), int(end, 16)) for start, _, end in spans]


def written_pages(memory: list[tuple[int, int]]) -> list[int]:
    """Return the parts of this memory that a process has written to, and so no longer shares with its worker.

    They are a list of numbers: address, length, address, length … It is empty if the system does not report them.
    """
    size = os.sysconf("SC_PAGE_SIZE")
    ranges: list[int] = []
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            for start, end in memory:
                file.seek(start // size * 8)
                entries = array.array("Q", file.read((end - start) // size * 8))
                for number, entry in enumerate(entries):
                    # Bit 63: present. 61: of a file. 56: mapped by this process alone.
                    # Source: Linux, Documentation/admin-guide/mm/pagemap.rst.
                    if entry >> 56 & 0b10100001 == 0b10000001:
                        address = start + number * size
                        # With the page between two, if there is one: another call costs more than its copy.
                        if ranges and address <= ranges[-2] + ranges[-1] + size:
                            ranges[-1] = address + size - ranges[-2]
                        else:
                            ranges += [address, size]
    except Exception:  # whatever it is, the artifact did nothing wrong
        return []
    return ranges


def copy_pages(ranges: list[int]) -> None:
    """Copy these pages of shared memory now, as if this process had written to them. Their content does not change.

    `ranges` are address, length, address, length … Pages that are not mapped are skipped. Linux before 5.14 copies
    nothing.
    """
    populate_write = 23
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for address, length in zip(ranges[::2], ranges[1::2], strict=True):
        madvise(address, length, populate_write)


# --- processes --------------------------------------------------------------------------------------------------------


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 if the process is gone, or on a system without /proc."""
    try:
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def limited_seconds(pid: int, started: float, limit: float, by_processor: bool) -> float:
    """Return how many seconds of its time limit a process has used since `started`, a time of the monotonic clock.

    With `by_processor` they are processor seconds of all its threads. Wall time is returned on a system without /proc,
    and for a process that only waits: when wall time is more than `MOST_WALL` times the limit.
    """
    wall = time.monotonic() - started
    if not by_processor or wall > MOST_WALL * limit:
        return wall
    try:
        with open("/proc/%d/stat" % pid) as file:
            ticks = file.read().rpartition(")")[2].split()[11:13]  # after the name, which may have spaces in it
            return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return wall


def count_threads() -> int:
    """Return the number of threads of this process; without /proc, only Python's own threads are counted."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def die_with(parent: int) -> None:
    """Have Linux end this process when the process `parent`, its worker, dies; end it now if `parent` is dead."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it died before this process asked for the signal
            os._exit(1)


def main() -> None:
    """Run as a worker that serves cells, or run a single cell, as the arguments say; reply on the original stdout."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a KeyboardInterrupt would look like an error of the artifact
    replies = os.dup(1)
    os.dup2(2, 1)  # what libraries print goes to stderr
    os.write(replies, b"\n")  # what was printed before this line must not run into the first reply
    if sys.argv[1] == "serve":
        notes, path = sys.argv[2:]
        with without_collections():
            half = load_half_or_exit(path)
        Server(half, replies, notes).serve()
        os._exit(0)  # a thread that the half has started may never end
    say = writer_to(replies)
    request = json.loads(sys.stdin.readline())
    coordinator = os.dup(0)

    def end_with_coordinator() -> None:
        while os.read(coordinator, 1 << 16):  # until its end of the pipe is closed
            continue
        os._exit(1)

    threading.Thread(target=end_with_coordinator, daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    half = load_half_or_exit(sys.argv[2])
    say({"ready": True, "imported": half.imported})
    report_cell(half, request, say, [])
    os._exit(0)


if __name__ == "__main__":
    main()
