"""The environments in the cache folder: their sizes, who uses them, which can be removed; and those still missing.

What the missing ones will take is expected by what is built here: space on the disk, downloads, time.
"""

from __future__ import annotations

import datetime
import fnmatch
import json
import shutil
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import msgspec

from export_core.readers.build import environments_folder, exclusive_lock, last_used, size_of
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import UnknownEnvironment
from export_core.readers.installed import READY
from export_core.readers.placement import Placement


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


class Figures(msgspec.Struct, frozen=True):
    """Of one environment: megabytes on disk, megabytes to download, seconds to build. None is not known."""

    megabytes: float | None = None
    download: float | None = None
    seconds: float | None = None


TYPICAL = {
    "": Figures(530, 140, 7),
    "libtpu": Figures(1270, 355, 25),
    "cuda12": Figures(1050, 340, 22),
    "cuda13": Figures(None, 285, None),
    "cuda12-run": Figures(None, 3365, None),
    "cuda13-run": Figures(None, 2635, None),
}
"""By what an environment has beside jax: see `Placement.name`.

Measured for jaxlib 0.9.2 to 0.12.0.1 on Linux: `jaxexport environments list`, what is announced before a download, and
builds on two cores near an index.
"""


class MissingEnvironment(msgspec.Struct, frozen=True):
    """An environment that is still to be built; its figures are expected ones, None where nobody knows."""

    jaxlib: str
    """The release."""
    jax: str
    """The jax beside it."""
    platform: str
    """The platform of its cells."""
    megabytes: int | None
    """Its size on disk."""
    download_megabytes: int | None
    """What uv downloads for it."""
    seconds: int | None
    """How long building it takes."""


class EnvironmentsCost(msgspec.Struct, frozen=True):
    """How many environments a run needs, how many of them are built here, and what building the others takes.

    Sizes and times are those of environments that are built here, where there are such, else typical ones. The sums
    leave out what is not known. They are upper limits: files that environments share are hard links, which take their
    space once, and uv downloads only what its cache lacks.
    """

    needed: int
    """Environments that the run needs."""
    built: int
    """Those of them that are built on this machine."""
    megabytes: int
    """Disk space of the others."""
    download_megabytes: int
    """Downloads for the others."""
    seconds: int
    """How long building the others takes, one after the other."""
    missing: tuple[MissingEnvironment, ...] = ()
    """The others."""


def expected_cost(environments: ReaderEnvironments, placements: Iterable[Placement]) -> EnvironmentsCost:
    """The cost of the environments of these placements. Nothing is built, and nothing downloaded."""
    needed = {environments.folder(placement) or placement: placement for placement in placements}
    known = _known_here()
    missing = tuple(
        _missing(placement, known)
        for folder, placement in needed.items()
        if isinstance(folder, Placement) or not (folder / READY).exists()
    )
    return EnvironmentsCost(
        needed=len(needed),
        built=len(needed) - len(missing),
        megabytes=sum(one.megabytes or 0 for one in missing),
        download_megabytes=sum(one.download_megabytes or 0 for one in missing),
        seconds=sum(one.seconds or 0 for one in missing),
        missing=missing,
    )


@dataclass(frozen=True)
class _Here:
    """What is known of environments that were built on this machine, by jaxlib and by what is beside it."""

    same: dict[tuple[str, str], Figures]
    alike: dict[str, Figures]


def _known_here() -> _Here:
    records: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for path in environments_folder().glob(f"jaxlib-*/{READY}"):
        _, jaxlib, plugin = f"{path.parent.name.rsplit('-', 1)[0]}-".split("-", 2)
        try:
            records[jaxlib, plugin.removesuffix("-")].append(json.loads(path.read_bytes()))
        except (OSError, ValueError):  # it is being removed
            continue
    alike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (_, plugin), found in records.items():
        alike[plugin] += found
    return _Here(
        {key: _figures(found) for key, found in records.items()},
        {plugin: _figures(found) for plugin, found in alike.items()},
    )


def _figures(records: list[dict[str, Any]]) -> Figures:
    def middle(name: str, unit: float = 1) -> float | None:
        values = [record[name] / unit for record in records if name in record]
        return statistics.median(values) if values else None

    return Figures(megabytes=middle("size", 1e6), seconds=middle("seconds"))


def _missing(placement: Placement, here: _Here) -> MissingEnvironment:
    """The figures of one: of the same release here, else of another one with the same plugin, else typical ones."""
    release, plugin = placement.reader, placement.name
    nearest = [here.same.get((release.jaxlib, plugin)), here.alike.get(plugin), TYPICAL.get(plugin)]

    def figure(name: str) -> int | None:
        values = (getattr(figures, name) for figures in nearest if figures)
        value = next((value for value in values if value is not None), None)
        return None if value is None else round(value)

    return MissingEnvironment(
        release.jaxlib, release.jax, placement.platform, figure("megabytes"), figure("download"), figure("seconds")
    )
