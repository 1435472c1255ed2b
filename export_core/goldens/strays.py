"""Strays: files and folders between the goldens that do not belong to any golden."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from export_core.goldens.staging import REMOVED, STAGED, SWAPPED_OUT, is_abandoned
from export_core.goldens.store import MANIFEST, GoldenStore


@dataclass(frozen=True)
class Stray:
    """A file or folder that does not belong to any golden.

    `leftover`: a write or deletion that was killed left it, and it can be deleted without loss.
    """

    path: Path
    what: str
    leftover: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def strays(root: Path) -> Iterator[Stray]:
    """All strays that can be found without reading a manifest.

    A folder in a case's folder counts as a golden, whole or damaged.

    Plain files beside the cases (a README, .gitattributes) are the user's own.
    """
    for case in _sorted(root):
        if case.is_dir() and not case.name.startswith("."):
            entries = _sorted(case)
            if not entries:
                yield Stray(case, "a case without a golden", leftover=True)
            for path in entries:
                yield from _strays_in_case(path)


def unlisted_files(store: GoldenStore) -> Iterator[Stray]:
    """Files in the folders of goldens that their manifests do not list.

    Raises `GoldenError` for a manifest that cannot be read.
    """
    for golden in store.goldens():
        for path in _sorted(golden.folder):
            if path.name not in {MANIFEST, *golden.manifest.files}:
                what = f"not one of the files of {golden.id}"
                if path.name == "__pycache__":
                    what += ": bytecode, which can be deleted; an earlier version of pytest-jaxexport left it"
                yield Stray(path, what)


def delete_leftovers(candidates: Iterable[Stray]) -> list[Stray]:
    """Delete the strays that are leftovers, and no others. Returns those."""
    leftovers = [stray for stray in candidates if stray.leftover]
    for stray in leftovers:
        # A case's folder is removed only if it is empty: a golden may have been written into it since it was listed.
        if stray.path.name.startswith("."):
            shutil.rmtree(stray.path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):  # another process writes a golden of this case by now
                stray.path.rmdir()
    return leftovers


def _strays_in_case(path: Path) -> Iterator[Stray]:
    """What one entry of a case's folder is, if it is not a golden."""
    if path.name.startswith((STAGED, REMOVED)):
        if is_abandoned(path):  # otherwise a living process is at work in it
            yield Stray(path, "left by a process that was killed", leftover=True)
    elif path.name.startswith(SWAPPED_OUT):
        # While its replacement is missing, this is the only copy of the golden.
        replaced = (path.parent / path.name.removeprefix(SWAPPED_OUT)).exists()
        yield Stray(path, "the golden that a killed update was replacing", leftover=replaced)
    elif not path.is_dir():
        yield Stray(path, "a file outside any golden's folder")


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
