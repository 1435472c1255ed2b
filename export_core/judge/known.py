"""Which broken promises are known, and is the list of them still true? Quirks end as known failures do."""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from export_core.environments.placement import Mode
from export_core.judge.result import Judgement, Result
from export_core.matrix import Cell, Verdict
from export_core.policy import KnownFailure, PolicyError, Quirk
from export_core.releases import Windows, promise
from export_core.worker.protocol import Stage


class Scope(NamedTuple):
    """What an entry looks at to say whether a cell is its own; versions are of jaxlib."""

    case: str
    writer: str
    reader: str
    platform: str


def scope_of(result: Result) -> Scope:
    """The scope of a cell that was judged."""
    return Scope(result.case, result.writer.jaxlib, result.reader.jaxlib, result.platform)


def matching_entry(result: Result, known: Sequence[KnownFailure]) -> KnownFailure | None:
    """The entry that lists this cell and says exactly how it fails, or None."""
    scope = scope_of(result)
    return next((entry for entry in known if covers(entry, scope) and _fails_so(entry, result)), None)


def covers(entry: KnownFailure, scope: Scope) -> bool:
    """Whether an entry is about this cell."""
    return (
        any(scope.case == pattern or fnmatch.fnmatchcase(scope.case, pattern) for pattern in entry.cases)
        and any(fnmatch.fnmatchcase(scope.writer, pattern) for pattern in entry.writers)
        and any(fnmatch.fnmatchcase(scope.reader, pattern) for pattern in entry.readers)
        and scope.platform in entry.platforms
    )


def check_width(known: Sequence[KnownFailure], promised: Iterable[Scope]) -> None:
    """Raise `PolicyError` for an entry that covers more promised cells than it may: globs must not excuse what nobody looked at."""
    counts = [0] * len(known)
    for scope in set(promised) if known else ():
        for number, entry in enumerate(known):
            counts[number] += covers(entry, scope)
    for number, (entry, count) in enumerate(zip(known, counts, strict=True)):
        if count > entry.at_most:
            raise PolicyError(
                f"{entry.location or 'policy'}: known_failures[{number}]: expected at most {entry.at_most} promised cells in its globs, "
                f"found {count}. Name cases, writers and readers more exactly, or say `at_most: {count}` and why in `reason`."
            )


def promised_scopes(cells: Iterable[Cell], windows: Windows) -> Iterator[Scope]:
    """The promised cells of a plan."""
    for cell in cells:
        writer = cell.golden.manifest.writer
        if promise(writer.built, cell.reader.built, windows).promised:
            yield Scope(cell.golden.manifest.case, writer.jaxlib, cell.reader.jaxlib, cell.platform)


def stale_entries(
    results: Iterable[Result],
    known: Sequence[KnownFailure],
    as_of: datetime.date,
    *,
    whole: bool,
    quirks: Sequence[Quirk] = (),
) -> list[str]:
    """What is no longer true of the lists, a sentence for each defect.

    `whole`: the run held every golden with its window, so that an entry that met no cell is a leftover. Outside the window only wrong
    numbers break a promise: no other cell there is one that an entry can be about.
    """
    results = list(results)
    platforms = {result.platform for result in results}
    scoped = [
        result for result in results if result.promised or result.judgement in (Judgement.BROKEN, Judgement.KNOWN)
    ]
    problems = []
    for number, entry in enumerate(known):
        what = entry_name("known_failures", number, entry)
        met = [result for result in scoped if covers(entry, scope_of(result))]
        if (width := len({scope_of(result) for result in met})) > entry.at_most:
            problems.append(
                f"{what}: expected at most {entry.at_most} cells that it can excuse, found {width}, wrong numbers outside the window among "
                f"them. Name cases, writers and readers more exactly, or say `at_most: {width}` and why in `reason`."
            )
        if passing := [result for result in met if _passes(entry, result)]:
            problems.append(f"{what}: {len(passing)} of its cells pass now: {_cells(passing)}. Take them off the list.")
        otherwise = [
            result
            for result in met
            if result.judgement in (Judgement.BROKEN, Judgement.KNOWN) and not _fails_so(entry, result)
        ]
        if otherwise:
            first = otherwise[0]
            problems.append(
                f"{what}: {len(otherwise)} of its cells fail in another way: expected {entry.verdict} in stage {entry.stage} with "
                f"{entry.message!r}, found {first.verdict} in stage {first.stage} with {first.message[:200]!r} in {_cells(otherwise)}."
            )
        # A run on other platforms, or as of a day before the entry was made, cannot meet it.
        could_meet = whole and entry.added <= as_of and not platforms.isdisjoint(entry.platforms)
        if could_meet and not met:
            problems.append(f"{what}: matches no promised cell of this run. Delete it.")
    goldens = {
        (result.case, name) for result in results for name in (result.writer.jaxlib, result.golden.split("/")[-1])
    }
    for number, quirk in enumerate(quirks):
        what = entry_name("quirks", number, quirk)
        if whole and quirk.added <= as_of and (quirk.case, quirk.writer) not in goldens:
            problems.append(f"{what}: matches no golden of this run. Delete it.")
    return problems + expired(known, quirks, as_of)


def expired(known: Sequence[KnownFailure], quirks: Sequence[Quirk], as_of: datetime.date) -> list[str]:
    """What has expired as of a day, or begins after it and after today, a sentence each.

    An expired entry goes on excusing its cells: they did not get better by it. One `added` later than the day looked at is about facts
    that stay as they are; one from the future would put its end off.
    """
    tables: tuple[tuple[str, Sequence[KnownFailure | Quirk]], ...] = (("known_failures", known), ("quirks", quirks))
    # Where the entry was written it may be tomorrow already.
    latest = max(as_of, datetime.datetime.now(tz=datetime.UTC).date()) + datetime.timedelta(days=1)
    problems = []
    for table, entries in tables:
        for number, entry in enumerate(entries):
            what = entry_name(table, number, entry)
            if entry.expires is not None and entry.expires < as_of:
                problems.append(f"{what}: expired on {entry.expires}, and this is as of {as_of}. Decide again.")
            if entry.added > latest:
                problems.append(f"{what}: added in the future, on {entry.added}. Say the day on which it was written.")
    return problems


def entry_name(table: str, number: int, entry: KnownFailure | Quirk) -> str:
    """How a sentence names an entry of a table: where it stands, and whose it is."""
    place = f"{entry.location}: " if entry.location else ""
    return f"{place}{table}[{number}] ({entry.reason}; owner {entry.owner}, {entry.issue})"


def _passes(entry: KnownFailure, result: Result) -> bool:
    """Whether a cell that must fail does not. One that was not run, or not as far as the entry's stage, shows nothing."""
    too_short = result.mode is Mode.COMPILE and entry.stage in (Stage.RUN, Stage.COMPARE)
    return result.verdict in (Verdict.PASS, Verdict.COMPILED) and not too_short


def _fails_so(entry: KnownFailure, result: Result) -> bool:
    return (result.verdict, result.stage) == (entry.verdict, entry.stage) and entry.message in result.message


def _cells(results: Sequence[Result]) -> str:
    """Every cell by name, those of one golden together."""
    readers: dict[str, list[str]] = {}
    for result in results:
        readers.setdefault(f"{result.golden} on {result.platform}", []).append(result.reader.jaxlib)
    return "; ".join(f"{golden} in jaxlib {', '.join(dict.fromkeys(some))}" for golden, some in sorted(readers.items()))
