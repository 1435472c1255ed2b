"""Which releases were published since a calendar was made? Asked of a package index, or of a folder with wheels."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from export_core.releases.calendar import Calendar, JaxlibRelease, JaxRelease, version_key
from export_core.releases.errors import ReleaseError
from export_core.releases.index import IndexFile, RemoteFile, index_files
from export_core.releases.wheels import Wheel, wheel_of, wheels_in
from export_core.urls import without_credentials

PACKAGES = ("jaxlib", "jax")


@dataclass(frozen=True)
class Measured:
    """What a jaxlib with its jax answers about its formats; the fields are those of `JaxlibRelease`."""

    stablehlo: tuple[str | None, str | None, str | None]
    calling_convention: tuple[int | None, int | None]
    serialization_constant: int | None


@dataclass(frozen=True)
class Seen:
    """What was published: wheels of releases, oldest number first, and those that were withdrawn.

    `yanked` is by package and version, False for one that is not; a folder does not say. `fetched` of `size` bytes came over the
    network.
    """

    source: str
    wheels: tuple[Wheel, ...]
    yanked: Mapping[tuple[str, str], bool | str]
    fetched: int = 0
    size: int = 0


@dataclass(frozen=True)
class Refreshed:
    """Entries that a calendar lacks or has otherwise, and a sentence for each of them."""

    jaxlib: Mapping[str, JaxlibRelease]
    jax: Mapping[str, JaxRelease]
    said: tuple[str, ...]


def seen_in_folder(folder: Path) -> Seen:
    """The releases of the wheels in a folder. Raises `ReleaseError` where there is none of x86-64 Linux, or one has no date."""
    wheels = tuple(wheel for wheel in wheels_in(folder) if _dates(wheel.path.name))
    if not wheels:
        raise ReleaseError(
            f"--wheels {folder}: expected wheels for x86-64 Linux, whose time stamps date a release, found none."
        )
    return Seen(str(folder), wheels, {})


def seen_on_index(index: str, known: Calendar) -> Seen:
    """The releases of an index that `known` lacks, read from the ends of their wheels, and what is withdrawn.

    Left out are releases whose number is below the calendar's oldest, pre-releases, and wheels of CPythons that it has already.
    """
    wheels: list[Wheel] = []
    yanked: dict[tuple[str, str], bool | str] = {}
    fetched = size = 0
    for package in PACKAGES:
        have: Mapping[str, JaxlibRelease | JaxRelease] = known.jaxlib if package == "jaxlib" else known.jax
        for version, files in _by_version(index_files(index, package), have).items():
            reasons = [file.yanked for file in files]
            yanked[package, version] = all(reasons) and reasons[0]
            for file in files:
                if version in have and not _new_python(file.name, have[version]):
                    continue
                remote = RemoteFile(file.url, index=index)
                with contextlib.closing(remote):
                    wheel = wheel_of(
                        cast(BinaryIO, remote), file.name, path=Path(file.name), where=without_credentials(file.url)
                    )
                wheels.append(wheel)
                fetched += remote.fetched
                size += remote.size
    return Seen(without_credentials(index), tuple(wheels), yanked, fetched, size)


def refreshed(known: Calendar, seen: Seen, measure: Callable[[Calendar, str], Measured] | None = None) -> Refreshed:
    """Hold what was seen against a calendar.

    `measure` is asked about each jaxlib that is new, with the calendar that has it. Raises `ReleaseError` for a release of the
    calendar whose wheels say another day, or another oldest jaxlib: a known release does not change. Wheels for CPythons that it did not
    have yet are added, and leave its day as it is, also where they were built later.
    """
    jaxlib: dict[str, JaxlibRelease] = {}
    jax: dict[str, JaxRelease] = {}
    for (package, version), wheels in _grouped(seen.wheels).items():
        if package == "jaxlib":
            jaxlib[version] = _jaxlib(known.jaxlib.get(version), wheels)
        else:
            jax[version] = _jax(known.jax.get(version), wheels)
    for (package, version), reason in seen.yanked.items():
        if package == "jaxlib" and (entry := jaxlib.get(version) or known.jaxlib.get(version)):
            jaxlib[version] = msgspec.structs.replace(entry, yanked=reason)
        elif package == "jax" and (other := jax.get(version) or known.jax.get(version)):
            jax[version] = msgspec.structs.replace(other, yanked=reason)
    jaxlib = {version: entry for version, entry in jaxlib.items() if known.jaxlib.get(version) != entry}
    jax = {version: entry for version, entry in jax.items() if known.jax.get(version) != entry}
    whole = known.extended(jaxlib, jax)
    if measure is not None:
        for version in jaxlib:
            if version not in known.jaxlib and version in whole.versions():
                jaxlib[version] = msgspec.structs.replace(jaxlib[version], **vars(measure(whole, version)))
    latest = {
        version: max(wheel.built for wheel in wheels)
        for (package, version), wheels in _grouped(seen.wheels).items()
        if package == "jaxlib"
    }
    said = [
        _told("jaxlib", version, known.jaxlib.get(version), entry) + _late(entry, latest.get(version))
        for version, entry in jaxlib.items()
    ]
    said += [_told("jax", version, known.jax.get(version), entry) for version, entry in jax.items()]
    return Refreshed(jaxlib, jax, tuple(said))


def _by_version(
    files: Iterable[IndexFile], have: Mapping[str, JaxlibRelease | JaxRelease]
) -> dict[str, list[IndexFile]]:
    """The wheels that date a release, by its version, oldest number first."""
    oldest = min(map(version_key, have), default=Version("0"))
    found: dict[str, list[IndexFile]] = {}
    for file in files:
        if _dates(file.name):
            version = parse_wheel_filename(file.name)[1]
            if version > oldest and not version.is_prerelease:
                found.setdefault(str(version), []).append(file)
    return dict(sorted(found.items(), key=lambda each: version_key(each[0])))


def _dates(name: str) -> bool:
    """Whether this is a wheel that dates its release: one for x86-64 Linux, or for any machine."""
    try:
        tags = parse_wheel_filename(name)[3]
    except InvalidWheelFilename:
        return False
    return any(tag.platform == "any" or ("linux" in tag.platform and tag.platform.endswith("x86_64")) for tag in tags)


def _new_python(name: str, entry: JaxlibRelease | JaxRelease) -> bool:
    if isinstance(entry, JaxRelease):
        return False
    found = {tag.interpreter for tag in parse_wheel_filename(name)[3]}
    return not found <= {f"cp{python.replace('.', '')}" for python in entry.python}


def _grouped(wheels: Iterable[Wheel]) -> dict[tuple[str, str], list[Wheel]]:
    found: dict[tuple[str, str], list[Wheel]] = {}
    for wheel in sorted(wheels, key=lambda wheel: version_key(wheel.version)):
        found.setdefault((wheel.name, wheel.version), []).append(wheel)
    return found


def _jaxlib(known: JaxlibRelease | None, wheels: list[Wheel]) -> JaxlibRelease:
    entry = known or JaxlibRelease(max(wheel.built for wheel in wheels))
    counted = [wheel for wheel in wheels if not entry.python or {*wheel.pythons} <= {*entry.python}]
    found = max((wheel.built for wheel in counted), default=entry.built)
    # Some of its wheels may be older than the one that dated it.
    if found > entry.built or {*entry.python} <= {python for wheel in counted for python in wheel.pythons}:
        _same("jaxlib", counted, "built", entry.built, found)
    pythons = {*(known.python if known else ()), *(python for wheel in wheels for python in wheel.pythons)}
    return msgspec.structs.replace(entry, python=tuple(sorted(pythons, key=version_key)))


def _jax(known: JaxRelease | None, wheels: list[Wheel]) -> JaxRelease:
    built, minimum = max(wheel.built for wheel in wheels), wheels[0].minimum_jaxlib
    entry = known or JaxRelease(built, minimum)
    _same("jax", wheels, "built", entry.built, built)
    _same("jax", wheels, "with the oldest jaxlib", entry.minimum_jaxlib, minimum)
    return entry


def _same(package: str, wheels: list[Wheel], what: str, expected: object, found: object) -> None:
    if expected != found:
        names = ", ".join(wheel.path.name for wheel in wheels)
        raise ReleaseError(
            f"{package} {wheels[0].version}: expected {what} {expected}, as the calendar says, found {what} {found} in {names}. A release "
            "that is known does not change: these wheels are not that release, or the calendar is wrong. Nothing was written."
        )


def _late(entry: JaxlibRelease, latest: datetime.date | None) -> str:
    if latest is None or latest <= entry.built:
        return ""
    return f", built up to {latest}: its day stays {entry.built}"


def _told(
    package: str, version: str, before: JaxlibRelease | JaxRelease | None, now: JaxlibRelease | JaxRelease
) -> str:
    if before is None:
        words = [f"built {now.built}"]
    else:
        words = []
        if isinstance(before, JaxlibRelease) and isinstance(now, JaxlibRelease) and before.python != now.python:
            words.append(f"wheels for CPython {', '.join(sorted({*now.python} - {*before.python}, key=version_key))}")
        if before.yanked and not now.yanked:
            words.append("no longer withdrawn")
    if now.yanked and (before is None or before.yanked != now.yanked):
        words.append("withdrawn" + (f": {now.yanked}" if isinstance(now.yanked, str) else ", no reason given"))
    return f"{'new' if before is None else 'changed'}  {package} {version}  {', '.join(words)}"
