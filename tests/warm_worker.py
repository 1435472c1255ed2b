"""A process that has imported jax, and whose forks are workers of this interpreter.

Importing jax takes 0.7 s of a processor in each new worker, and hundreds of tests need one. These forks run the real
program, and each cell is a fork of its worker as always, but all hash strings alike. A worker with other variables, or
in an environment that a test has built, is started by `client.start_process` itself. What XLA compiles is shared: see
`share_compiled`.

For each environment in the user's cache of which a worker is asked for, the process starts one more of its kind with
the interpreter of that environment. It shares nothing that XLA compiles.
"""

import contextlib
import gc
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from shared_process import shared_process

SOCKET = "socket"
LONGEST_REQUEST = 1 << 17
LATE = ("CUDA_ROOT", "SCALE_LIBRARY", "XLA_FLAGS")
"""Variables that are not read when jax is imported. Pallas sets the first one when a test imports it."""
OWN_PATH = os.environ.get("PYTHONPATH")
"""Where this process, and so the warm one, finds modules: a checkout may be tested without being installed."""


# --- in the coordinator -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def warm_worker(
    folder: Path, variables: Mapping[str, str], compiled: Path, environments: Path | None = None
) -> Iterator[Path]:
    """Start the process whose forks are workers, with these additional variables; yield the path of its socket.

    Args:
        folder: the folder that its users share.
        variables: the additional variables.
        compiled: the folder for what XLA has compiled.
        environments: the folder with the environments whose workers are forks too.
    """
    path = folder / SOCKET
    if sys.platform != "linux":  # other systems lack such sockets, or a safe `os.fork`
        yield path
        return
    variables = {**os.environ, **variables, "PYTHONDONTWRITEBYTECODE": ""}  # a worker may write bytecode
    with shared_process(folder, [__file__, path, compiled, environments or ""], variables):
        yield path


class ForkedWorker:
    """A fork of the warm process with the interface of `subprocess.Popen`, for a worker."""

    def __init__(self, path: Path, words: list[str], variables: dict[str, str]) -> None:
        (their_in, our_in), (our_out, their_out), (our_err, their_err) = (os.pipe() for _ in range(3))
        theirs = (their_in, their_out, their_err)
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.connect(str(path))
        request = json.dumps([words, variables, str(Path.cwd())]).encode()
        socket.send_fds(self._connection, [request], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin = os.fdopen(our_in, "wb")
        self.stdout, self.stderr = (os.fdopen(descriptor, "rb") for descriptor in (our_out, our_err))
        self.pid = int(self._connection.recv(32))
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
                self.returncode = int(self._connection.recv(32))
                self._connection.close()
        return self.returncode

    def wait(self, timeout: float = math.inf) -> int:
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a worker", timeout)
            time.sleep(0.002)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # `keep` has waited for it, and not yet sent its code
                os.kill(self.pid, signal.SIGKILL)


Start = Callable[..., "subprocess.Popen[bytes] | ForkedWorker"]


def starts(path_of: Callable[[Mapping[str, str]], Path | None]) -> Start:
    """Return a replacement of `client.start_process`: it forks the process that listens for these variables."""
    from export_core.base.processes import deciding_variables
    from export_core.readers.environment import CELL_VARIABLES, JAXLIB_WORKER, Environment
    from export_core.readers.worker import client

    anew = client.start_process
    if sys.platform != "linux":
        return anew

    def start(environment: Environment, *words: str) -> subprocess.Popen[bytes] | ForkedWorker:
        deciding = dict(deciding_variables(environment.variables))
        for name in LATE:
            deciding.pop(name, None)
        if deciding.get("PYTHONPATH") == OWN_PATH:
            deciding.pop("PYTHONPATH", None)
        path = path_of(deciding) if environment.half == JAXLIB_WORKER else None
        if path is not None and str(environment.python) != sys.executable:
            path = path_in(environment.folder, environment.python, path) if deciding == CELL_VARIABLES else None
        if path is None:
            return anew(environment, *words)
        return ForkedWorker(path, [str(client.PROGRAM), *words, str(environment.half)], dict(environment.variables))

    return start


def path_in(folder: Path | None, python: Path, usual: Path) -> Path | None:
    """Return the socket of the process whose forks are workers of an environment; None if they are no forks.

    Args:
        folder: the folder of the environment, if it was built. Only those in the user's cache outlive a test.
        python: the interpreter of the environment.
        usual: the socket of the process for this interpreter, which starts the other process if it does not run yet.
    """
    if folder is None:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(str(usual))
        connection.send(json.dumps(str(folder.resolve() / python.relative_to(folder))).encode())
        answer = connection.recv(LONGEST_REQUEST).decode()
    return Path(answer) if answer else None


def use_warm_workers(path: str) -> None:
    """Fork workers from now on. `path` is the socket of a process of this program."""
    from export_core.readers.environment import CELL_VARIABLES
    from export_core.readers.worker import client

    client.start_process = starts(lambda deciding: Path(path) if deciding == CELL_VARIABLES else None)


# --- in the process ---------------------------------------------------------------------------------------------------


def share_compiled(folder: str) -> None:
    """Have forks of this process store in a folder what XLA compiles, and load it from there instead of compiling it.

    It takes 50 ms of a processor to compile a sine, in a test's process and again in a cell, and 5 ms to load it. Tests
    compile the same few functions hundreds of times. XLA loads the same machine code with the same figures.
    """
    import jax
    from jax._src import lru_cache

    def put_whole(cache: lru_cache.LRUCache, key: str, value: bytes) -> None:
        whole = Path(folder, f"{key}-cache")  # as the cache itself names it; it writes in place, while others read
        unfinished = whole.with_name(f"{key}.{os.getpid()}")
        with contextlib.suppress(OSError):  # a test may limit the sizes of files
            unfinished.write_bytes(value)
            unfinished.replace(whole)

    lru_cache.LRUCache.put = put_whole
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")


def share_mlir_context() -> None:
    """Have this process and its forks lower all functions in one MLIR context.

    jax makes one for each function, and registers its dialects there: 2 ms of a processor, 5 in a fork.
    """
    from jax._src.interpreters import mlir

    context = mlir.make_ir_context()
    mlir.make_ir_context = lambda: context


class OtherInterpreters:
    """The processes of this program in other environments, and who waits for their start."""

    def __init__(self, folder: Path, environments: str) -> None:
        self._folder, self._environments = folder, environments
        self._processes: dict[str, tuple[subprocess.Popen[bytes], str]] = {}
        self.starting: dict[int, tuple[str, list[socket.socket]]] = {}  # by the descriptors of their stdout

    def answer(self, python: str, connection: socket.socket) -> None:
        """Send the socket of the process of an interpreter once it is ready, or nothing if it has no process."""
        if not self._environments or not Path(python).is_relative_to(self._environments):
            connection.close()
            return
        if python not in self._processes:
            path = str(self._folder / f"{len(self._processes)}")
            # A reader must not find modules of this interpreter's PYTHONPATH.
            variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
            words = [python, __file__, path, "", ""]
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables)
            self._processes[python] = process, path
            assert process.stdout
            self.starting[process.stdout.fileno()] = python, []
        waiting = next((waiting for name, waiting in self.starting.values() if name == python), None)
        if waiting is None:
            self._send(python, connection)
        else:
            waiting.append(connection)

    def started(self, number: int) -> None:
        """Answer those who wait for the process that has written to this descriptor, or has closed it."""
        python, waiting = self.starting[number]
        if os.read(number, 1 << 16) and not Path(self._processes[python][1]).exists():
            return  # what jax prints
        del self.starting[number]
        for connection in waiting:
            self._send(python, connection)

    def _send(self, python: str, connection: socket.socket) -> None:
        process, path = self._processes[python]
        with connection, contextlib.suppress(OSError):  # the other side is gone
            connection.send(path.encode() if Path(path).exists() and process.poll() is None else b"")

    def leave(self) -> None:
        """Close the pipes in a fork, which must not hold the processes alive."""
        for process, _ in self._processes.values():
            assert process.stdin
            process.stdin.close()

    def close(self) -> None:
        """End all processes; this process has waited for them, which counts their processor time."""
        for process, _ in self._processes.values():
            process.communicate()


def main(path: str, compiled: str, environments: str) -> None:
    sys.path[0] = str(Path(__file__).parents[1] / "export_core/readers/worker")
    import program

    half = program.start_half(str(Path(sys.path[0]) / "jaxlib_worker.py"))
    del sys.path[0]
    program.start_half = lambda path: half  # a fork has it already
    start_ahead = half.start_ahead
    start_ahead(False)
    half.start_ahead = lambda client: start_ahead(True) if client else None
    if compiled:
        share_compiled(compiled)
        share_mlir_context()
    others = OtherInterpreters(Path(path).parent, environments)
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen()
    print("ready", flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a fork that outlives this process must not hold the pipe open
    running: dict[int, tuple[int, socket.socket]] = {}  # by the descriptors of their processes
    while 0 not in (ready := select.select([listening, 0, *running, *others.starting], [], [])[0]):  # stdin has ended
        for number in others.starting.keys() & set(ready):
            others.started(number)
        for number in running.keys() & set(ready):
            pid, connection = running.pop(number)
            with contextlib.suppress(OSError):  # the other side is gone
                connection.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
            connection.close()
            os.close(number)
        if listening not in ready:
            continue
        connection, _ = listening.accept()
        request, descriptors, *_ = socket.recv_fds(connection, LONGEST_REQUEST, 3)
        asked = json.loads(request)
        if isinstance(asked, str):
            others.answer(asked, connection)
            continue
        words, variables, folder = asked
        # The worker would import the modules that an earlier worker noted, so that the fork has them already.
        if modules := [name for name in program.read_notes(words[-2]) if name not in sys.modules]:
            program.import_all(modules)
            gc.freeze()
        if (pid := os.fork()) == 0:
            for opened in (listening, connection, *(other for _, other in running.values())):
                opened.close()
            for number in running:
                os.close(number)
            others.leave()
            become_worker(words, variables, folder, descriptors)
        for number in descriptors:
            os.close(number)
        connection.send(str(pid).encode())
        running[os.pidfd_open(pid)] = pid, connection
    others.close()


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
