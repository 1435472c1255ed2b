"""Which broken promises are known, and is the list of them still true?"""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterable, Sequence

from export_core.judge.result import Judgement, Result
from export_core.policy import KnownFailure


def matching_entry(result: Result, known: Sequence[KnownFailure]) -> KnownFailure | None:
    """The entry that lists this cell and says exactly how it fails, or None."""
    return next((entry for entry in known if covers(entry, result) and _fails_so(entry, result)), None)


def covers(entry: KnownFailure, result: Result) -> bool:
    """Whether an entry is about this cell."""
    return (
        any(result.case == pattern or fnmatch.fnmatchcase(result.case, pattern) for pattern in entry.cases)
        and any(fnmatch.fnmatchcase(result.writer.jaxlib, pattern) for pattern in entry.writers)
        and any(fnmatch.fnmatchcase(result.reader.jaxlib, pattern) for pattern in entry.readers)
        and result.platform in entry.platforms
    )


def stale_entries(
    results: Iterable[Result], known: Sequence[KnownFailure], as_of: datetime.date, *, whole: bool
) -> list[str]:
    """What is no longer true of the list, a sentence for each defect.

    `whole`: the run held every golden with its window, so that an entry that met no cell is a leftover.
    """
    results = [result for result in results if result.promised]
    platforms = {result.platform for result in results}
    problems = []
    for number, entry in enumerate(known):
        what = f"known_failures[{number}] ({entry.reason}; owner {entry.owner}, {entry.issue})"
        met = [result for result in results if covers(entry, result)]
        passing = sorted(result.golden for result in met if result.judgement is Judgement.KEPT)
        if passing:
            problems.append(
                f"{what}: {len(passing)} of its cells pass now, such as {passing[0]}. Take them off the list."
            )
        otherwise = [result for result in met if result.judgement is Judgement.BROKEN]
        if otherwise:
            first = otherwise[0]
            problems.append(
                f"{what}: {len(otherwise)} of its cells fail in another way: expected {entry.verdict} in stage {entry.stage} with "
                f"{entry.message!r}, found {first.verdict} in stage {first.stage} in {first.golden}."
            )
        # A run on other platforms, or as of a day before the entry was made, cannot meet it.
        could_meet = whole and entry.added <= as_of and not platforms.isdisjoint(entry.platforms)
        if could_meet and not met:
            problems.append(f"{what}: matches no promised cell of this run. Delete it.")
        if entry.expires is not None and entry.expires < as_of:
            problems.append(f"{what}: expired on {entry.expires}. Decide again.")
    return problems


def _fails_so(entry: KnownFailure, result: Result) -> bool:
    return (result.verdict, result.stage) == (entry.verdict, entry.stage) and entry.message in result.message
