"""The environments in the cache folder: their sizes, their use, which can be removed; and the cost of missing ones."""

import datetime
import fnmatch
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock
import msgspec

from export_core.readers.build import environments_folder, exclusive_lock, is_ours, last_used, size_of
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import UnknownEnvironment
from export_core.readers.installed import READY, read_ready
from export_core.readers.placement import Placement, typical


@dataclass(frozen=True)
class CachedEnvironment:
    """One environment in the cache folder."""

    folder: Path
    kind: str  # `reader` or `writer`.
    jaxlib: str
    plugin: str  # Such as `libtpu` or `cuda12-run`; empty for a CPU.
    size: int  # In bytes, of files that are hard links into uv's cache: removing them may free less.
    last_used: datetime.date
    in_use: bool
    is_built: bool  # False if its build was killed and left an incomplete folder.
    packages: tuple[str, ...] = ()  # The requirements that a policy added: its `reader_packages`.


def cached_environments() -> list[CachedEnvironment]:
    """Return all environments that this program has made, the most recently used first.

    A folder in the cache that this program did not make is skipped.
    """
    root = environments_folder()
    environments = [_describe(path) for path in root.iterdir() if is_ours(path)] if root.is_dir() else []
    return sorted(environments, key=lambda cached: (cached.last_used, cached.folder.name), reverse=True)


def to_clean(environments: list[CachedEnvironment], today: datetime.date, older_than: int) -> list[CachedEnvironment]:
    """Return the environments to remove: unused for at least `older_than` days, or left incomplete by a killed build.

    An environment in use is never returned.
    """
    return [
        cached
        for cached in environments
        if not cached.in_use and (not cached.is_built or (today - cached.last_used).days >= older_than)
    ]


def named(environments: Sequence[CachedEnvironment], names: Sequence[str]) -> list[CachedEnvironment]:
    """Return the environments whose folder names match any of `names`, which may be globs.

    Raises `UnknownEnvironment` for a name that matches no environment.
    """
    matching = {name: [one for one in environments if fnmatch.fnmatchcase(one.folder.name, name)] for name in names}
    if unknown := [name for name, matches in matching.items() if not matches]:
        raise UnknownEnvironment(
            f"{', '.join(unknown)}: no environment has this name in {environments_folder()}. "
            "`jaxexport environments list` shows all, each with its folder."
        )
    chosen = [one for matches in matching.values() for one in matches]
    return list({one.folder: one for one in chosen}.values())


def remove(environment: CachedEnvironment) -> bool:
    """Remove the folder of an environment.

    Returns False, and removes nothing, if the environment is being used or built at the moment.
    """
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


def _describe(folder: Path) -> CachedEnvironment:
    # Its name is `jaxlib`, `writer` or a runtime, the release, what is beside it, often nothing, and a hash.
    kind, _, release = folder.name.rsplit("-", 1)[0].partition("-")
    jaxlib, _, plugin = release.partition("-")
    try:
        with filelock.FileLock(f"{folder}.lock", timeout=0), exclusive_lock(folder) as is_unused:
            in_use = not is_unused
    except filelock.Timeout:  # it is being built
        in_use = True
    ready = read_ready(folder)
    return CachedEnvironment(
        folder,
        kind if kind == "writer" else "reader",
        jaxlib if kind in ("jaxlib", "writer") else f"{kind}=={jaxlib}",
        plugin,
        size=size_of(folder) if ready is None or ready.size is None else ready.size,
        last_used=last_used(folder),
        in_use=in_use,
        is_built=ready is not None,
        packages=ready.packages if ready else (),
    )


class EnvironmentsCost(msgspec.Struct, frozen=True):
    """The number of environments that a run needs, how many are built here, and the cost of building the others.

    Sizes are typical ones, and the real cost may be lower: files that environments share take their space once, and uv
    downloads only what its cache lacks.
    """

    needed: int  # Environments that the run needs.
    built: int  # Those of them that are built on this machine.
    megabytes: int  # Disk space of the others.
    download_megabytes: int  # Downloads for the others.
    unmeasured: int = 0  # Those of the others whose size on disk is not known: `megabytes` does not count them.


def expected_cost(environments: ReaderEnvironments, placements: Iterable[Placement]) -> EnvironmentsCost:
    """Return how many environments these readers on their platforms need, how many exist, and the cost of the others.

    Nothing is built or downloaded.
    """
    needed = {environments.folder(placement) or placement: placement for placement in placements}
    missing = [
        typical(placement)
        for folder, placement in needed.items()
        if isinstance(folder, Placement) or not (folder / READY).exists()
    ]
    return EnvironmentsCost(
        needed=len(needed),
        built=len(needed) - len(missing),
        megabytes=sum(one.megabytes or 0 for one in missing),
        download_megabytes=sum(one.download or 0 for one in missing),
        unmeasured=sum(one.megabytes is None for one in missing),
    )
