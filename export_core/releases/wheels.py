"""Wheel files of jax and jaxlib: the release of each, when it was built, and which jaxlib a jax needs."""

import datetime
import email
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

from export_core.base.untrusted import open_regular
from export_core.releases.calendar import Calendar, JaxlibRelease, JaxRelease, date_in_version, version_key
from export_core.releases.errors import ReleaseError

OLDEST = datetime.date(2018, 12, 1)
"""The day of the first jaxlib. An older time stamp means none: builders write 1980 (zip) or 2010 (bazel) instead."""

LARGEST_METADATA = 1 << 22  # The most bytes of a wheel's metadata that are read; jax has 13 kB.


@dataclass(frozen=True)
class Wheel:
    """A wheel of jax or jaxlib."""

    path: Path  # Its path on disk; for a wheel that was read on an index, only its file name.
    name: str  # The package: jax or jaxlib.
    version: str  # The version of the package.
    entry: JaxlibRelease | JaxRelease  # The calendar's entry for a release that has only this wheel.

    @property
    def built(self) -> datetime.date:
        """The day on which this wheel was built. The build date of a release is that of its newest wheel."""
        return self.entry.built

    @property
    def pythons(self) -> tuple[str, ...]:
        """The versions of CPython (``3.12``) that this wheel is for; empty for a wheel of jax."""
        return self.entry.python if isinstance(self.entry, JaxlibRelease) else ()


def read_wheel(path: Path) -> Wheel:
    """Return the facts about a wheel that its file name, time stamps and metadata give.

    Raises `ReleaseError` for a file that is not a wheel, and for a wheel without a known build date: a date is never
    guessed.
    """
    try:
        with open_regular(path, follow=True) as file:
            return read_open_wheel(file, path.name, path=path.resolve(), source=str(path))
    except FileNotFoundError:
        raise ReleaseError(f"{path}: expected a wheel file, found no such file.") from None
    except OSError as error:
        raise ReleaseError(f"{path}: not a wheel: {error}.") from None


def read_open_wheel(file: BinaryIO, name: str, *, path: Path, source: str) -> Wheel:
    """Return the facts about a wheel from its open file, as `read_wheel` does from a path.

    Raises `ReleaseError` as `read_wheel` does.

    Args:
        file: the open file.
        name: the file name of the wheel, which has package, version and tags.
        path: the path to put into the `Wheel` that is returned.
        source: the wheel's path or URL, for messages.
    """
    try:
        package, version, _, tags = parse_wheel_filename(name)
        with zipfile.ZipFile(file) as archive:
            stamps = [datetime.date(*entry.date_time[:3]) for entry in archive.infolist()]
            metadata = next((member for member in archive.namelist() if member.endswith(".dist-info/METADATA")), None)
            text = b""
            if metadata:
                with archive.open(metadata) as member:
                    text = member.read(LARGEST_METADATA)
    except OSError:  # the index, or the disk
        raise
    except Exception as error:  # zipfile and zlib raise about ten types on damaged bytes
        raise ReleaseError(f"{source}: not a wheel: {error}.") from None
    stamped = max((stamp for stamp in stamps if stamp >= OLDEST), default=None)
    # Nightlies name their day; of any other wheel without time stamps the date is not known.
    built = stamped or date_in_version(str(version))
    if built is None:
        raise ReleaseError(
            f"{source}: the build date of this wheel is not known: no file in it has a time stamp, and its version "
            f"{version} names no day, as 0.13.0.dev20261120 does. Pack it again with the day of its build: `wheel "
            f"unpack {name}`, then `SOURCE_DATE_EPOCH=$(date -d YYYY-MM-DD +%s) wheel pack {package}-{version}`."
        )
    if package == "jax":
        return Wheel(path, package, str(version), JaxRelease(built, _minimum_jaxlib(source, text)))
    return Wheel(path, package, str(version), JaxlibRelease(built, pythons_of(tags)))


def pythons_of(tags: Iterable[Tag]) -> tuple[str, ...]:
    """Return the versions of CPython in the tags of a wheel's file name, lowest first."""
    minors = {int(match[1]) for tag in tags if (match := re.fullmatch(r"cp3(\d+)", tag.interpreter))}
    return tuple(f"3.{minor}" for minor in sorted(minors))


def wheels_in(folder: Path) -> tuple[Wheel, ...]:
    """Return the wheels of jax and jaxlib in a folder.

    Raises `ReleaseError` if the folder has no such wheel.
    """
    wheels = [read_wheel(path) for path in sorted(folder.glob("*.whl")) if path.name.startswith(("jax-", "jaxlib-"))]
    if not wheels:
        raise ReleaseError(f"--wheels {folder}: expected a folder with wheels of jax or jaxlib, found none.")
    return tuple(wheels)


def with_wheels(calendar: Calendar, wheels: Iterable[Wheel]) -> Calendar:
    """Return a calendar with the releases of these wheels added. Releases that it has already are unchanged.

    A jaxlib among these wheels is paired with the newest jax among them that works on it, if there is one.
    """
    wheels = list(wheels)
    jaxlib: dict[str, JaxlibRelease] = {}
    jax: dict[str, JaxRelease] = {}
    for wheel in wheels:
        if isinstance(wheel.entry, JaxRelease):
            if wheel.version not in calendar.jax:
                jax[wheel.version] = wheel.entry
        elif wheel.name == "jaxlib" and wheel.version not in calendar.jaxlib:
            # One wheel for each CPython: together they are the release, which the newest of them dates.
            so_far = jaxlib.get(wheel.version, wheel.entry)
            pythons = tuple(sorted({*so_far.python, *wheel.pythons}, key=version_key))
            jaxlib[wheel.version] = JaxlibRelease(max(so_far.built, wheel.built), pythons)
    known, given = calendar.extended(jaxlib, jax), {wheel.version for wheel in wheels if wheel.name == "jax"}
    given_jax = {}
    for version in {wheel.version for wheel in wheels if wheel.name == "jaxlib"}:
        if matching := given.intersection(known.all_matching_jax(version)):
            given_jax[version] = max(matching, key=lambda jax: (known.jax[jax].built, version_key(jax)))
    return replace(known, given_jax={**known.given_jax, **given_jax})


def _minimum_jaxlib(source: str, metadata: bytes) -> str:
    for line in email.message_from_bytes(metadata).get_all("Requires-Dist", []):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        # With a marker, the line is of an extra such as jax[cuda12], which may ask for another jaxlib.
        if requirement.name == "jaxlib" and requirement.marker is None:
            for specifier in requirement.specifier:
                if specifier.operator in (">=", "=="):
                    return specifier.version
    raise ReleaseError(
        f"{source}: expected a jax wheel that names the oldest jaxlib it works with, found no such line in "
        "its metadata. It looks like `Requires-Dist: jaxlib>=0.12.0`."
    )
