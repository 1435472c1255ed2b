"""The processes of a reader: started, read without ever storing much of what they print, and killed."""

from __future__ import annotations

import contextlib
import io
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from export_core.readers.build import LAST_LINES
from export_core.readers.environment import Environment
from export_core.readers.worker.errors import WorkerDied
from export_core.readers.worker.program import LONGEST_LINE, LONGEST_STDERR

PROGRAM = Path(__file__).with_name("program.py")
JOIN_SECONDS = 5.0
"""How long to wait for the end of a pipe: a process that a worker's own process started may still hold it open."""


def start(environment: Environment, *words: str) -> subprocess.Popen[bytes]:
    """Start ``program.py WORDS`` in an environment. Raises `WorkerDied` if its interpreter cannot be started."""
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


class StderrTail(threading.Thread):
    """Reads what a process prints on stderr, so that it never blocks, and stores the end of it."""

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


def close(process: subprocess.Popen[bytes], reader: threading.Thread, stderr: StderrTail) -> None:
    """Close the pipes of a process that has ended."""
    assert process.stdin
    with contextlib.suppress(OSError):  # what is still buffered reaches nobody
        process.stdin.close()
    for thread, pipe in ((reader, process.stdout), (stderr, process.stderr)):
        thread.join(timeout=JOIN_SECONDS)
        if pipe and not thread.is_alive():  # else a process that it left behind holds it open
            pipe.close()


def read(pipe: IO[bytes] | None) -> bytes:
    """The bytes that are there, as soon as there are any; none at the end."""
    assert isinstance(pipe, io.BufferedReader)
    return pipe.read1(1 << 16)


def lines(pipe: IO[bytes] | None) -> Iterator[bytes]:
    """The lines of a pipe. One that is longer than any message comes in pieces, none of which is a message."""
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
