"""What the environments of a run share by hard links: Python bytecode, and the notes of which modules cells import."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from export_core.readers.worker.client import NOTES
from export_core.readers.worker.program import ELSEWHERE


def share(folder: Path, others: Iterable[Path]) -> None:
    """Give a new environment, in which nothing was imported yet, Python bytecode and notes of others, as hard links.

    Bytecode is linked if its source file is the same file in both environments: the installer makes hard links of one
    file in its cache. This saves time, since compiling what jax imports takes twice as long as importing it. Python
    itself checks that bytecode fits its source. The notes of any environment will do, since two releases import much
    the same modules.
    """
    if next(_compiled(folder), None):
        return
    for other in others:
        # Texts and os.path: a thousand files, and pathlib is slow.
        start = len(str(other))
        for compiled in _compiled(other):
            parent, name = os.path.split(compiled[start:])
            source = f"{os.path.dirname(parent)}/{name.partition('.')[0]}.py"  # noqa: PTH120
            with contextlib.suppress(OSError):  # it has no such file, or has its bytecode from one before
                if os.path.samefile(f"{folder}{source}", f"{other}{source}"):  # noqa: PTH121
                    os.makedirs(f"{folder}{parent}", exist_ok=True)  # noqa: PTH103
                    os.link(compiled, f"{folder}{parent}/{name}")
        for notes in other.glob(f"{NOTES}*.json"):
            with contextlib.suppress(OSError):  # it has some
                (folder / ELSEWHERE).hardlink_to(notes)


def _compiled(folder: Path) -> Iterator[str]:
    """Yield the paths of the complete bytecode files (``.pyc``) in an environment."""
    for parent, _, names in os.walk(folder):
        if parent.endswith("__pycache__"):
            # Another name is of bytecode that a process is writing now.
            yield from (f"{parent}/{name}" for name in names if name.endswith(".pyc"))
