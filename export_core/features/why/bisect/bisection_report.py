"""What a bisection finds: each release that was run, the edge, what changed there; as data, and as text."""

import datetime
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from export_core.base.layout import aligned, wrapped
from export_core.base.text import first_line, plain_text, plural
from export_core.judge import Result
from export_core.judge.causes import failure_signature
from export_core.matrix import Verdict
from export_core.matrix.result import WriterOf, release_name
from export_core.readers.installed import metadata_of
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Calendar, Release
from export_core.releases.calendar import version_key
from export_core.releases.runtimes import runtime_of

FOUND, NOT_REPRODUCED, NO_ANSWER = 0, 1, 3  # Exit codes; 2 is bad input.
_LABEL = 10
_REPOSITORY = "https://github.com/jax-ml/jax"
_COMMIT = re.compile(r"^_git_hash: .* = '([0-9a-f]{40})'$", re.MULTILINE)


IsBad = bool | None
"""Whether a release fails as the bad end does; None if it shows nothing."""


class BisectBy(StrEnum):
    """The properties of a result by which a bisection tells whether two results are alike."""

    VERDICT = "verdict"  # By the verdict alone.
    MESSAGE = "message"  # By verdict, stage, signal, and the message without numbers, addresses and quoted names.
    NUMBERS = "numbers"  # By the largest error, in units of the noise that the writer measured.

    def size(self, result: Result) -> float | None:
        """Return the error of a result in units of noise; None if there is none, or if `self` is not NUMBERS."""
        if self is not BisectBy.NUMBERS or not result.verdict.is_compared:
            return None
        # A result has no number that JSON has not: infinity, and an error where there must be none.
        error = result.max_noise_error
        return math.inf if error is None and result.verdict is Verdict.NUMERICS else error

    def label(self, result: Result) -> str:
        """Return the class of a result: its verdict or failure signature as text. Results of a class are alike."""
        if result.verdict.works or self is BisectBy.VERDICT:
            return str(result.verdict)
        return str(failure_signature(result))


class TriedRelease(msgspec.Struct, frozen=True):
    """The result of the cell in one of the releases in which it was run."""

    reader: Release  # The release.
    stage: Stage  # How far the cell got.
    verdict: Verdict  # What happened.
    message: str  # What happened in words.
    label: str  # The class of what happened: releases that are alike have the same class.
    size: float | None  # The error in units of noise, if numbers are compared.
    is_bad: IsBad  # Whether it is like the reader that was asked about; null if it shows nothing.


class ChangedPart(msgspec.Struct, frozen=True):
    """A package, or StableHLO, with different versions in the last good and the first bad release."""

    name: str  # jax, jaxlib or StableHLO.
    good: str  # Its version in the last good release; empty if the calendar does not have it.
    bad: str  # Its version in the first bad release.


class CommitsLink(msgspec.Struct, frozen=True):
    """A link to the commits of jax or jaxlib between two releases, or to the XLA of one."""

    name: str  # What the commits are of: jax; jaxlib, with its XLA; or the XLA that a jaxlib was built with.
    link: str  # The page.


class Bisection(msgspec.Struct, frozen=True):
    """The record of a bisection that `jaxexport bisect --json` prints."""

    case: str  # The id of the case.
    golden: str  # The golden, `case/writer`.
    writer: WriterOf  # The release that exported it.
    reader: Release  # The release that was asked about.
    platform: str  # The platform of the cells.
    mode: Mode  # run, or compile if the cells were only compiled.
    by: BisectBy  # What makes results alike.
    as_of: datetime.date  # The day: later releases are ignored.
    exit_code: int  # 0 an edge was found, 1 the reader does not fail here, 3 no answer.
    message: str  # Why no edge was found, or what is doubtful about the edge that was found.
    threshold: float | None = None  # The size above which a release is bad, if numbers are compared.
    releases: int = 0  # How many releases there are from one end to the other, both included.
    tried: tuple[TriedRelease, ...] = ()  # The releases in which the cell was run, by build date.
    last_good: Release | None = None  # The last release on the good side of the edge.
    first_bad: Release | None = None
    """The first release on the bad side of the edge. If it is older than `last_good`, the failure ended there."""
    changes: tuple[ChangedPart, ...] = ()  # What differs between these two releases.
    commits: tuple[CommitsLink, ...] = ()  # Links to the commits in between.


def changes_between(good: Release, bad: Release, calendar: Calendar) -> tuple[ChangedPart, ...]:
    """Return which of jax, jaxlib (or another runtime) and StableHLO have different versions in two releases."""

    def stablehlo(release: Release) -> str:
        if release.runtime:
            return runtime_of(release.runtime).release(release.version, calendar).stablehlo or ""
        entry = calendar.jaxlib.get(release.jaxlib)
        return (entry.stablehlo[0] if entry else None) or ""

    parts = (
        ("jax", good.jax, bad.jax),
        (good.family or "jaxlib", good.version, bad.version),
        ("StableHLO", stablehlo(good), stablehlo(bad)),
    )
    return tuple(ChangedPart(*part) for part in parts if part[1] != part[2])


def commits_between(good: Release, bad: Release, folders: Mapping[Release, Path | None]) -> tuple[CommitsLink, ...]:
    """Return links to the commits from the older release to the younger, and to the XLA commit of each jaxlib.

    The commits are known from the tags of published releases, and from what the packages in `folders` record.
    `folders` has the environment folder of each release that has an environment here. Unknown commits are left out.
    """
    names: dict[str, list[str]] = {}
    if good.runtime:
        return ()
    older, younger = sorted((good, bad), key=lambda release: (release.built, version_key(release.jaxlib)))

    def compare(package: str, ends: Sequence[str]) -> None:
        start, end = ends
        if start and end and start != end:
            link = f"{_REPOSITORY}/compare/{start}...{end}"
            names[link] = [*names.get(link, ()), package]

    if older.jax != younger.jax:
        compare("jax", [_tag(release.jax) or _commit(folders.get(release), "jax") for release in (older, younger)])
    if older.jaxlib != younger.jaxlib:
        built_from = {release: _commit(folders.get(release), "jaxlib") for release in (older, younger)}
        # A jaxlib that does not say its commit has that of the jax with the same number.
        compare("jaxlib", [commit or _tag(release.jaxlib) for release, commit in built_from.items()])
        for release, commit in built_from.items():
            if commit:
                names[f"{_REPOSITORY}/tree/{commit}/third_party/xla"] = [f"XLA of {release.title}"]
    return tuple(CommitsLink(" and ".join(parts), link) for link, parts in names.items())


def _tag(version: str) -> str:
    """Return the Git tag of a published release; empty for a nightly, a candidate or a local build, which have none."""
    number = version_key(version)
    return "" if number.is_prerelease or number.local else f"jax-v{version}"


def _commit(folder: Path | None, package: str) -> str:
    """Return the commit that a package in an environment records as its source; empty if it is not known."""
    info = metadata_of(folder, package) if folder else None
    try:
        match = _COMMIT.search((info.parent / package / "version.py").read_text(encoding="utf-8")) if info else None
    except (OSError, UnicodeDecodeError):
        return ""
    return match[1] if match else ""


# --- the text ---------------------------------------------------------------------------------------------------------


def bisect_lines(bisection: Bisection, width: int) -> Iterator[str]:
    """Yield the screen of a bisection, wrapped to `width`; the last line has the answer and the exit code."""
    yield plain_text(f"{bisection.golden} on {bisection.platform}, by {bisection.by}, as of {bisection.as_of}")
    yield ""
    # A row for each run of releases that are alike, next to each other by build date.
    runs = itertools.groupby(bisection.tried, lambda tried: (tried.label, tried.is_bad))
    yield from map(plain_text, aligned((_row(list(run)) for _, run in runs), indent="  "))
    if bisection.tried:
        yield ""
    labelled = list(answer(bisection))
    for label, text in labelled:
        first, text = f"{label:<{_LABEL}} ", plain_text(text)
        # A link stays on one line: it is copied as it is.
        yield from [f"{first}{text}"] if "://" in text else wrapped(text, width, first, _LABEL + 1)
    edge = f": {labelled[0][0]} is {bisection.first_bad.title}" if bisection.first_bad else ""
    word = {FOUND: "FOUND", NOT_REPRODUCED: "NOT REPRODUCED"}.get(bisection.exit_code, "NO ANSWER")
    yield plain_text(f"{word}{edge}. Exit code {bisection.exit_code}.")


def _row(run: Sequence[TriedRelease]) -> tuple[str, str, str]:
    first, last = run[0], run[-1]
    names = [tried.reader.name for tried in run]
    releases = ", ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]} ({len(names)})"
    separator = " to " if len(names) > 2 else ", "
    days = separator.join(dict.fromkeys(str(tried.reader.built) for tried in (first, last)))
    text = str(first.verdict)
    if first.label != text:
        text = f"{first.label.partition(':')[0]}: {first_line(first.message)}".removesuffix(": ")
    sizes = sorted({tried.size for tried in run if tried.size is not None})
    if sizes:
        shown = dict.fromkeys(f"{size:.3g}" for size in (sizes[0], sizes[-1]))
        text += f", {' to '.join(shown)} x noise"
    return releases, days, text


def answer(bisection: Bisection) -> Iterator[tuple[str, str]]:
    """Yield the answer of a bisection as labelled texts: both sides of the edge, what changed, commits, and notes."""
    if bisection.first_bad and bisection.last_good:
        # Where the good side is younger, the failure has ended there. It may also fail in another way.
        began = bisection.last_good.date_order < bisection.first_bad.date_order
        works = not any(tried.reader == bisection.last_good and not tried.verdict.works for tried in bisection.tried)
        bad, good, other = ("first bad", "last good", "before it") if began else ("last bad", "first good", "after it")
        yield bad, release_name(bisection.first_bad)
        yield good if works else other, release_name(bisection.last_good)
        changed = []
        for part in bisection.changes:
            older, younger = (part.good, part.bad) if began else (part.bad, part.good)
            changed.append(f"{part.name} {older or '?'} → {younger or '?'}")
        yield "changed", ", ".join(changed)
        for commits in bisection.commits:
            yield "commits", f"{commits.name}: {commits.link}"
    if bisection.message:
        yield "note", f"{bisection.message.removesuffix('.')}."
    if bisection.first_bad and len(bisection.tried) < bisection.releases:
        yield (
            "note",
            f"{len(bisection.tried)} of {plural(bisection.releases, 'release')} were run, by binary search. A failure "
            "that comes and goes begins in other releases too: --all shows them.",
        )
