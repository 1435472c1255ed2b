"""Which environments are in the cache folder, how large are they, who uses them, and which can go?"""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock

from export_core.environments.build import READY, cache_folder
from export_core.environments.locks import last_used, size_of, taken_alone


@dataclass(frozen=True)
class KeptEnvironment:
    """One folder. `kind` says who builds such: ``reader`` or ``writer``; `plugin` is empty for a CPU (``libtpu``, ``cuda12-run``).

    `size` is in bytes; files are hard links into uv's cache, so that less may come free. `used` is the day of its last use; `whole`
    is false for what a killed build left behind.
    """

    folder: Path
    kind: str
    jaxlib: str
    plugin: str
    size: int
    used: datetime.date
    in_use: bool
    whole: bool


def kept_environments() -> list[KeptEnvironment]:
    """All of them, the one that was used last first."""
    found = [_described(folder) for folder in _folders()]
    return sorted(found, key=lambda each: (each.used, each.folder.name), reverse=True)


def to_clean(kept: list[KeptEnvironment], today: datetime.date, older_than: int | None) -> list[KeptEnvironment]:
    """Those that nobody has used for so many days, and what killed builds left; with None, all. Never one that is in use."""
    return [
        each
        for each in kept
        if not each.in_use and (older_than is None or not each.whole or (today - each.used).days >= older_than)
    ]


def remove(environment: KeptEnvironment) -> bool:
    """Remove a folder, unless somebody uses or builds it just now. Answers whether it is gone."""
    folder = environment.folder
    try:
        with filelock.FileLock(f"{folder}.lock", timeout=0), taken_alone(folder, create=True) as alone:
            if not alone:
                return False
            # Nobody may take half of it for a whole one.
            (folder / READY).unlink(missing_ok=True)
            shutil.rmtree(folder)
    except filelock.Timeout:
        return False
    return True


def _folders() -> Iterator[Path]:
    root = cache_folder() / "environments"
    if root.is_dir():
        yield from (path for path in root.iterdir() if path.is_dir())


def _being_built(folder: Path) -> bool:
    try:
        with filelock.FileLock(f"{folder}.lock", timeout=0):
            return False
    except filelock.Timeout:
        return True


def _described(folder: Path) -> KeptEnvironment:
    name = folder.name.rsplit("-", 1)[0]
    kind, _, rest = name.partition("-")
    jaxlib, _, plugin = rest.partition("-")
    with taken_alone(folder) as alone:
        in_use = not alone or _being_built(folder)
    try:
        size = json.loads((folder / READY).read_bytes()).get("size")
        whole = True
    except (OSError, ValueError):
        size, whole = None, False
    if size is None:
        size = size_of(folder)
    kinds = {"jaxlib": "reader"}
    return KeptEnvironment(folder, kinds.get(kind, kind), jaxlib, plugin, size, last_used(folder), in_use, whole)
