"""What a project may not say of a release: what the shipped calendar, or the release's own number, contradicts.

Windows count from build dates, so whoever may date a release decides what is promised. The calendar decides: a project
adds releases, and changes none.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping

from export_core.releases.calendar import (
    Calendar,
    JaxlibRelease,
    JaxRelease,
    date_in_version,
    numbers_of,
    version_key,
)

NIGHTLY_DAYS = 1
"""A nightly is numbered when its build starts, and its files may be stamped after midnight."""


def contradiction(
    shipped: Mapping[str, JaxlibRelease] | Mapping[str, JaxRelease], version: str, entry: JaxlibRelease | JaxRelease
) -> str:
    """Why a project's entry for a release cannot be right, as a sentence; empty where nothing is against it.

    A date that nothing contradicts is believed: that of a source build, or of a release younger than this package.
    Raises `ReleaseError` for text that is no version.
    """
    if isinstance(entry, JaxRelease) and (problem := _wrong_minimum(version, entry.minimum_jaxlib)):
        return problem
    if known := shipped.get(version):
        return _difference("in the calendar of this package", known.built, entry.built)
    number = version_key(version)
    # 0.12.0.1 and 0.12.0.1.0 are one release; as text they would be two, with two dates.
    if spelling := next((name for name in shipped if version_key(name) == number), ""):
        return f"expected the number {spelling}, by which the calendar of this package has this release."
    if (day := date_in_version(version)) and abs((entry.built - day).days) > NIGHTLY_DAYS:
        return _difference("its number says", day, entry.built)
    highest = max(shipped, key=version_key, default=None)
    is_final = not (number.is_prerelease or number.local)
    if highest and is_final and number > version_key(highest) and entry.built < shipped[highest].built:
        return (
            f"expected built: {shipped[highest].built} or later, since {highest} was built then and has a lower "
            f"number, found {entry.built}."
        )
    return ""


def _wrong_minimum(jax: str, minimum: str) -> str:
    """Why no jax can have this minimum jaxlib. Source: "Jax and Jaxlib versioning" in the documentation of jax."""
    found = f"found {minimum} of jax {jax}."
    if version_key(minimum).is_prerelease:
        return f"expected minimum_jaxlib: a released version, as jax has it even before its own release, {found}"
    if numbers_of(minimum) > numbers_of(jax):
        return f"expected minimum_jaxlib: {jax} or lower, since no jax works with a newer jaxlib than itself, {found}"
    return ""


def unreleased_minimums(jaxlibs: Iterable[str], jax: Mapping[str, JaxRelease]) -> Iterator[tuple[str, str]]:
    """Each jax of a project whose minimum is none of these jaxlibs, which are all that are known; with a sentence."""
    known = {version_key(name) for name in jaxlibs}
    for name, entry in jax.items():
        # What is older than all that are known was released before.
        if (minimum := version_key(entry.minimum_jaxlib)) not in known and minimum > min(known, default=minimum):
            yield (
                name,
                "expected minimum_jaxlib: a jaxlib of the calendar, since it is released before the jax that needs it, "
                f"found {entry.minimum_jaxlib}. Correct it, or add that jaxlib.",
            )


def withdrawn_by_project(shipped: Calendar, calendar: Calendar) -> list[str]:
    """The jaxlibs of the shipped calendar that a project's calendar says are withdrawn, oldest build first.

    An index can withdraw a release after this package was made, so a project may say so; no reader is chosen then.
    """
    versions = (version for version in shipped.versions() if calendar.jaxlib[version].yanked)
    return [f"{version} (built {shipped.built(version)})" for version in versions]


def _difference(source: str, expected: datetime.date, found: datetime.date) -> str:
    if expected == found:
        return ""
    return f"expected built: {expected}, as {source}, found {found}. Correct or delete the line."
