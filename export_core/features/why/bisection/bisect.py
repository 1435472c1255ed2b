"""Since which release does a cell fail: the releases that are run, the edge among them, and which part is to blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from export_core.features.why.bisection.bisected import FOUND, NO_ANSWER, Bisection, TriedRelease
from export_core.features.why.bisection.blame import ReplayPair, blamed, mixed_pairs
from export_core.features.why.bisection.changes import CommitsLink, changes_between, commits_between
from export_core.features.why.bisection.ends import NoEdge, between, ends
from export_core.features.why.bisection.likeness import BisectBy, Likeness, Measure
from export_core.features.why.bisection.search import Edge, edge_in, find_edge
from export_core.features.why.bisection.trials import Replay, Trials
from export_core.features.why.choice import Choice
from export_core.judge.result import reader_of, writer_of
from export_core.readers.environment import ReaderEnvironments
from export_core.releases import Release
from export_core.releases.nightlies import with_nightlies_of

AT_ONCE = 12
"""In a window of at most so many releases all are run, since a failure may come and go."""


@dataclass(frozen=True)
class Wanted:
    """How a cell is bisected.

    `good` is a release in which it works, empty to look for one; `every`: run all releases of the window, however many
    they are; `pairs`: also ask whether jax or jaxlib is to blame.
    """

    good: str = ""
    measure: Measure = field(default_factory=Measure)
    every: bool = False
    pairs: bool = True


def bisect(
    choice: Choice, wanted: Wanted, replay: Replay, replay_pair: ReplayPair, notify: Callable[[str], None]
) -> Bisection:
    """Bisect the cell of a choice.

    Args:
        choice: the cell, whose reader is the bad end.
        wanted: how.
        replay: runs cells; what it has stored of an interrupted bisection is not run again.
        replay_pair: runs a cell in a pair that is made by hand.
        notify: called with a line about each release that was run.

    Raises:
        WhyError: the good release that was named is bad too, or there is no such figure.
        ReleaseError: a release that does not exist, or an index that does not answer.
    """
    published = choice.plan.calendar
    calendar = with_nightlies_of(choice.plan.selection.indexes, published)
    trials = Trials(choice, replace(choice.options, calendar=calendar), replay, notify)
    found = _of(choice, wanted.measure)
    try:
        first, like = ends(choice, wanted.good, wanted.measure, trials)
    except NoEdge as none:
        tried = _tried(trials, wanted.measure, None)
        return structs.replace(found, exit_code=none.exit_code, message=str(none), tried=tried)
    row = between(first, choice.cell.reader, published)
    found = structs.replace(found, threshold=like.threshold, releases=len(row))
    edge = _edge(row, trials, like, every=wanted.every)
    # Nightlies only around the edge: all of them would be hundreds.
    nights = between(row[edge.last_good], row[edge.first_bad], calendar)
    if len(nights) > edge.first_bad - edge.last_good + 1:
        row, edge = nights, _edge(nights, trials, like, every=wanted.every)
    good, bad = row[edge.last_good], row[edge.first_bad]
    silent = [release.jaxlib for release in row[edge.last_good + 1 : edge.first_bad]]
    pairs = mixed_pairs(choice, good, bad, like, trials, replay_pair) if wanted.pairs else ()
    return structs.replace(
        found,
        exit_code=NO_ANSWER if silent else FOUND,
        message=f"not narrowed down further: no answer from jaxlib {', '.join(silent)}" if silent else "",
        tried=_tried(trials, wanted.measure, like),
        last_good=reader_of(good),
        first_bad=reader_of(bad),
        changes=changes_between(good, bad, calendar),
        blame=blamed(good, bad, pairs),
        pairs=pairs,
        commits=_commits(choice, good, bad, trials),
    )


def _of(choice: Choice, measure: Measure) -> Bisection:
    cell, manifest = choice.cell, choice.cell.golden.manifest
    return Bisection(
        case=manifest.case,
        golden=cell.golden.id,
        writer=writer_of(manifest.writer),
        reader=reader_of(cell.reader),
        platform=cell.platform,
        mode=cell.mode,
        by=measure.by,
        as_of=choice.plan.as_of,
        exit_code=NO_ANSWER,
        message="",
        figure=measure.figure if measure.by is BisectBy.COST else "",
    )


def _edge(row: Sequence[Release], trials: Trials, like: Likeness, *, every: bool) -> Edge:
    if every or len(row) <= AT_ONCE:
        trials.run(row)
        return edge_in([like.is_bad(trials[release]) for release in row])
    return find_edge(len(row), lambda place: like.is_bad(trials[row[place]]))


def _tried(trials: Trials, measure: Measure, like: Likeness | None) -> tuple[TriedRelease, ...]:
    """The releases that were run, by build date."""
    results = sorted(trials.results.values(), key=lambda result: result.reader.date_order)
    return tuple(
        TriedRelease(
            *(result.reader, result.stage, result.verdict, result.message),
            label=measure.label(result),
            size=measure.size(result),
            is_bad=like.is_bad(result) if like else None,
        )
        for result in results
    )


def _commits(choice: Choice, good: Release, bad: Release, trials: Trials) -> tuple[CommitsLink, ...]:
    options = trials.options
    environments = ReaderEnvironments(options.calendar, options.sources, packages=options.policy.reader_packages)

    def installed(release: Release) -> Path | None:
        environment = environments.find(replace(choice.cell, reader=release).placement)
        return environment.folder if environment else None

    with environments:
        return commits_between(good, bad, installed)
