"""A process that has imported jax: workers of this interpreter are forks of it.

A worker that starts anew imports jax for 0.7 s of a processor, and hundreds of tests need one. What differs: all these
workers hash strings alike. Their program is the real one, and each cell is a fork of its worker, as always. A worker of
another interpreter, or with variables beside the usual ones, is started by `processes.start` itself.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import NoReturn

LONGEST_REQUEST = 1 << 17


# --- in the coordinator -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def warm_worker(path: Path) -> Iterator[None]:
    """The process, listening on a socket of this path."""
    from export_core.environments.environment import CELL_VARIABLES

    process = subprocess.Popen(
        [sys.executable, __file__, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **CELL_VARIABLES},
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    yield
    process.communicate()


class ForkedWorker:
    """What `subprocess.Popen` is for a worker, of a fork of the warm process."""

    def __init__(self, path: Path, words: list[str], variables: dict[str, str]) -> None:
        ours, theirs = zip(*(os.pipe()[:: 1 if number else -1] for number in range(3)), strict=True)
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.connect(str(path))
        request = json.dumps([words, variables, str(Path.cwd())]).encode()
        socket.send_fds(self._connection, [request], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin = io.BufferedWriter(io.FileIO(ours[0], "w"))
        self.stdout, self.stderr = (io.BufferedReader(io.FileIO(descriptor)) for descriptor in ours[1:])
        self.pid = int(self._connection.recv(32))
        self._code: Future[int] = Future()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self._code.set_result(int(self._connection.recv(32)))
        self._connection.close()

    @property
    def returncode(self) -> int | None:
        return self._code.result() if self._code.done() else None

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        try:
            return self._code.result(timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired("a worker", timeout or 0) from None

    def kill(self) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def use(path: Path) -> None:
    """From now on, the workers of this process are forks of the process that listens there."""
    from export_core.environments.environment import CELL_VARIABLES, Environment
    from export_core.variables import deciding_variables
    from export_core.worker import processes

    anew = processes.start

    def start(environment: Environment, *words: str) -> subprocess.Popen[bytes] | ForkedWorker:
        deciding = {name: value for name, value in deciding_variables(environment.variables) if value}
        usual = str(environment.python) == sys.executable and deciding == CELL_VARIABLES
        if words[0] != "serve" or not usual:
            return anew(environment, *words)
        return ForkedWorker(path, [str(processes.PROGRAM), *words], dict(environment.variables))

    processes.start = start  # type: ignore[assignment]


# --- in the process ---------------------------------------------------------------------------------------------------


def main(path: str) -> None:
    sys.path[0] = str(Path(__file__).parents[1] / "export_core/worker")
    import program

    del sys.path[0]
    program.import_jax()
    gc.freeze()  # or the first collection of each fork would copy every page
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen()
    print("ready", flush=True)
    while listening in select.select([listening, 0], [], [])[0]:  # until stdin is closed
        connection, _ = listening.accept()
        if os.fork() == 0:
            keep(connection, listening)
        connection.close()
        with contextlib.suppress(ChildProcessError):  # there is none
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue


def keep(connection: socket.socket, listening: socket.socket) -> NoReturn:
    """Fork a worker, and say its process id and its exit code."""
    listening.close()
    request, descriptors, *_ = socket.recv_fds(connection, LONGEST_REQUEST, 3)
    if (pid := os.fork()) == 0:
        connection.close()
        become_worker(*json.loads(request), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.send(str(pid).encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):  # nobody wants to know any more
        connection.send(str(code).encode())
    os._exit(0)


def become_worker(words: list[str], variables: dict[str, str], folder: str, descriptors: list[int]) -> NoReturn:
    import program

    code = 1
    try:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        sys.argv = words
        program.main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
