"""Refreshing the calendar: releases that were published since it was made, from an index or a folder with wheels."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from export_core.base.escaping import without_credentials
from export_core.releases.calendar import Calendar, JaxlibRelease, JaxRelease, StableHloVersions, version_key
from export_core.releases.errors import ReleaseError
from export_core.releases.index import IndexFile, RemoteFile, index_files
from export_core.releases.wheels import Wheel, read_open_wheel, wheels_in

PACKAGES = ("jaxlib", "jax")


@dataclass(frozen=True)
class Published:
    """What was published: wheels of releases, oldest number first, and those that were withdrawn.

    `yanked` is by package and version, False for one that is not; a folder does not say. `fetched` of `size` bytes came
    over the network.
    """

    source: str
    wheels: tuple[Wheel, ...]
    yanked: Mapping[tuple[str, str], bool | str]
    fetched: int = 0
    size: int = 0


@dataclass(frozen=True)
class CalendarUpdate:
    """Entries that a calendar lacks or has with other content, and a line for people about each of them."""

    jaxlib: Mapping[str, JaxlibRelease]
    jax: Mapping[str, JaxRelease]
    changes: tuple[str, ...]


def published_in_folder(folder: Path) -> Published:
    """The releases of the wheels in a folder.

    Raises `ReleaseError` where there is no wheel for x86-64 Linux, or one has no date.
    """
    wheels = tuple(wheel for wheel in wheels_in(folder) if _dates_its_release(wheel.path.name))
    if not wheels:
        raise ReleaseError(
            f"--wheels {folder}: expected wheels for x86-64 Linux, whose time stamps date a release, found none."
        )
    return Published(str(folder), wheels, {})


def published_on_index(index: str, known: Calendar) -> Published:
    """The releases of an index that `known` lacks, read from the ends of their wheels, and what is withdrawn.

    Left out are releases whose number is below the calendar's oldest, pre-releases, and wheels of CPythons that it has
    already.
    """
    wheels: list[Wheel] = []
    yanked: dict[tuple[str, str], bool | str] = {}
    fetched = size = 0
    for package in PACKAGES:
        entries: Mapping[str, JaxlibRelease | JaxRelease] = known.jaxlib if package == "jaxlib" else known.jax
        for version, files in _by_version(index_files(index, package), entries).items():
            # An index withdraws files, not releases: a release is withdrawn when all its files are.
            reasons = [file.yanked for file in files]
            yanked[package, version] = all(reasons) and reasons[0]
            for file in files:
                if version in entries and not _is_for_new_python(file.name, entries[version]):
                    continue
                # Only the ends are read, where a zip file has its list: 1.6 MB of 21 wheels with 1.6 GB.
                with contextlib.closing(RemoteFile(file.url, index=index)) as remote:
                    source = without_credentials(file.url)
                    wheels.append(
                        read_open_wheel(cast(BinaryIO, remote), file.name, path=Path(file.name), source=source)
                    )
                fetched += remote.fetched
                size += remote.size
    return Published(without_credentials(index), tuple(wheels), yanked, fetched, size)


def calendar_update(
    known: Calendar, published: Published, measure: Callable[[Calendar, str], StableHloVersions] | None = None
) -> CalendarUpdate:
    """Compare what was published with a calendar.

    `measure` is called for each jaxlib that is new, with the calendar that has it. Raises `ReleaseError` for a release
    of the calendar whose wheels have another day, or another oldest jaxlib: a known release does not change. Wheels for
    CPythons that it did not have yet are added, and leave its day as it is, also where they were built later.
    """
    wheels_of = _by_release(published.wheels)
    jaxlib, jax = _merged_entries(known, wheels_of, published.yanked)
    if measure is not None:
        extended = known.extended(jaxlib, jax)
        for version in jaxlib:
            # Not in versions(): withdrawn, or without a jax, so that it cannot be installed.
            if version not in known.jaxlib and version in extended.versions():
                jaxlib[version] = msgspec.structs.replace(jaxlib[version], stablehlo=measure(extended, version))
    changes = [
        _change_line("jaxlib", version, known.jaxlib.get(version), entry)
        + _later_wheels(entry, wheels_of.get(("jaxlib", version), []))
        for version, entry in sorted(jaxlib.items(), key=lambda item: item[1].built)
    ]
    changes += [
        _change_line("jax", version, known.jax.get(version), entry)
        for version, entry in sorted(jax.items(), key=lambda item: item[1].built)
    ]
    return CalendarUpdate(jaxlib, jax, tuple(changes))


def _merged_entries(
    known: Calendar, wheels_of: Mapping[tuple[str, str], list[Wheel]], yanked: Mapping[tuple[str, str], bool | str]
) -> tuple[dict[str, JaxlibRelease], dict[str, JaxRelease]]:
    """The entries of jaxlib and of jax that are new, or not as the calendar has them."""
    jaxlib: dict[str, JaxlibRelease] = {}
    jax: dict[str, JaxRelease] = {}
    for (package, version), wheels in wheels_of.items():
        if package == "jaxlib":
            jaxlib[version] = _jaxlib_entry(known.jaxlib.get(version), wheels)
        else:
            jax[version] = _jax_entry(known.jax.get(version), wheels)
    for (package, version), reason in yanked.items():
        if package == "jaxlib" and (entry := jaxlib.get(version) or known.jaxlib.get(version)):
            jaxlib[version] = msgspec.structs.replace(entry, yanked=reason)
        elif package == "jax" and (jax_entry := jax.get(version) or known.jax.get(version)):
            jax[version] = msgspec.structs.replace(jax_entry, yanked=reason)
    return (
        {version: entry for version, entry in jaxlib.items() if known.jaxlib.get(version) != entry},
        {version: entry for version, entry in jax.items() if known.jax.get(version) != entry},
    )


def _by_version(
    files: Iterable[IndexFile], entries: Mapping[str, JaxlibRelease | JaxRelease]
) -> dict[str, list[IndexFile]]:
    """The wheels that date a release, by its version, oldest number first."""
    oldest = min(map(version_key, entries), default=Version("0"))
    by_version: dict[str, list[IndexFile]] = {}
    for file in files:
        if _dates_its_release(file.name):
            version = parse_wheel_filename(file.name)[1]
            if version > oldest and not version.is_prerelease:
                by_version.setdefault(str(version), []).append(file)
    return {version: by_version[version] for version in sorted(by_version, key=version_key)}


def _dates_its_release(name: str) -> bool:
    """Whether this is a wheel that dates its release: one for x86-64 Linux, or for any machine."""
    try:
        tags = parse_wheel_filename(name)[3]
    except InvalidWheelFilename:
        return False
    # The windows count from the x86-64 Linux wheel of a jaxlib; jax has one wheel for every machine.
    return any(tag.platform == "any" or ("linux" in tag.platform and tag.platform.endswith("x86_64")) for tag in tags)


def _is_for_new_python(name: str, entry: JaxlibRelease | JaxRelease) -> bool:
    if isinstance(entry, JaxRelease):
        return False
    interpreters = {tag.interpreter for tag in parse_wheel_filename(name)[3]}
    return not interpreters <= {f"cp{python.replace('.', '')}" for python in entry.python}


def _by_release(wheels: Iterable[Wheel]) -> dict[tuple[str, str], list[Wheel]]:
    """Wheels by package and version, oldest number first."""
    by_release: dict[tuple[str, str], list[Wheel]] = {}
    for wheel in sorted(wheels, key=lambda wheel: version_key(wheel.version)):
        by_release.setdefault((wheel.name, wheel.version), []).append(wheel)
    return by_release


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
    built, minimum = max(wheel.built for wheel in wheels), wheels[0].minimum_jaxlib
    entry = known or JaxRelease(built, minimum)
    _check_unchanged("jax", wheels, "built", entry.built, built)
    _check_unchanged("jax", wheels, "with the oldest jaxlib", entry.minimum_jaxlib, minimum)
    return entry


def _check_unchanged(package: str, wheels: list[Wheel], fact: str, expected: object, found: object) -> None:
    if expected != found:
        names = ", ".join(wheel.path.name for wheel in wheels)
        raise ReleaseError(
            f"{package} {wheels[0].version}: expected {fact} {expected}, as the calendar says, found {fact} {found} in "
            f"{names}. A known release does not change: these wheels are not that release, or the calendar is wrong. "
            "Nothing was written."
        )


def _later_wheels(entry: JaxlibRelease, wheels: list[Wheel]) -> str:
    latest: datetime.date = max((wheel.built for wheel in wheels), default=entry.built)
    return f", with wheels built until {latest}: its build date stays {entry.built}" if latest > entry.built else ""


def _change_line(
    package: str, version: str, before: JaxlibRelease | JaxRelease | None, after: JaxlibRelease | JaxRelease
) -> str:
    parts = [f"built {after.built}"] if before is None else [*_changed_parts(before, after)]
    if after.yanked and (before is None or before.yanked != after.yanked):
        parts.append("withdrawn" + (f": {after.yanked}" if isinstance(after.yanked, str) else ", no reason given"))
    return f"{'new' if before is None else 'changed'}  {package} {version}  {', '.join(parts)}"


def _changed_parts(before: JaxlibRelease | JaxRelease, after: JaxlibRelease | JaxRelease) -> Iterator[str]:
    if isinstance(before, JaxlibRelease) and isinstance(after, JaxlibRelease) and before.python != after.python:
        yield f"wheels for CPython {', '.join(sorted({*after.python} - {*before.python}, key=version_key))}"
    if before.yanked and not after.yanked:
        yield "no longer withdrawn"
