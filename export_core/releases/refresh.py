"""Refreshing the calendar: releases that were published since it was made, from an index or a folder with wheels."""

import contextlib
import datetime
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from export_core.base.text import without_credentials
from export_core.releases.calendar import Calendar, JaxlibRelease, JaxRelease, StableHloVersions, version_key
from export_core.releases.errors import ReleaseError
from export_core.releases.index import IndexFile, RemoteFile, index_files
from export_core.releases.wheels import Wheel, pythons_of, read_open_wheel, wheels_in

PACKAGES = ("jaxlib", "jax")
Entry = JaxlibRelease | JaxRelease


@dataclass(frozen=True)
class Published:
    """The releases that an index or a folder has: their wheels, lowest version first, and which were withdrawn."""

    source: str  # The index, or the folder.
    wheels: tuple[Wheel, ...]
    yanked: Mapping[tuple[str, str], bool | str]
    """By package and version, why a release was withdrawn, or True; False if it was not. Empty for a folder."""


@dataclass(frozen=True)
class CalendarUpdate:
    """The entries to add to a calendar or to replace in it, and a line for people about each of them."""

    jaxlib: Mapping[str, JaxlibRelease]
    jax: Mapping[str, JaxRelease]
    changes: tuple[str, ...]


def published_in_folder(folder: Path) -> Published:
    """Return the releases of the wheels in a folder.

    Raises `ReleaseError` if there is no wheel for x86-64 Linux, or if the build date of a wheel is not known.
    """
    wheels = tuple(wheel for wheel in wheels_in(folder) if _dates_its_release(wheel.path.name))
    if not wheels:
        raise ReleaseError(
            f"--wheels {folder}: expected wheels for x86-64 Linux, whose time stamps date a release, found none."
        )
    return Published(str(folder), wheels, {})


def published_on_index(index: str, known: Calendar) -> Published:
    """Return the releases of an index that the calendar `known` lacks, and which releases were withdrawn.

    Only the end of each wheel is fetched. Pre-releases, versions below the calendar's lowest, and wheels for known
    versions of CPython are left out.
    """
    wheels: list[Wheel] = []
    yanked: dict[tuple[str, str], bool | str] = {}
    for package in PACKAGES:
        entries: Mapping[str, Entry] = getattr(known, package)
        oldest = min(map(version_key, entries), default=Version("0"))
        files_of: dict[Version, list[IndexFile]] = defaultdict(list)
        for file in index_files(index, package):
            if _dates_its_release(file.name):
                number = parse_wheel_filename(file.name)[1]
                if number > oldest and not number.is_prerelease:
                    files_of[number].append(file)
        for number, files in sorted(files_of.items()):
            # An index withdraws files, not releases: a release is withdrawn when all its files are.
            reasons = [file.yanked for file in files]
            yanked[package, str(number)] = all(reasons) and reasons[0]
            present = entries.get(str(number))
            for file in files:
                if isinstance(present, JaxRelease):
                    continue
                if present and {*pythons_of(parse_wheel_filename(file.name)[3])} <= {*present.python}:
                    continue
                # Only the ends are read, where a zip file has its list: 1.6 MB of 21 wheels with 1.6 GB.
                with contextlib.closing(RemoteFile(file.url, index=index)) as remote:
                    source = without_credentials(file.url)
                    opened = cast(BinaryIO, remote)
                    wheels.append(read_open_wheel(opened, file.name, path=Path(file.name), source=source))
    return Published(without_credentials(index), tuple(wheels), yanked)


def calendar_update(
    known: Calendar, published: Published, measure: Callable[[Calendar, str], StableHloVersions] | None = None
) -> CalendarUpdate:
    """Return the entries that a calendar needs for the published releases.

    `measure` returns the StableHLO versions of a jaxlib; it is called for each new jaxlib, with the calendar that has
    it. Wheels of a known release for another CPython are added, and its build date stays. Raises `ReleaseError` if a
    known release has wheels with another build date or minimum jaxlib, since a release cannot change.
    """
    before: dict[tuple[str, str], Any] = {
        (package, version): entry for package in PACKAGES for version, entry in getattr(known, package).items()
    }
    wheels_of: dict[tuple[str, str], list[Wheel]] = defaultdict(list)
    for wheel in sorted(published.wheels, key=lambda wheel: version_key(wheel.version)):
        wheels_of[wheel.name, wheel.version].append(wheel)
    after: dict[tuple[str, str], Any] = {}
    for release, wheels in wheels_of.items():
        after[release] = (_jaxlib_entry if release[0] == "jaxlib" else _jax_entry)(before.get(release), wheels)
    for release, reason in published.yanked.items():
        if entry := after.get(release) or before.get(release):
            after[release] = msgspec.structs.replace(entry, yanked=reason)
    jaxlib, jax = (
        {name: entry for (of, name), entry in after.items() if of == package and before.get((of, name)) != entry}
        for package in PACKAGES
    )
    if measure is not None:
        extended = known.extended(jaxlib, jax)
        for version in jaxlib:
            # Not in versions(): withdrawn, or without a jax, so that it cannot be installed.
            if version not in known.jaxlib and version in extended.versions():
                jaxlib[version] = msgspec.structs.replace(jaxlib[version], stablehlo=measure(extended, version))
    changes = [
        _change_line(package, version, before.get((package, version)), entry, wheels_of[package, version])
        for package, entries in zip(PACKAGES, (jaxlib, jax), strict=True)
        for version, entry in sorted(entries.items(), key=lambda item: item[1].built)
    ]
    return CalendarUpdate(jaxlib, jax, tuple(changes))


def _dates_its_release(name: str) -> bool:
    """Return whether a file name is that of a wheel by which its release is dated: for x86-64 Linux or any machine."""
    try:
        tags = parse_wheel_filename(name)[3]
    except InvalidWheelFilename:
        return False
    # The windows count from the x86-64 Linux wheel of a jaxlib; jax has one wheel for every machine.
    return any(tag.platform == "any" or ("linux" in tag.platform and tag.platform.endswith("x86_64")) for tag in tags)


def _jaxlib_entry(known: JaxlibRelease | None, wheels: list[Wheel]) -> JaxlibRelease:
    entry = known or JaxlibRelease(max(wheel.built for wheel in wheels))
    # Wheels of a CPython that came later were built later, and say nothing about the day of the release.
    dating = [wheel for wheel in wheels if not entry.python or {*wheel.pythons} <= {*entry.python}]
    built = max((wheel.built for wheel in dating), default=entry.built)
    # Where only some of its wheels are there, they may be older than the one that dated it.
    if built > entry.built or {*entry.python} <= {python for wheel in dating for python in wheel.pythons}:
        _check_unchanged("jaxlib", dating, "built", entry.built, built)
    pythons = {*(known.python if known else ()), *(python for wheel in wheels for python in wheel.pythons)}
    return msgspec.structs.replace(entry, python=tuple(sorted(pythons, key=version_key)))


def _jax_entry(known: JaxRelease | None, wheels: list[Wheel]) -> JaxRelease:
    built, first = max(wheel.built for wheel in wheels), wheels[0].entry
    assert isinstance(first, JaxRelease)
    entry = known or JaxRelease(built, first.minimum_jaxlib)
    _check_unchanged("jax", wheels, "built", entry.built, built)
    _check_unchanged("jax", wheels, "with the oldest jaxlib", entry.minimum_jaxlib, first.minimum_jaxlib)
    return entry


def _check_unchanged(package: str, wheels: list[Wheel], fact: str, expected: object, found: object) -> None:
    if expected != found:
        names = ", ".join(wheel.path.name for wheel in wheels)
        raise ReleaseError(
            f"{package} {wheels[0].version}: expected {fact} {expected}, as the calendar says, found {fact} {found} in "
            f"{names}. A known release does not change: these wheels are not that release, or the calendar is wrong. "
            "Nothing was written."
        )


def _change_line(package: str, version: str, before: Entry | None, after: Entry, wheels: list[Wheel]) -> str:
    parts = []
    if before is None:
        parts.append(f"built {after.built}")
    elif isinstance(before, JaxlibRelease) and isinstance(after, JaxlibRelease) and before.python != after.python:
        parts.append(f"wheels for CPython {', '.join(sorted({*after.python} - {*before.python}, key=version_key))}")
    if before and before.yanked and not after.yanked:
        parts.append("no longer withdrawn")
    if after.yanked and (before is None or before.yanked != after.yanked):
        parts.append("withdrawn" + (f": {after.yanked}" if isinstance(after.yanked, str) else ", no reason given"))
    latest: datetime.date = max((wheel.built for wheel in wheels), default=after.built)
    if latest > after.built:
        parts.append(f"with wheels built until {latest}: its build date stays {after.built}")
    return f"{'new' if before is None else 'changed'}  {package} {version}  {', '.join(parts)}"
