"""What changed between two releases: versions, and links to the commits in between."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from export_core.readers.installed import metadata_of
from export_core.releases import Calendar, Release
from export_core.releases.calendar import version_key

REPOSITORY = "https://github.com/jax-ml/jax"
_COMMIT = re.compile(r"^_git_hash: .* = '([0-9a-f]{40})'$", re.MULTILINE)


class ChangedPart(msgspec.Struct, frozen=True):
    """A part of a release that is not the same in two of them."""

    name: str
    """jax, jaxlib or StableHLO."""
    good: str
    """Its version in the last good release; empty where the calendar does not have it."""
    bad: str
    """Its version in the first bad release."""


class CommitsLink(msgspec.Struct, frozen=True):
    """Where to read what changed."""

    name: str
    """jax; jaxlib, with its XLA; or the commit of XLA that a jaxlib was built with."""
    link: str
    """The page."""


def changes_between(good: Release, bad: Release, calendar: Calendar) -> tuple[ChangedPart, ...]:
    """The parts that are not the same. `good` may be the younger of both."""

    def stablehlo(release: Release) -> str:
        entry = calendar.jaxlib.get(release.jaxlib)
        return (entry.stablehlo[0] if entry else None) or ""

    parts = (
        ("jax", good.jax, bad.jax),
        ("jaxlib", good.jaxlib, bad.jaxlib),
        ("StableHLO", stablehlo(good), stablehlo(bad)),
    )
    return tuple(ChangedPart(*part) for part in parts if part[1] != part[2])


def commits_between(good: Release, bad: Release, folders: Mapping[Release, Path | None]) -> tuple[CommitsLink, ...]:
    """Links to the commits from the older release to the younger one.

    Tags name the commits of releases; a jaxlib says itself from which commit of the same repository it was built, and
    in that commit is a file with the one of XLA. What a release does not say is left out. `folders` are the
    environments of these releases, of those that are built here.
    """
    older, younger = sorted((good, bad), key=lambda release: (release.built, version_key(release.jaxlib)))
    names: dict[str, list[str]] = {}

    def compare(package: str, ends: Sequence[str]) -> None:
        start, end = ends
        if start and end and start != end:
            names.setdefault(f"{REPOSITORY}/compare/{start}...{end}", []).append(package)

    if older.jax != younger.jax:
        compare("jax", [_tag(each.jax) or _commit(folders.get(each), "jax") for each in (older, younger)])
    if older.jaxlib != younger.jaxlib:
        built_from = {each: _commit(folders.get(each), "jaxlib") for each in (older, younger)}
        # A jaxlib that does not say its commit has that of the jax with the same number.
        compare("jaxlib", [commit or _tag(each.jaxlib) for each, commit in built_from.items()])
        for release, commit in built_from.items():
            if commit:
                names[f"{REPOSITORY}/tree/{commit}/third_party/xla"] = [f"XLA of jaxlib {release.jaxlib}"]
    return tuple(CommitsLink(" and ".join(parts), link) for link, parts in names.items())


def _tag(version: str) -> str:
    """The tag of a published release; empty for a nightly, a candidate and a local build, which have none."""
    number = version_key(version)
    return "" if number.is_prerelease or number.local else f"jax-v{version}"


def _commit(folder: Path | None, package: str) -> str:
    """The commit that a package says it was built from; empty where it says none, or there is no environment."""
    info = metadata_of(folder, package) if folder else None
    try:
        match = _COMMIT.search((info.parent / package / "version.py").read_text(encoding="utf-8")) if info else None
    except (OSError, UnicodeDecodeError):
        return ""
    return match[1] if match else ""
