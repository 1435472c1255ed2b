"""How does the coordinator start a process of a reader, and hear all that it prints without ever holding much of it?"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from export_core.environments.build import LAST_LINES
from export_core.environments.environment import Environment
from export_core.worker.errors import WorkerDied
from export_core.worker.program import LONGEST_LINE, LONGEST_STDERR

PROGRAM = Path(__file__).with_name("program.py")
JOIN_SECONDS = 5.0
"""How long to wait for the end of a pipe that a process left open which a worker's own process started."""


def start(environment: Environment, *words: str) -> subprocess.Popen[bytes]:
    """Start ``program.py WORDS`` in an environment. Raises `WorkerDied` where there is no such interpreter."""
    try:
        return subprocess.Popen(
            [str(environment.python), str(PROGRAM), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment.variables),
            start_new_session=True,  # Ctrl-C is for the coordinator, which then ends its workers
        )
    except OSError as error:
        raise WorkerDied(f"cannot start {environment.python}: {error.strerror}") from error


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that was started here, and what it has started itself."""
    if process.poll() is None and hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


class Printed(threading.Thread):
    """Reads what a process prints on stderr, so that it never waits, and keeps the end of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._end = b""
        self.start()

    def run(self) -> None:
        """See `threading.Thread`."""
        while data := read(self._process.stderr):
            self._end = (self._end + data)[-LONGEST_STDERR:]

    def text(self) -> str:
        """The end of it."""
        return self._end.decode(errors="replace")

    def last_lines(self) -> str:
        """The last lines of a process that has ended, or of one that has not."""
        self.join(timeout=1)
        return "\n".join(self.text().strip().splitlines()[-LAST_LINES:])


def close(process: subprocess.Popen[bytes], reader: threading.Thread, printed: Printed) -> None:
    """Let go of the pipes of a process that has ended."""
    assert process.stdin
    with contextlib.suppress(OSError):  # what was left to say goes nowhere
        process.stdin.close()
    for thread, pipe in ((reader, process.stdout), (printed, process.stderr)):
        thread.join(timeout=JOIN_SECONDS)
        if pipe and not thread.is_alive():  # a process that it left behind may hold it open
            pipe.close()


def read(pipe: IO[bytes] | None) -> bytes:
    """What is there, as soon as something is; nothing at the end."""
    assert isinstance(pipe, io.BufferedReader)
    return pipe.read1(1 << 16)


def lines(pipe: IO[bytes] | None) -> Iterator[bytes]:
    """The lines of a pipe; those that are longer than any message come in pieces, none of which is one."""
    assert pipe
    while line := pipe.readline(LONGEST_LINE):
        yield line


def is_ready(line: bytes) -> bool:
    """Whether this is the line in which a worker says that it has imported jax."""
    try:
        return msgspec.json.decode(line, type=_Ready).ready
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


class _Ready(msgspec.Struct, frozen=True):
    ready: bool
