"""Bytecode of Python files that most cells import, compiled on several processors before the first worker starts."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from pathlib import Path

from export_core.base.processes import kill_group, passed_variables

FILES = Path(__file__).parent / "data" / "imported_files.txt"
"""The paths of those files below site-packages, one a line, by `python -m tools.imported_files`. A file that is missing
there, or that a release of jax does not have, only costs time: its import compiles it."""
MOST_PROCESSES = 4  # More start later than these are done.
SECONDS = 20.0
LOOK_SECONDS = 0.05  # The time between two looks at whether the run was stopped.
_PROGRAM = """
import py_compile, sys
for path in sys.stdin:
    try:
        py_compile.compile(path[:-1], doraise=True, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    except Exception:
        pass  # its import says what is wrong with it
"""


def compile_imported(folder: Path, python: Path, processes: int, stopping: threading.Event) -> None:
    """Compile the files of `FILES` that a new environment has, with its interpreter `python`.

    A worker that imports them would compile them on one processor, which takes two seconds. Nothing is raised, since it
    compiles what is missing. No process is started for fewer than two, and none runs on after `SECONDS`, or once
    `stopping` is set.
    """
    if processes < 2:
        return
    shares = _shares(folder, min(processes, MOST_PROCESSES))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for paths in shares:
            with contextlib.suppress(OSError):
                started.append(_start(folder, python, paths))
        until = time.monotonic() + SECONDS
        for process in started:
            while process.poll() is None and time.monotonic() < until and not stopping.is_set():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_SECONDS)
    finally:
        for process in started:
            kill_group(process)
            process.wait()


def _start(folder: Path, python: Path, paths: list[str]) -> subprocess.Popen[bytes]:
    """Start and return a process that compiles the files at these paths. Raises `OSError`."""
    process = subprocess.Popen(
        [str(python), "-I", "-S", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=passed_variables(),
        start_new_session=True,  # Ctrl-C is for the coordinator, which then ends it
    )
    assert process.stdin
    with contextlib.suppress(OSError), process.stdin as stdin:  # it has ended already
        stdin.write("".join(f"{path}\n" for path in paths).encode(errors="surrogateescape"))
    return process


def _shares(folder: Path, processes: int) -> list[list[str]]:
    """Return the paths of the files of `FILES` in an environment, in as many lists of about the same size in bytes."""
    sites = [*folder.glob("lib/python*/site-packages"), *folder.glob("Lib/site-packages")]
    sizes: dict[str, int] = {}
    for name in FILES.read_text(encoding="utf-8").split():
        for site in sites[:1]:
            with contextlib.suppress(OSError):
                sizes[f"{site}/{name}"] = os.stat(f"{site}/{name}").st_size  # noqa: PTH116 - pathlib is slow
    paths = sorted(sizes, key=sizes.__getitem__, reverse=True)
    return [share for number in range(processes) if (share := paths[number::processes])]
