"""What a bisection finds, as data, and how it is told: each release that was run, the edge, what changed there."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Sequence

import msgspec

from export_core.base.escaping import plain_text
from export_core.base.layout import aligned, wrapped
from export_core.base.phrases import plural
from export_core.features.why.bisect.changes import ChangedPart, CommitsLink
from export_core.features.why.bisect.criterion import Answer, BisectBy
from export_core.judge.result import ReaderOf, WriterOf, release_name
from export_core.matrix import Verdict
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage

FOUND, NOT_REPRODUCED, NO_ANSWER = 0, 1, 3
"""Exit codes; 2 is bad input."""
_LABEL = 10


class TriedRelease(msgspec.Struct, frozen=True):
    """A release in which the cell was run."""

    reader: ReaderOf
    """The release."""
    stage: Stage
    """How far the cell got."""
    verdict: Verdict
    """What happened."""
    message: str
    """What happened in words."""
    label: str
    """The class of what happened: releases with the same one are alike."""
    size: float | None
    """The error in units of noise, or the figure of the cost, by which it was bisected."""
    is_bad: Answer
    """Whether it is like the reader that was asked about; null where it says nothing."""


class Bisection(msgspec.Struct, frozen=True):
    """What `jaxexport bisect --json` prints."""

    case: str
    """The id of the case."""
    golden: str
    """The golden, `case/writer`."""
    writer: WriterOf
    """The release that exported it."""
    reader: ReaderOf
    """The release that was asked about."""
    platform: str
    """The platform of the cells."""
    mode: Mode
    """run; or compile, where only that was done."""
    by: BisectBy
    """By what results are alike."""
    as_of: datetime.date
    """The day: later releases are ignored."""
    exit_code: int
    """0 an edge was found, 1 the reader does not fail here, 3 no answer."""
    message: str
    """Why no edge was found; of one that was found, what is doubtful about it."""
    figure: str = ""
    """The figure, where it was bisected by cost."""
    threshold: float | None = None
    """The size above which a release is bad, where it was bisected by numbers or cost."""
    releases: int = 0
    """How many releases there are between the two ends, with them."""
    tried: tuple[TriedRelease, ...] = ()
    """The releases in which the cell was run, by build date."""
    last_good: ReaderOf | None = None
    """The last release on the good side of the edge."""
    first_bad: ReaderOf | None = None
    """The first release on the bad side of it. Where it is the older one, the failure ended with `last_good`."""
    changes: tuple[ChangedPart, ...] = ()
    """What is not the same in these two."""
    commits: tuple[CommitsLink, ...] = ()
    """Links to the commits in between."""


def bisect_lines(found: Bisection, width: int) -> Iterator[str]:
    """The lines, wrapped at a width; the last one has the answer and the exit code."""
    by = f"{found.by}, {found.figure}" if found.figure else str(found.by)
    yield plain_text(f"{found.golden} on {found.platform}, by {by}, as of {found.as_of}")
    yield ""
    # A row for each run of releases that are alike, next to each other by build date.
    runs = itertools.groupby(found.tried, lambda tried: (tried.label, tried.is_bad))
    yield from map(plain_text, aligned((_row(found, list(run)) for _, run in runs), indent="  "))
    if found.tried:
        yield ""
    told = list(answer(found))
    for label, text in told:
        first, text = f"{label:<{_LABEL}} ", plain_text(text)
        # A link stays on one line: it is copied as it is.
        yield from [f"{first}{text}"] if "://" in text else wrapped(text, width, first, _LABEL + 1)
    edge = f": {told[0][0]} is jaxlib {found.first_bad.jaxlib}" if found.first_bad else ""
    word = {FOUND: "FOUND", NOT_REPRODUCED: "NOT REPRODUCED"}.get(found.exit_code, "NO ANSWER")
    yield plain_text(f"{word}{edge}. Exit code {found.exit_code}.")


def _row(found: Bisection, run: Sequence[TriedRelease]) -> tuple[str, str, str]:
    first, last = run[0], run[-1]
    names = [each.reader.jaxlib for each in run]
    releases = ", ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]} ({len(names)})"
    separator = " to " if len(names) > 2 else ", "
    days = separator.join(dict.fromkeys(str(each.reader.built) for each in (first, last)))
    text = str(first.verdict)
    if first.label != text:
        message = "".join(f": {line}" for line in first.message.strip().splitlines()[:1])
        text = f"{first.label.partition(':')[0]}{message}"
    sizes = sorted({each.size for each in run if each.size is not None})
    if sizes:
        form = ",.0f" if found.by is BisectBy.COST else ".3g"
        shown = dict.fromkeys(f"{size:{form}}" for size in (sizes[0], sizes[-1]))
        text += f", {' to '.join(shown)} {found.figure or 'x noise'}"
    return releases, days, text


def answer(found: Bisection) -> Iterator[tuple[str, str]]:
    """Labels with texts: the bad side of the edge, the other one, what changed, links, doubts."""
    if found.first_bad and found.last_good:
        # Where the good side is younger, the failure has ended there. It may also fail in another way.
        began = found.last_good.date_order < found.first_bad.date_order
        works = not any(tried.reader == found.last_good and not tried.verdict.works for tried in found.tried)
        bad, good, other = ("first bad", "last good", "before it") if began else ("last bad", "first good", "after it")
        yield bad, release_name(found.first_bad)
        yield good if works else other, release_name(found.last_good)
        changed = []
        for part in found.changes:
            older, younger = (part.good, part.bad) if began else (part.bad, part.good)
            changed.append(f"{part.name} {older or '?'} → {younger or '?'}")
        yield "changed", ", ".join(changed)
        for each in found.commits:
            yield "commits", f"{each.name}: {each.link}"
    if found.message:
        yield "note", f"{found.message.removesuffix('.')}."
    if found.first_bad and len(found.tried) < found.releases:
        yield (
            "note",
            f"{len(found.tried)} of {plural(found.releases, 'release')} were run, by binary search. A failure that "
            "comes and goes has other edges too, which --all shows.",
        )
