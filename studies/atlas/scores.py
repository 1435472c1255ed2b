"""The score of each release in a run over many: how well it keeps the promise, and how long its artifacts are read.

The judged results of a run are only counted here. A known failure counts as a failure, since the release does fail.
"""

from __future__ import annotations

import datetime
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

import msgspec

from export_core.features.compare_runs.trend import cost_steps, number_drift
from export_core.judge.causes import cell_signature, is_own_writer
from export_core.matrix import Verdict
from export_core.matrix.result import Result, WriterOf
from export_core.releases import Direction, Release

GROWN = 1.1
"""A golden counts in `grown` if it needs more than so many times the temporary memory of the release before."""


class ReleaseScore(msgspec.Struct, frozen=True):
    """The score of a release as a reader."""

    reader: Release
    """The release."""
    promised: int
    """The number of cells that were promised to work in the release, without cells that could not be run."""
    kept: int
    """The number of promised cells that work."""
    share: float | None
    """`kept` divided by `promised`; null if no cell was promised."""
    known: int
    """The number of promised cells that show a known issue of JAX."""
    outside: int
    """The number of cells that were not promised."""
    working: int
    """The number of cells that work although they were not promised."""
    wrong: int
    """The number of cells, promised or not, whose numbers differ by more than the writer's noise allows."""
    moved: int
    """The number of goldens whose outputs have different bits than in the release before."""
    grown: int
    """The number of goldens that need more than 1.1 times the temporary memory of the release before."""
    causes: tuple[tuple[str, int], ...]
    """The messages of promised cells that fail, in short, each with the number of these cells, most cells first."""


class EndOfLife(msgspec.Struct, frozen=True):
    """The end of the life of some goldens: the first later release that does not run them, and how they fail in it."""

    reader: Release
    """The first later release that does not run the goldens."""
    verdict: Verdict
    """The verdict of these goldens in that release."""
    message: str
    """The first line of the message of one of these goldens."""
    goldens: int
    """The number of these goldens."""


class Lifetimes(msgspec.Struct, frozen=True):
    """The score of a release as a writer: how long later releases run its goldens."""

    writer: WriterOf
    """The release."""
    goldens: int
    """The number of its goldens that do not fail in the release itself; each counts once for each platform."""
    alive: int
    """The number of these goldens that run in every later release of the run, up to the newest."""
    shortest: int
    """The shortest life of a golden: the days from the writer to the last release before the first that fails."""
    median: float
    """The median life of the goldens, in days. A golden that is alive has lived until the newest release."""
    ends: tuple[EndOfLife, ...]
    """The ends of the goldens that are not alive, most goldens first."""


class Atlas(msgspec.Struct, frozen=True):
    """All tables of the atlas, as atlas.json has them."""

    as_of: datetime.date
    """The day of the run."""
    cells: int
    """The number of cells in the run."""
    goldens: int
    """The number of goldens in the run."""
    cases: int
    """The number of cases in the run."""
    readers: tuple[ReleaseScore, ...]
    """The releases as readers, oldest build first."""
    writers: tuple[Lifetimes, ...]
    """The releases as writers, oldest build first."""
    ends: tuple[EndOfLife, ...]
    """The ends of the goldens of all writers, most goldens first."""


def atlas_of(results: Sequence[Result], as_of: datetime.date) -> Atlas:
    """Return the tables of the atlas, counted from the results of a run on a day."""
    run = [result for result in results if result.verdict is not Verdict.NOT_RUN]
    moved = Counter(after.readers[0] for drift in number_drift(run) for _, after in pairwise(drift.stretches))
    grown = Counter(
        step.after
        for step in cost_steps(run).steps
        if step.change.figure == "temp_bytes" and step.change.now > GROWN * step.change.was
    )
    by_reader = sorted(run, key=lambda result: result.reader.date_order)
    scores = (
        _score(reader, list(cells), moved[reader], grown[reader])
        for reader, cells in groupby(by_reader, key=lambda result: result.reader)
    )
    return Atlas(
        as_of=as_of,
        cells=len(results),
        goldens=len({result.golden for result in results}),
        cases=len({result.case for result in results}),
        readers=tuple(scores),
        writers=tuple(_lifetimes(run)),
        ends=tuple(_ends(end for series in _series(run) if (life := _life(series)) and (end := life[1]))),
    )


def _score(reader: Release, cells: Sequence[Result], moved: int, grown: int) -> ReleaseScore:
    promised = [result for result in cells if result.promised]
    kept = sum(result.verdict.works for result in promised)
    failing = Counter(_first_line(result) for result in promised if not result.verdict.works)
    return ReleaseScore(
        reader=reader,
        promised=len(promised),
        kept=kept,
        share=kept / len(promised) if promised else None,
        known=sum(bool(result.upstream) for result in promised),
        outside=len(cells) - len(promised),
        working=sum(result.verdict.works and not result.promised for result in cells),
        wrong=sum(result.verdict is Verdict.NUMERICS for result in cells),
        moved=moved,
        grown=grown,
        causes=tuple(failing.most_common()),
    )


def _first_line(result: Result) -> str:
    """Return the verdict of a cell, and the part of its message that all cells which fail alike share."""
    shared = cell_signature(result)[-1]
    return f"{result.verdict}: {shared}" if shared else str(result.verdict)


def _lifetimes(results: Iterable[Result]) -> Iterator[Lifetimes]:
    by_writer = sorted(results, key=lambda result: (result.writer.built, result.writer.jaxlib, result.writer.jax))
    for _, of_writer in groupby(by_writer, key=lambda result: (result.writer.built, result.writer.jaxlib)):
        cells = list(of_writer)
        lives = [life for series in _series(cells) if (life := _life(series))]
        if lives:
            days = [days for days, _ in lives]
            ends = [end for _, end in lives if end]
            yield Lifetimes(
                writer=cells[0].writer,
                goldens=len(lives),
                alive=len(lives) - len(ends),
                shortest=min(days),
                median=statistics.median(days),
                ends=tuple(_ends(ends)),
            )


def _series(results: Iterable[Result]) -> Iterator[list[Result]]:
    """Yield the cells of each golden on each platform and device, by build date of the reader.

    Cells in releases that are older than the golden's writer are left out.
    """

    def series_key(result: Result) -> tuple[str, str, str, str]:
        return result.golden, result.platform, result.device, result.mode

    for _, cells in groupby(sorted(results, key=series_key), key=series_key):
        later = (result for result in cells if result.direction is not Direction.FORWARD)
        yield sorted(later, key=lambda result: result.reader.date_order)


def _life(cells: Sequence[Result]) -> tuple[int, Result | None] | None:
    """Return the days from the writer to the last release that runs a golden, and the first cell that fails, if any.

    Return None if the golden was not run in a later release, or if it fails in its own writer: then no later release is
    to blame.
    """
    if not any(not is_own_writer(cell) for cell in cells):
        return None
    days = 0
    for cell in cells:
        if not cell.verdict.works:
            return None if is_own_writer(cell) else (days, cell)
        days = cell.days
    return days, None


def _ends(failing: Iterable[Result]) -> list[EndOfLife]:
    groups: dict[tuple[Release, tuple[str, ...]], list[Result]] = {}
    for result in failing:
        groups.setdefault((result.reader, cell_signature(result)), []).append(result)
    ends = [
        EndOfLife(reader, cells[0].verdict, cells[0].message.strip().partition("\n")[0], len(cells))
        for (reader, _), cells in groups.items()
    ]
    return sorted(ends, key=lambda end: (-end.goldens, end.reader.date_order))
