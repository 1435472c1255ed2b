"""The calendar of releases: which jaxlib and jax exist, when they were built, and which go together."""

from __future__ import annotations

import contextlib
import datetime
import functools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources

import msgspec
from packaging.version import InvalidVersion, Version

from export_core.base.text import close_match, did_you_mean
from export_core.releases.errors import ReleaseError
from export_core.releases.names import Titled

StableHloVersions = tuple[str | None, str | None, str | None]
"""The StableHLO versions of a jaxlib: current, WEEK_4 and WEEK_12; None if not reported or not measured."""


class JaxlibRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published jaxlib."""

    built: datetime.date  # The newest time stamp inside its x86-64 Linux wheel: JAX's windows count from it.
    python: tuple[str, ...] = ("3.12",)  # The versions of CPython that it has wheels for.
    stablehlo: StableHloVersions = (None, None, None)
    """Its current, WEEK_4 and WEEK_12 versions of StableHLO; null where they are not known."""
    yanked: bool | str = False  # Why the index withdrew it; true where it gives no reason.


class JaxRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published release of jax."""

    built: datetime.date  # The day on which it was built.
    minimum_jaxlib: str  # The oldest jaxlib that it imports with.
    yanked: bool | str = False  # Why the index withdrew it; true where it gives no reason.


class RuntimeRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release of a runtime that is not jaxlib, with its measured facts; null where one was not measured."""

    built: datetime.date  # The newest time stamp inside its x86-64 Linux wheel.
    python: tuple[str, ...] = ("3.12",)  # The versions of CPython that it has wheels for.
    stablehlo: str | None = None  # The version of StableHLO that it reads.
    convention: int | None = None  # The highest calling convention of jax.export that it takes; null for any.
    dialects: tuple[str, ...] = ()  # The dialects that it parses beside VHLO and MLIR's own, such as sdy.
    requires: tuple[str, ...] = ()  # What its environment needs beside the requirements of all releases.


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Packages that environments of some releases need in addition to jax and jaxlib."""

    add: tuple[str, ...]  # The packages.
    until: datetime.date | None = None  # For releases built up to this day; null for all.


class CalendarFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of releases: the shipped calendar, or the releases that a project adds to it."""

    jaxlib: dict[str, JaxlibRelease] = {}  # By version: when it was built.
    jax: dict[str, JaxRelease] = {}  # By version: when it was built, the jaxlib it needs.
    requirements: tuple[Requirement, ...] = ()
    """Packages that environments need beside jax and jaxlib; of the shipped calendar only."""


# A run holds a hundred thousand results that name releases, none of which can be part of a reference cycle: `gc=False`.
class Release(msgspec.Struct, Titled, frozen=True, gc=False, kw_only=True):
    """A release that writes or reads: a jaxlib with its jax, or a version of another runtime."""

    jax: str  # The version of its jax; empty for a runtime that is not jaxlib.
    jaxlib: str  # The version of its jaxlib; empty for a runtime that is not jaxlib.
    built: datetime.date  # The day on which its jaxlib, or its runtime, was built.
    runtime: str = ""  # A runtime that is not jaxlib, and its version: `tensorflow==2.21.0`. Empty for jaxlib.
    with_settings: str = ""  # The settings of a jaxlib, such as `[JAX_ENABLE_X64=true]`; empty for none.

    @property
    def label(self) -> str:
        """The name in a table of readers: ``0.12.0.1``, ``tensorflow 2.21.0``."""
        return self.name.replace("==", " ")

    @property
    def pair(self) -> str:
        """The name with both versions, ``0.11.2-jax0.12.0.1``; for another runtime, ``tensorflow==2.21.0``."""
        return self.runtime or f"{self.jaxlib}-jax{self.jax}{self.with_settings}"

    @property
    def date_order(self) -> tuple[str, datetime.date, str, str]:
        """The sort key of releases: jaxlib, then each other runtime, by build date, name and jax."""
        return self.family, self.built, self.name, self.jax


def with_several_jax(releases: Iterable[Release]) -> set[str]:
    """Return the names of those jaxlib releases that occur in `releases` with more than one version of jax."""
    jaxlibs = Counter(name for name, _ in {(release.name, release.jax) for release in releases})
    return {name for name, count in jaxlibs.items() if count > 1}


def titles_among(releases: Collection[Release]) -> dict[Release, str]:
    """Return the name of each release for people, with its jax only if its jaxlib occurs with several jax.

    Names are such as ``jaxlib 0.12.0 (jax 0.12.0.1)`` and ``jaxlib 0.12.0``.
    """
    several = with_several_jax(releases)
    return {one: f"{one.title} (jax {one.jax})" if one.name in several else one.title for one in releases}


@functools.cache
def version_key(version: str) -> Version:
    """Return the sort key of a version such as ``0.12.0.1`` or ``0.13.0.dev20261101``.

    Releases are ordered by date; the key decides among releases of the same day, and which jax fits which jaxlib.
    Raises `ReleaseError` for text that is not a version.
    """
    try:
        return Version(version)
    except InvalidVersion:
        raise ReleaseError(f"Expected a version such as 0.12.0.1 or 0.13.0.dev20261101, found {version!r}.") from None


@functools.cache
def numbers_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, which jax compares to decide whether it works with a jaxlib.

    0.13.0.dev20261120 and 0.13.0rc1 have the numbers of 0.13.0. Source: `check_jaxlib_version` in jax/_src/lib, which
    compares the dotted numbers that a version begins with.
    """
    return version_key(version).release


def date_in_version(version: str) -> datetime.date | None:
    """Return the day in a nightly's version, such as 2026-11-20 for ``0.13.0.dev20261120``; None for any other."""
    digits = str(version_key(version).dev)
    try:  # strptime accepts fewer digits, and reads them as another day
        return datetime.datetime.strptime(digits, "%Y%m%d").date() if len(digits) == 8 else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Calendar:
    """An immutable calendar of the releases known on a day. `as_of` returns that of an earlier day."""

    jaxlib: Mapping[str, JaxlibRelease]  # Each jaxlib, by version.
    jax: Mapping[str, JaxRelease]  # Each jax, by version.
    requirements: tuple[Requirement, ...] = ()  # What environments of some releases need beside jax and jaxlib.
    day: datetime.date | None = None  # The calendar ends on this day; None for all known releases.
    runtimes: Mapping[str, Mapping[str, RuntimeRelease]] = field(default_factory=dict)
    """Releases of other runtimes that a project adds to those that ship, by runtime and version."""
    given_jax: Mapping[str, str] = field(default_factory=dict)
    """By jaxlib: the jax whose wheel was given with that of the jaxlib."""
    hidden: Mapping[str, datetime.date] = field(default_factory=dict, compare=False)
    """The build dates of releases that were built after `day`, by name, such as ``jaxlib 0.12.0``, for messages."""

    def versions(self) -> list[str]:
        """Return all jaxlib versions that can be installed, oldest build first.

        A version that is yanked, or that no jax works on, is left out.
        """
        return list(self._versions)

    @functools.cached_property
    def _versions(self) -> Sequence[str]:  # asked for hundreds of times in a run
        usable = [
            version for version, entry in self.jaxlib.items() if not entry.yanked and self._installable_jax(version)
        ]
        return sorted(usable, key=lambda version: (self.jaxlib[version].built, version_key(version)))

    def newest(self) -> str:
        """Return the version of the jaxlib that was built last. Raises `ReleaseError` if no release is known."""
        versions = self.versions()
        if not versions:
            raise ReleaseError(f"No jaxlib release is known on {self.day}. Choose a later --as-of.")
        return versions[-1]

    def today(self) -> datetime.date:
        """Return today's date in UTC.

        Raises:
            ReleaseError: a known jaxlib was built later, and would be left out.
        """
        day = datetime.datetime.now(tz=datetime.UTC).date()
        last = max(self.jaxlib, key=lambda version: self.jaxlib[version].built, default=None)
        if last is None or self.jaxlib[last].built <= day:
            return day
        raise ReleaseError(
            f"The clock of this machine says {day}, and jaxlib {last} was built on {self.jaxlib[last].built}. Correct "
            "the clock or that date, or name the day with --as-of."
        )

    def built(self, jaxlib: str) -> datetime.date:
        """Return the day on which a jaxlib was built.

        Raises `ReleaseError` if the calendar lacks this jaxlib.
        """
        return self._entry(jaxlib).built

    def pythons(self, jaxlib: str) -> tuple[str, ...]:
        """Return the versions of CPython (``3.12``) for which a jaxlib has wheels."""
        return self._entry(jaxlib).python

    def release(self, jaxlib: str) -> Release:
        """Return the release of a jaxlib with the jax in `given_jax`, or else the newest jax that works on it.

        A jax works on every jaxlib from its minimum jaxlib up to its own version. Raises `ReleaseError` if no jax works
        on this jaxlib.
        """
        entry = self._entry(jaxlib)
        # Several can match: 0.4.27 to 0.4.30 all go with jax 0.4.30, the newest that accepts them.
        matching = self._installable_jax(jaxlib)
        if not matching:
            raise ReleaseError(
                f"No jax release goes with jaxlib {jaxlib}: expected one with minimum jaxlib <= {jaxlib} and version "
                f">= {jaxlib}. Name a folder with the wheel of such a jax with --wheels, or add the release under "
                "`releases:` in the policy file."
            )
        given = [version for version in matching if version == self.given_jax.get(jaxlib)]
        newest = max(given or matching, key=lambda version: (self.jax[version].built, version_key(version)))
        return Release(jaxlib=jaxlib, jax=newest, built=entry.built)

    def pair(self, jaxlib: str, jax: str) -> Release:
        """Return the release that pairs this jaxlib with this jax.

        Raises `ReleaseError` for an unknown version, and for a pair that jax refuses when it is imported. Source:
        `check_jaxlib_version` in jax/_src/lib.
        """
        built = self.built(jaxlib)
        if jax not in self.jax:
            if later := self.built_later(self.hidden.get(f"jax {jax}")):
                raise ReleaseError(f"jax {jax} is not in the release calendar{later}")
            usable = (version for version, entry in self.jax.items() if not entry.yanked)
            hint = similar_release(jax, sorted(usable, key=lambda name: (self.jax[name].built, version_key(name))))
            raise ReleaseError(
                f"jax {jax} is not in the release calendar{self._as_of()}.{hint} `jaxexport releases "
                "refresh` adds newer ones. Add an unpublished one under `releases:` in the policy file."
            )
        minimum, problem = self.jax[jax].minimum_jaxlib, ""
        if numbers_of(jaxlib) < numbers_of(minimum):
            problem = f"jax {jax} needs jaxlib {minimum} or newer, and refuses an older one when it is imported."
        if numbers_of(jaxlib) > numbers_of(jax):
            problem = "a jaxlib must not be newer than its jax, which refuses it when it is imported. "
            problem += f"Expected jax {jaxlib} or newer."
        if problem:
            raise ReleaseError(f"jaxlib {jaxlib} with jax {jax}: {problem}")
        return Release(jaxlib=jaxlib, jax=jax, built=built)

    def extra_requirements(self, jaxlib: str) -> tuple[str, ...]:
        """Return the pip requirements that an environment of this jaxlib needs in addition to jax and jaxlib."""
        built = self.built(jaxlib)
        return tuple(
            package for rule in self.requirements if rule.until is None or built <= rule.until for package in rule.add
        )

    def as_of(self, day: datetime.date) -> Calendar:
        """Return the calendar as it was on `day`: only releases built by then."""
        all_built = {
            f"{package} {version}": entry.built
            for package, entries in (("jaxlib", self.jaxlib), ("jax", self.jax))
            for version, entry in entries.items()
        }
        return replace(
            self,
            jaxlib={version: entry for version, entry in self.jaxlib.items() if entry.built <= day},
            jax={version: entry for version, entry in self.jax.items() if entry.built <= day},
            day=day,
            hidden={**self.hidden, **{name: built for name, built in all_built.items() if built > day}},
        )

    def extended(self, jaxlib: Mapping[str, JaxlibRelease], jax: Mapping[str, JaxRelease]) -> Calendar:
        """Return this calendar with more releases, such as a nightly.

        Raises `ReleaseError` for text that is not a version.
        """
        for version in (*jaxlib, *jax, *(entry.minimum_jaxlib for entry in jax.values())):
            version_key(version)
        return replace(self, jaxlib={**self.jaxlib, **jaxlib}, jax={**self.jax, **jax})

    def all_matching_jax(self, jaxlib: str) -> list[str]:
        """Return the version of every jax that works on this jaxlib, withdrawn ones included."""
        number = numbers_of(jaxlib)
        if (matching := self._matching_jax.get(number)) is None:
            accepted = self._accepted_jaxlibs
            matching = [version for version, oldest, newest in accepted if oldest <= number <= newest]
            self._matching_jax[number] = matching
        return list(matching)

    @functools.cached_property
    def _matching_jax(self) -> dict[tuple[int, ...], list[str]]:
        """What `all_matching_jax` has found, by the numbers of the jaxlib: a run asks about each one many times."""
        return {}

    @functools.cached_property
    def _accepted_jaxlibs(self) -> Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """Each jax, with the numbers of the oldest and of the newest jaxlib that it accepts."""
        return [(version, numbers_of(jax.minimum_jaxlib), numbers_of(version)) for version, jax in self.jax.items()]

    def _installable_jax(self, jaxlib: str) -> list[str]:
        """Return the version of every jax that works on this jaxlib, without withdrawn ones if there are others."""
        matching = self.all_matching_jax(jaxlib)
        return [version for version in matching if not self.jax[version].yanked] or matching

    def built_later(self, built: datetime.date | None) -> str:
        """Return the end of a message about a release built after the calendar's day; "" for any other."""
        if self.day is None or built is None or built <= self.day:
            return ""
        return f"{self._as_of()}: it was built on {built}. Choose that day or a later one with --as-of."

    def _as_of(self) -> str:
        return f" as of {self.day}" if self.day else ""

    def _entry(self, jaxlib: str) -> JaxlibRelease:
        try:
            return self.jaxlib[jaxlib]
        except KeyError:
            raise ReleaseError(self._unknown(jaxlib)) from None

    def _unknown(self, jaxlib: str) -> str:
        """Return the error message about a jaxlib that the calendar lacks."""
        if not jaxlib.strip():  # between other words, nobody sees it
            return f"expected a jaxlib, such as 0.12.0, found {jaxlib!r}."
        if later := self.built_later(self.hidden.get(f"jaxlib {jaxlib}")):
            return f"jaxlib {jaxlib} is not in the release calendar{later}"
        text = f"jaxlib {jaxlib} is not in the release calendar{self._as_of()}."
        return text + (commas_missing(jaxlib) or self.about_unknown(jaxlib))

    def about_unknown(self, jaxlib: str) -> str:
        """Return the end of an error message about a jaxlib that the calendar lacks: known ones, and how to add it."""
        return about_unknown(jaxlib, {version: str(self.built(version)) for version in self.versions()})


def commas_missing(text: str) -> str:
    """Return a hint to put commas between names of releases, if a text is several names; "" for one name."""
    parts = re.split(r"(?<=\w)(?:\s*;\s*|\s+)(?=\w)", text.partition("[")[0].strip())
    if not parts[1:]:
        return ""
    return f" Separate names by commas ({','.join(parts)}); in the policy file they may also be a list."


def about_unknown(jaxlib: str, known: Mapping[str, str]) -> str:
    """Return the end of an error message about an unknown jaxlib: a similar one, the newest, and how to add it.

    `known` has the build date of each known version, the oldest first.
    """
    versions = [*known]
    oldest = min(versions, key=version_key, default="")
    with contextlib.suppress(ReleaseError):  # text that is no version
        if oldest and version_key(jaxlib) < version_key(oldest):
            begins = f"The calendar begins with {oldest}, built {known[oldest]}"
            return f" {begins}: `jaxexport releases list` shows it."
    newest = f" The newest known is {versions[-1]}, built {known[versions[-1]]}." if versions else ""
    return (
        f"{similar_release(jaxlib, versions)}{newest} `jaxexport releases list` shows all, and `jaxexport releases "
        "refresh` adds those that were published since. Add an unpublished one with its build date under `releases:` "
        "in the policy file."
    )


def similar_release(text: str, known: Sequence[str]) -> str:
    """Return a hint such as "Did you mean '0.12.0'?" at the known release that a text most likely means; "" if none.

    Of the releases with the same first two numbers it is the most similar, or else the newest. By its letters alone,
    0.4.13 is similar to 0.13, but it is years older. `known` has versions, the oldest build first.
    """
    try:
        line = version_key(text).release[:2]
    except ReleaseError:
        return did_you_mean(text, known)
    alike = [version for version in known if version_key(version).release[:2] == line]
    match = close_match(text, alike) or (alike[-1] if alike else "")
    return f" Did you mean {match!r}?" if match else ""


@functools.cache
def load_calendar() -> Calendar:
    """Return the calendar that ships with this package."""
    text = resources.files("export_core.releases").joinpath("data/releases.yaml").read_bytes()
    file = msgspec.yaml.decode(text, type=CalendarFile)
    return Calendar(file.jaxlib, file.jax, file.requirements)
