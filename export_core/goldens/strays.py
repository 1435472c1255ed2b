"""What lies in a folder of goldens and belongs to none of them?"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from export_core.goldens.store import GONE, MANIFEST, GoldenStore, is_abandoned


@dataclass(frozen=True)
class Stray:
    """A file or folder of no golden. `ours`: a write or a deletion that was killed left it, and it holds nothing that counts."""

    path: Path
    what: str
    ours: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def strays(root: Path) -> Iterator[Stray]:
    """All of them, by what lies where, without reading a manifest. A folder in a case is a golden, whole or damaged.

    Plain files beside the cases (a README, .gitattributes) are people's own.
    """
    for case in _sorted(root):
        if case.is_dir() and not case.name.startswith("."):
            inside = _sorted(case)
            if not inside:
                yield Stray(case, "a case without a golden", ours=True)
            for path in inside:
                yield from _of_case(path)


def unlisted(store: GoldenStore) -> Iterator[Stray]:
    """Files in the folders of goldens that their manifests do not list. Raises `GoldenError` for a manifest that cannot be read."""
    for golden in store.goldens():
        for path in _sorted(golden.folder):
            if path.name not in {MANIFEST, *golden.manifest.files}:
                yield Stray(path, f"not one of the files of {golden.id}")


def clear(found: Iterable[Stray]) -> list[Stray]:
    """Delete those that are ours, and say which. Nothing else is touched."""
    gone = [stray for stray in found if stray.ours]
    for stray in gone:
        if stray.path.name.startswith("."):
            shutil.rmtree(stray.path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):  # somebody has begun to write into it
                stray.path.rmdir()
    return gone


def _of_case(path: Path) -> Iterator[Stray]:
    if path.name.startswith((".new-", GONE)):
        if is_abandoned(path):  # else a process is at work in it
            yield Stray(path, "left by a process that was killed", ours=True)
    elif path.name.startswith(".old-"):
        whole = (path.parent / path.name.removeprefix(".old-")).exists()
        yield Stray(path, "the golden that a killed update was replacing", ours=whole)
    elif not path.is_dir():
        yield Stray(path, "a file in no golden's folder")


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
