"""What changed between two releases: versions, and links to the commits in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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


Installed = Callable[[Release], Path | None]
"""The folder of the environment of a release, if it is built here."""


def changes_between(good: Release, bad: Release, calendar: Calendar) -> tuple[ChangedPart, ...]:
    """The parts that are not the same. `good` may be the younger of both."""
    parts = (
        ("jax", good.jax, bad.jax),
        ("jaxlib", good.jaxlib, bad.jaxlib),
        ("StableHLO", _stablehlo(good, calendar), _stablehlo(bad, calendar)),
    )
    return tuple(ChangedPart(*part) for part in parts if part[1] != part[2])


def commits_between(good: Release, bad: Release, installed: Installed) -> tuple[CommitsLink, ...]:
    """Links to the commits from the older release to the younger one.

    Tags name the commits of releases; a jaxlib says itself from which commit of the same repository it was built, and
    in that commit is a file with the one of XLA. What a release does not say is left out.
    """
    older, younger = sorted((good, bad), key=lambda release: (release.built, version_key(release.jaxlib)))
    names: dict[str, list[str]] = {}
    if older.jax != younger.jax:
        ends = [_tag(release.jax) or _commit(release, "jax", installed) for release in (older, younger)]
        names.setdefault(_comparison(*ends), []).append("jax")
    if older.jaxlib == younger.jaxlib:
        return _links(names)
    built_from = {release: _commit(release, "jaxlib", installed) for release in (older, younger)}
    # A jaxlib that does not say its commit has that of the jax with the same number.
    ends = [commit or _tag(release.jaxlib) for release, commit in built_from.items()]
    names.setdefault(_comparison(*ends), []).append("jaxlib")
    for release, commit in built_from.items():
        if commit:
            names[f"{REPOSITORY}/tree/{commit}/third_party/xla"] = [f"XLA of jaxlib {release.jaxlib}"]
    return _links(names)


def _comparison(older: str, younger: str) -> str:
    """The page with the commits from one to the other; empty where one of them is not known, or both are the same."""
    return f"{REPOSITORY}/compare/{older}...{younger}" if older and younger and older != younger else ""


def _links(names: Mapping[str, Sequence[str]]) -> tuple[CommitsLink, ...]:
    return tuple(CommitsLink(" and ".join(parts), link) for link, parts in names.items() if link)


def _stablehlo(release: Release, calendar: Calendar) -> str:
    entry = calendar.jaxlib.get(release.jaxlib)
    return (entry.stablehlo[0] if entry else None) or ""


def _tag(version: str) -> str:
    """The tag of a published release; empty for a nightly, a candidate and a local build, which have none."""
    number = version_key(version)
    return "" if number.is_prerelease or number.local else f"jax-v{version}"


def _commit(release: Release, package: str, installed: Installed) -> str:
    """The commit that an installed package says it was built from; empty where it says none."""
    folder = installed(release)
    info = metadata_of(folder, package) if folder else None
    try:
        match = _COMMIT.search((info.parent / package / "version.py").read_text(encoding="utf-8")) if info else None
    except (OSError, UnicodeDecodeError):
        return ""
    return match[1] if match else ""
