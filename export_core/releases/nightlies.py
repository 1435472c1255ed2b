"""The nightlies that package indexes have: each by the day in its version, where both jax and jaxlib were published."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from export_core.releases.calendar import Calendar, JaxlibRelease, JaxRelease, date_in_version, version_key
from export_core.releases.index import index_files


def with_nightlies_of(indexes: Iterable[str], calendar: Calendar) -> Calendar:
    """The calendar with the nightlies of these indexes, which are URLs or folders.

    Nothing but the list of files is fetched. Raises `ReleaseError` for an index that does not answer.
    """
    jaxlib: dict[str, JaxlibRelease] = {}
    jax: dict[str, JaxRelease] = {}
    for index in indexes:
        url = index if "://" in index else Path(index).resolve().as_uri()
        published = _nightlies(url, "jax")
        for version, pythons in _nightlies(url, "jaxlib").items():
            built = date_in_version(version)
            if built and version in published and version not in calendar.jaxlib:
                jaxlib[version] = JaxlibRelease(built, tuple(sorted(pythons, key=version_key)))
                # What it really needs is in its metadata: the installer refuses a pair that does not fit.
                jax[version] = JaxRelease(built, version)
    return calendar.extended(jaxlib, jax)


def _nightlies(url: str, package: str) -> dict[str, set[str]]:
    """The versions of a package that name a day, each with the versions of CPython that it has wheels for."""
    nightlies: dict[str, set[str]] = defaultdict(set)
    for file in index_files(url, package):
        try:
            _, version, _, tags = parse_wheel_filename(file.name)
        except InvalidWheelFilename:  # such as a source distribution
            continue
        if file.yanked is False and date_in_version(str(version)):
            matches = (re.fullmatch(r"cp3(\d+)", tag.interpreter) for tag in tags)
            nightlies[str(version)] |= {f"3.{match[1]}" for match in matches if match}
    return nightlies
