"""A process that has imported jax and this package, and the programs `python` and `jaxexport`, which are forks of it.

The program `pytest` beside them is a fork of a process of warm_pytest.py.

Starting a new interpreter and importing them takes longer than most commands of a page. A fork differs from a new
interpreter: modules are imported already, and all forks hash strings alike. Workers of readers are forks too.
"""

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import runpy
import select
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from shared_process import shared_process
from warm_worker import LONGEST_REQUEST, use_warm_workers

IMPORTED = (
    *("jax", "jax.export", "scipy.optimize", "jaxlib.mlir.dialects.mhlo", "jaxlib.mlir.dialects.builtin"),
    *("export_core.cli.app", "export_core.export.golden_checks", "export_core.run.session"),
    *("export_core.run.golden_writing", "export_core.artifact.export_changes", "export_core.goldens.upkeep"),
    *("export_core.report.document", "urllib.request", "rich.console"),
)
PROGRAM = """\
#!{python} -IS
import marshal, os, sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket
connection = socket(AF_UNIX, SOCK_SEQPACKET)
connection.connect({path!r})
request = marshal.dumps([{name!r}, sys.argv[1:], dict(os.environ), os.getcwd()])
connection.sendmsg([request], [(SOL_SOCKET, SCM_RIGHTS, b"".join(n.to_bytes(4, sys.byteorder) for n in range(3)))])
sys.exit(int(connection.recv(32) or 1))
"""


PYTEST = """\
#!{python} -IS
import json, os, sys
from _socket import AF_UNIX, SOCK_STREAM, socket
connection = socket(AF_UNIX, SOCK_STREAM)
connection.connect({path!r})
output = f"/proc/{{os.getpid()}}/fd/1"
connection.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), output, ""]).encode() + b"\\n")
sys.exit(int(connection.recv(32) or 1))
"""


# --- in the coordinator -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def warm_commands(folder: Path, own: Path, workers: Path, runs: Path) -> Iterator[Path | None]:
    """Start the process that forks; yield a folder with its programs, for the front of PATH, or None without forks.

    Args:
        folder: the folder that its users share.
        own: a folder for the programs.
        workers: the socket of a process of warm_worker.py.
        runs: the socket of a process of warm_pytest.py.
    """
    if sys.platform != "linux":  # as in warm_worker.py
        yield None
        return
    listening, programs = folder / "socket", own / "programs"
    programs.mkdir()
    for name in ("python", "jaxexport"):
        (programs / name).write_text(PROGRAM.format(python=sys.executable, path=str(listening), name=name))
        (programs / name).chmod(0o755)
    (programs / "pytest").write_text(PYTEST.format(python=sys.executable, path=str(runs)))
    (programs / "pytest").chmod(0o755)
    # The threads of OpenBLAS would be lost in a fork.
    variables = {**os.environ, "JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1"}
    with shared_process(folder, [__file__, listening, workers], variables):
        yield programs


# --- in the process ---------------------------------------------------------------------------------------------------


def main(path: str, workers: str) -> None:
    from warm_pytest import look_up_facts_once

    from export_core.readers.installed import hash_of_this_interpreter

    for name in IMPORTED:
        importlib.import_module(name)
    hash_of_this_interpreter()  # computed once for all forks
    look_up_facts_once()
    use_warm_workers(workers)
    os.fsync = lambda descriptor: None  # as in conftest.py
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen()
    print("ready", flush=True)
    running: dict[int, tuple[int, socket.socket]] = {}  # by the descriptors of their processes
    while 0 not in (ready := select.select([listening, 0, *running], [], [])[0]):  # until stdin is at its end
        for number in set(ready) - {listening}:
            pid, connection = running.pop(number)
            with contextlib.suppress(OSError):  # the program was killed
                connection.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
            connection.close()
            os.close(number)
        if listening in ready:
            connection, _ = listening.accept()
            request, descriptors, *_ = socket.recv_fds(connection, LONGEST_REQUEST, 3)
            if (pid := os.fork()) == 0:
                run_program(*marshal.loads(request), descriptors)
            for number in descriptors:
                os.close(number)
            running[os.pidfd_open(pid)] = pid, connection


def run_program(
    name: str, words: list[str], variables: dict[str, str], folder: str, descriptors: list[int]
) -> NoReturn:
    """Run `python WORDS` or `jaxexport WORDS` in this process, and end it as an interpreter ends."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # The objects of before know whether they can seek, and these descriptors may be files, pipes or terminals.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    code = 0
    try:
        run(name, words)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    # What else an interpreter does at its end is to take apart all that is imported.
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):  # json.tool closes standard output
            stream.flush()
    os._exit(code)


def run(name: str, words: list[str]) -> None:
    from export_core.cli import entry

    if name == "jaxexport":
        del sys.path[0]
        sys.argv = [name, *words]
        sys.modules["__main__"] = ModuleType("__main__")  # a process that multiprocessing starts imports that of this
        sys.exit(entry.main())
    first, *rest = words
    if first == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path[0] = ""
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first.startswith("-"):
        sys.exit(f"tests/warm_commands.py knows no option {first} of python")
    else:
        sys.path[0] = str(Path(first).parent.absolute())
        sys.argv = words
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
