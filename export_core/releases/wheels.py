"""Which release is in this wheel file, when was it built, and which jaxlib does its jax need?"""

from __future__ import annotations

import datetime
import email
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from export_core.releases.calendar import Calendar, JaxlibRelease, JaxRelease, version_key
from export_core.releases.errors import ReleaseError

OLDEST = datetime.date(2018, 12, 1)
"""jaxlib was first published then. Builders that write no time stamps write one from before: 1980 (zip), 2010 (bazel)."""


@dataclass(frozen=True)
class Wheel:
    """A wheel of jax or jaxlib. `minimum_jaxlib` is of a jax wheel; `pythons` are CPython versions (``3.12``).

    `path` is where it lies on disk; of one that was read where it is published, just its file name.
    """

    path: Path
    name: str
    version: str
    built: datetime.date
    pythons: tuple[str, ...] = ()
    minimum_jaxlib: str = ""


def read_wheel(path: Path) -> Wheel:
    """Read a wheel's file name, time stamps and metadata.

    Raises `ReleaseError` for what is no wheel, or one whose build date cannot be known: a date is never guessed.
    """
    try:
        with path.open("rb") as file:
            return wheel_of(file, path.name, path=path.resolve(), where=str(path))
    except FileNotFoundError:
        raise ReleaseError(f"{path}: expected a wheel file, found no such file.") from None
    except OSError as error:
        raise ReleaseError(f"{path}: not a wheel: {error}.") from None


def wheel_of(file: BinaryIO, name: str, *, path: Path, where: str) -> Wheel:
    """The same of a file that is open, and called `name`. `where` is how an error names it."""
    try:
        package, version, _, tags = parse_wheel_filename(name)
        with zipfile.ZipFile(file) as archive:
            stamps = [datetime.date(*entry.date_time[:3]) for entry in archive.infolist()]
            metadata = next((each for each in archive.namelist() if each.endswith(".dist-info/METADATA")), None)
            text = archive.read(metadata) if metadata else b""
    except (InvalidWheelFilename, zipfile.BadZipFile, ValueError) as error:
        raise ReleaseError(f"{where}: not a wheel: {error}.") from None
    stamped = max((stamp for stamp in stamps if stamp >= OLDEST), default=None)
    built = stamped or date_in_version(str(version))
    if built is None:
        raise ReleaseError(
            f"{where}: the build date of this wheel is not known: no file in it has a time stamp, and its version {version} names no "
            "day, as 0.13.0.dev20261120 does. Date the release under `releases:` in the policy file and install it by --wheels."
        )
    minimum = _minimum_jaxlib(where, text) if package == "jax" else ""
    pythons = {match.group(1) for tag in tags if (match := re.fullmatch(r"cp3(\d+)", tag.interpreter))}
    return Wheel(path, package, str(version), built, tuple(f"3.{minor}" for minor in sorted(pythons, key=int)), minimum)


def wheels_in(folder: Path) -> tuple[Wheel, ...]:
    """The jax and jaxlib wheels of a folder. Raises `ReleaseError` where there is none."""
    found = [read_wheel(path) for path in sorted(folder.glob("*.whl")) if path.name.startswith(("jax-", "jaxlib-"))]
    if not found:
        raise ReleaseError(f"--wheels {folder}: expected a folder with wheels of jax or jaxlib, found none there.")
    return tuple(found)


def date_in_version(version: str) -> datetime.date | None:
    """The day that a nightly's version names: 2026-11-20 for ``0.13.0.dev20261120``."""
    number = str(version_key(version).dev)
    try:  # strptime would take fewer digits, and read another day out of them
        return datetime.datetime.strptime(number, "%Y%m%d").date() if len(number) == 8 else None
    except ValueError:
        return None


def with_wheels(calendar: Calendar, wheels: Iterable[Wheel]) -> Calendar:
    """The calendar with the releases of these wheels. A release that it has already keeps its own date."""
    jaxlib: dict[str, JaxlibRelease] = {}
    jax: dict[str, JaxRelease] = {}
    for wheel in wheels:
        if wheel.name == "jax" and wheel.version not in calendar.jax:
            jax[wheel.version] = JaxRelease(wheel.built, wheel.minimum_jaxlib)
        elif wheel.name == "jaxlib" and wheel.version not in calendar.jaxlib:
            other = jaxlib.get(wheel.version, JaxlibRelease(wheel.built, ()))
            pythons = {*other.python, *wheel.pythons}
            ordered = tuple(sorted(pythons, key=lambda python: Version(python)))
            jaxlib[wheel.version] = JaxlibRelease(max(other.built, wheel.built), ordered)
    return calendar.extended(jaxlib, jax)


def _minimum_jaxlib(where: str, metadata: bytes) -> str:
    for line in email.message_from_bytes(metadata).get_all("Requires-Dist", []):
        try:
            needed = Requirement(line)
        except InvalidRequirement:
            continue
        if needed.name == "jaxlib" and needed.marker is None:
            for rule in needed.specifier:
                if rule.operator in (">=", "=="):
                    return rule.version
    raise ReleaseError(
        f"{where}: expected a jax wheel that names the oldest jaxlib it works with, found none in its metadata."
    )
