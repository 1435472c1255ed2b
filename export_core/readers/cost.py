"""What the environments of a run cost before they are built: how many are missing, their size on disk, the time."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from export_core.readers.build import environments_folder
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.installed import READY
from export_core.readers.placement import Placement


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
