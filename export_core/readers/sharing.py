"""What the environments of a run share: Python bytecode of equal files, and the notes of which modules cells import."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from export_core.readers.worker.client import NOTES
from export_core.readers.worker.program import ELSEWHERE

_HEADER = 16
"""The bytes of a bytecode file before its code: magic number, flags, and the source's time and size, as PEP 552 says.
The flags are 0 where Python checks the time and the size."""


def share(folder: Path, others: Iterable[Path]) -> None:
    """Copy bytecode, and notes of which modules cells import, from other environments into a new one.

    Bytecode is copied for each source file with the same bytes in both environments. This saves time: compiling what
    jax imports takes three times as long as importing it. Python itself checks that bytecode fits its source. The notes
    of any environment are useful, since two releases import much the same modules. Nothing is done if the environment
    already has bytecode.
    """
    if is_used(folder):
        return
    shared: set[str] = set()
    for other in others:
        # Texts and os.path: a thousand files, and pathlib is slow.
        start = len(str(other))
        for compiled in _compiled(other):
            name = compiled[start:]
            if name in shared:
                continue
            source = _source(name)
            with contextlib.suppress(OSError):  # it has no such file, or another process has compiled it meanwhile
                if _share_bytecode(compiled, f"{other}{source}", f"{folder}{source}", f"{folder}{name}"):
                    shared.add(name)
        for notes in other.glob(f"{NOTES}*.json"):
            with contextlib.suppress(OSError):  # it has some
                (folder / ELSEWHERE).hardlink_to(notes)


def is_used(folder: Path) -> bool:
    """Return whether anything was imported in an environment, which leaves bytecode there."""
    return next(_compiled(folder), None) is not None


def _source(compiled: str) -> str:
    """Return the path of a bytecode file's source: ``a/b.py`` for ``a/__pycache__/b.cpython-312.pyc``."""
    folder, name = os.path.split(compiled)
    return f"{os.path.dirname(folder)}/{name.partition('.')[0]}.py"  # noqa: PTH120


def _share_bytecode(compiled: str, source: str, own_source: str, own: str) -> bool:
    """Copy a bytecode file from another environment if both environments have the same source file.

    Returns whether the file was copied. Raises `OSError` if a file is missing, or if `own` exists.

    Args:
        compiled: the bytecode file in the other environment.
        source: the source file there.
        own_source: the source file in the new environment.
        own: the bytecode file to make in the new environment.
    """
    status, own_status = os.stat(source), os.stat(own_source)  # noqa: PTH116
    if status.st_size != own_status.st_size:
        return False
    time, own_time = (_four_bytes(one.st_mtime) for one in (status, own_status))
    if not os.path.samestat(status, own_status):
        data = _read(compiled)
        # Bytecode of another source, or such that Python does not check by time.
        if data[4:_HEADER] != bytes(4) + time + _four_bytes(status.st_size) or _read(source) != _read(own_source):
            return False
    with contextlib.suppress(FileExistsError):
        os.mkdir(os.path.dirname(own))  # noqa: PTH102, PTH120
    if time == own_time:
        os.link(compiled, own)
        return True
    unfinished = f"{own}.{os.getpid()}"
    with open(unfinished, "xb") as file:  # noqa: PTH123
        file.write(data[:8] + own_time + data[12:])
    os.replace(unfinished, own)  # noqa: PTH105
    return True


def _four_bytes(number: float) -> bytes:
    return (int(number) & 0xFFFFFFFF).to_bytes(4, "little")


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _compiled(folder: Path) -> Iterator[str]:
    """Yield the paths of the complete bytecode files (``.pyc``) in an environment."""
    for parent, _, names in os.walk(folder):
        if parent.endswith("__pycache__"):
            # Another name is of bytecode that a process is writing now.
            yield from (f"{parent}/{name}" for name in names if name.endswith(".pyc"))
