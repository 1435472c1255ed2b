"""The inventory of environments in the cache folder: their sizes, who uses them, which can be removed."""

from __future__ import annotations

import datetime
import fnmatch
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock

from export_core.readers.build import environments_folder, size_of
from export_core.readers.errors import UnknownEnvironment
from export_core.readers.installed import READY
from export_core.readers.locks import exclusive_lock, last_used


@dataclass(frozen=True)
class CachedEnvironment:
    """One folder of the cache.

    `kind` is ``reader`` or ``writer``; `plugin` is empty for a CPU, else such as ``libtpu`` or ``cuda12-run``. `size`
    is in bytes, of files that are hard links into uv's cache, so that removing them may free less. `is_built` is false
    for what a killed build left behind. `packages` are those that a policy adds to its readers.
    """

    folder: Path
    kind: str
    jaxlib: str
    plugin: str
    size: int
    last_used: datetime.date
    in_use: bool
    is_built: bool
    packages: tuple[str, ...] = ()


def cached_environments() -> list[CachedEnvironment]:
    """All of them, the most recently used first."""
    environments = map(_describe, _folders())
    return sorted(environments, key=lambda cached: (cached.last_used, cached.folder.name), reverse=True)


def to_clean(
    environments: list[CachedEnvironment], today: datetime.date, older_than: int | None
) -> list[CachedEnvironment]:
    """Those that were unused for this many days (None: all), and what killed builds left. Never one that is in use."""
    return [
        cached
        for cached in environments
        if not cached.in_use
        and (older_than is None or not cached.is_built or (today - cached.last_used).days >= older_than)
    ]


def named(environments: Sequence[CachedEnvironment], names: Sequence[str]) -> list[CachedEnvironment]:
    """Those whose folder has one of these names, which may be globs. Raises `UnknownEnvironment` for a name of none."""
    matching = {name: [one for one in environments if fnmatch.fnmatchcase(one.folder.name, name)] for name in names}
    if unknown := [name for name, found in matching.items() if not found]:
        raise UnknownEnvironment(
            f"{', '.join(unknown)}: no environment has this name in {environments_folder()}. "
            "`jaxexport environments list` shows all, each with its folder."
        )
    chosen = [one for found in matching.values() for one in found]
    return list({one.folder: one for one in chosen}.values())


def remove(environment: CachedEnvironment) -> bool:
    """Remove a folder. False when somebody uses or builds it just now."""
    folder = environment.folder
    try:
        # Both locks: that of builders, and that of runs. Neither is waited for: an environment in use is left alone.
        with filelock.FileLock(f"{folder}.lock", timeout=0), exclusive_lock(folder, create=True) as is_unused:
            if not is_unused:
                return False
            # First of all: half of an environment must not count as built.
            (folder / READY).unlink(missing_ok=True)
            shutil.rmtree(folder)
    except filelock.Timeout:
        return False
    return True


def _folders() -> Iterator[Path]:
    root = environments_folder()
    if root.is_dir():
        yield from (path for path in root.iterdir() if path.is_dir())


def _is_being_built(folder: Path) -> bool:
    try:
        with filelock.FileLock(f"{folder}.lock", timeout=0):
            return False
    except filelock.Timeout:
        return True


def _describe(folder: Path) -> CachedEnvironment:
    name = folder.name.rsplit("-", 1)[0]
    kind, _, rest = name.partition("-")
    jaxlib, _, plugin = rest.partition("-")
    with exclusive_lock(folder) as is_unused:
        in_use = not is_unused or _is_being_built(folder)
    try:
        ready = json.loads((folder / READY).read_bytes())
        size, is_built = ready.get("size"), True
        packages = tuple(ready.get("packages", ()))
    except (OSError, ValueError):
        size, is_built, packages = None, False, ()
    return CachedEnvironment(
        folder,
        {"jaxlib": "reader"}.get(kind, kind),
        jaxlib,
        plugin,
        size_of(folder) if size is None else size,
        last_used(folder),
        in_use,
        is_built,
        packages,
    )
