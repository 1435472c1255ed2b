"""The interpreter that runs now: a hash of what is installed in it, as far as a cell can depend on it."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from export_core.readers.installed import lines_of_packages

_DECIDING = ("jax", "jaxlib", "numpy", "ml_dtypes", "scipy", "opt_einsum", "flatbuffers")
"""Packages that a cell imports. Of these, every file is looked at: a user may edit a package where it is installed."""
_RUN_AT_START = ("*.pth", "sitecustomize.py", "usercustomize.py")


@functools.cache
def hash_of_this_interpreter() -> str:
    """A hash that changes with the interpreter, its packages, and the files of those that a cell imports.

    Of these files size and time are read, not the content: that takes 10 ms where reading them takes a second. Where
    the interpreter lies is left out: another clone of a project with the same packages has the same hash. Empty where a
    file or a package cannot be looked at.
    """
    try:
        return _hash()
    except (OSError, ValueError):  # ValueError: a module that says nothing of where it comes from
        return ""


def _hash() -> str:
    lines = [sys.version, os.environ.get("PYTHONPATH", "")]
    for path in {Path(folder) for folder in sys.path if folder}:
        for record in path.glob("*.dist-info/RECORD"):
            lines += [record.parent.name, *(line for line in lines_of_packages(record) if ".pth," not in line)]
        for file in (file for pattern in _RUN_AT_START for file in path.glob(pattern)):
            # Other lines of a .pth file name a folder, such as that of a package that is being developed.
            text = file.read_text(encoding="utf-8", errors="replace").splitlines()
            lines += [line for line in text if file.suffix != ".pth" or line.startswith("import")]
    for name in _DECIDING:
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            lines += _files(folder)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _files(folder: str) -> Iterator[str]:
    """Path, size and time of each file in a folder, except for compiled bytecode, which is of no package."""
    root = str(Path(folder).parent)
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            status = os.stat(f"{parent}/{name}")  # noqa: PTH116 - thousands of files, and pathlib is slow
            yield f"{parent.removeprefix(root)}/{name} {status.st_size} {status.st_mtime_ns}"
