"""The interpreter that runs now: a hash of what is installed in it, as far as a cell can depend on it."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_DECIDING = ("jax", "jaxlib", "numpy", "ml_dtypes", "scipy", "opt_einsum", "flatbuffers")
"""Packages that a cell imports. Of these, every file is looked at: a user may edit a package where it is installed."""
_RUN_AT_START = ("*.pth", "sitecustomize.py", "usercustomize.py")


@functools.cache
def hash_of_this_interpreter() -> str:
    """A hash that changes with the interpreter, its packages, and the files of those that a cell imports.

    Of these files size and time are read, not the content: that takes 10 ms where reading them takes a second. Empty
    where a file cannot be looked at.
    """
    try:
        return _hash()
    except OSError:
        return ""


def _hash() -> str:
    digest = hashlib.sha256(f"{sys.version}\n{sys.executable}\n{os.environ.get('PYTHONPATH', '')}".encode())
    for path in sorted({Path(folder) for folder in sys.path if folder}):
        for record in sorted(path.glob("*.dist-info/RECORD")):
            digest.update(f"{record.parent}\n".encode() + record.read_bytes())
        for pattern in _RUN_AT_START:
            for file in sorted(path.glob(pattern)):
                digest.update(f"{file}\n".encode() + file.read_bytes())
    for name in _DECIDING:
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            for line in _files(folder):
                digest.update(line.encode())
    return digest.hexdigest()


def _files(folder: str) -> Iterator[str]:
    """Path, size and time of each file in a folder, except for compiled bytecode, which is of no package."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            status = os.stat(f"{parent}/{name}")  # noqa: PTH116 - thousands of files, and pathlib is slow
            yield f"{parent}/{name} {status.st_size} {status.st_mtime_ns}\n"
