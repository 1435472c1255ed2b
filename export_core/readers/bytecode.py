"""Bytecode that the environments of a run share, as they share the source files: by hard links."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

_COMPILED = ("[Ll]ib/python*/site-packages/**/__pycache__/*.pyc", "Lib/site-packages/**/__pycache__/*.pyc")
_IMPORTED_BY_ALL = tuple(pattern.replace("**", "numpy") for pattern in _COMPILED)


def share_bytecode(folder: Path, others: Iterable[Path]) -> None:
    """Give an environment in which nothing was imported yet the bytecode that others have of its own files.

    A file is the same where the installer has made hard links of one in its cache: NumPy and SciPy, and jax where two
    readers have the same. To compile what jax imports takes twice as long as to import it. Python itself looks whether
    bytecode fits its source.
    """
    if any(compiled for pattern in _IMPORTED_BY_ALL for compiled in folder.glob(pattern)):
        return
    for other in others:
        for compiled in {path for pattern in _COMPILED for path in other.glob(pattern)}:
            place = folder / compiled.relative_to(other)
            source = place.parents[1] / f"{place.name.partition('.')[0]}.py"
            with contextlib.suppress(OSError):  # it has no such file, or has its bytecode already
                if source.samefile(other / source.relative_to(folder)):
                    place.parent.mkdir(exist_ok=True)
                    place.hardlink_to(compiled)
