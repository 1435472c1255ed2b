"""Since which release a cell fails: the two ends, the releases between, the edge among them, what is to blame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from export_core.features.why.bisect.changes import CommitsLink, changes_between, commits_between
from export_core.features.why.bisect.criterion import Answer, BisectBy, Criterion, Measure, criterion_of, known_size
from export_core.features.why.bisect.report import (
    BOTH,
    EITHER,
    FOUND,
    JAX,
    JAXLIB,
    NO_ANSWER,
    NOT_REPRODUCED,
    Bisection,
    MixedPair,
    TriedRelease,
)
from export_core.features.why.bisect.trials import Trials, result_line
from export_core.features.why.choice import Choice
from export_core.features.why.errors import WhyError
from export_core.judge import Result
from export_core.judge.result import cell_names, reader_of
from export_core.matrix import Verdict
from export_core.matrix.selection import release_named
from export_core.policy.run_options import RESULTS
from export_core.readers.environment import ReaderEnvironments
from export_core.releases import Calendar, Release, ReleaseError
from export_core.releases.calendar import version_key
from export_core.releases.index import with_nightlies_of

BISECTED = "bisected"
"""The folder of what was run, inside that of results."""
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


class NotBisectedError(Exception):
    """There is nothing to search: why, and the exit code that says so."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def bisect(choice: Choice, wanted: Wanted, notify: Callable[[str], None], *, resume: bool = False) -> Bisection:
    """Bisect the cell of a choice, by replays on this machine.

    Args:
        choice: the cell, whose reader is the bad end.
        wanted: how.
        notify: called with a line about each release that was run, and about what happens beside it.
        resume: what an interrupted bisection of the cell has run here is not run again.

    Raises:
        WhyError: the good release that was named is bad too, or there is no such figure.
        ReleaseError: a release that does not exist, or an index that does not answer.
    """
    calendar = with_nightlies_of(choice.plan.selection.indexes, choice.plan.calendar)
    options = replace(choice.options, calendar=calendar)
    with Trials(choice, options, RESULTS / BISECTED, resume=resume, notify=notify) as trials:
        try:
            first, criterion = _good_end(choice, wanted, trials)
        except NotBisectedError as error:
            tried = _tried(trials, wanted.measure, None)
            return structs.replace(
                _unanswered(choice, wanted.measure), exit_code=error.exit_code, message=str(error), tried=tried
            )
        return _between_ends(choice, wanted, first, criterion, trials)


def _between_ends(choice: Choice, wanted: Wanted, first: Release, criterion: Criterion, trials: Trials) -> Bisection:
    """The edge between a good release and the reader, what changed there, and what is to blame."""
    calendar = trials.options.calendar
    row = between(first, choice.cell.reader, choice.plan.calendar)
    releases, edge = len(row), _edge(row, trials, criterion, every=wanted.every)
    # Nightlies only around the edge: all of them would be hundreds.
    nights = between(row[edge.last_good], row[edge.first_bad], calendar)
    if len(nights) > edge.first_bad - edge.last_good + 1:
        row, edge = nights, _edge(nights, trials, criterion, every=wanted.every)
    good, bad = row[edge.last_good], row[edge.first_bad]
    silent = [release.jaxlib for release in row[edge.last_good + 1 : edge.first_bad]]
    pairs = _mixed_pairs(good, bad, criterion, trials) if wanted.pairs else ()
    return structs.replace(
        _unanswered(choice, wanted.measure),
        exit_code=NO_ANSWER if silent else FOUND,
        message=f"not narrowed down further: no answer from jaxlib {', '.join(silent)}" if silent else "",
        threshold=criterion.threshold,
        releases=releases,
        tried=_tried(trials, wanted.measure, criterion),
        last_good=reader_of(good),
        first_bad=reader_of(bad),
        changes=changes_between(good, bad, calendar),
        blame=_blamed(good, bad, pairs),
        pairs=pairs,
        commits=_commits(choice, good, bad, trials),
    )


def _unanswered(choice: Choice, measure: Measure) -> Bisection:
    """What is known before a release is run."""
    return Bisection(
        *cell_names(choice.cell),
        by=measure.by,
        as_of=choice.plan.as_of,
        exit_code=NO_ANSWER,
        message="",
        figure=measure.figure if measure.by is BisectBy.COST else "",
    )


def _tried(trials: Trials, measure: Measure, criterion: Criterion | None) -> tuple[TriedRelease, ...]:
    """The releases that were run, by build date."""
    return tuple(
        TriedRelease(
            *(result.reader, result.stage, result.verdict, result.message),
            label=measure.label(result),
            size=measure.size(result),
            is_bad=criterion.is_bad(result) if criterion else None,
        )
        for result in sorted(trials.results.values(), key=lambda result: result.reader.date_order)
    )


def _commits(choice: Choice, good: Release, bad: Release, trials: Trials) -> tuple[CommitsLink, ...]:
    options = trials.options
    environments = ReaderEnvironments(options.calendar, options.sources, packages=options.policy.reader_packages)

    def installed(release: Release) -> Path | None:
        environment = environments.find(replace(choice.cell, reader=release).placement)
        return environment.folder if environment else None

    with environments:
        return commits_between(good, bad, installed)


# --- the two ends -----------------------------------------------------------------------------------------------------


def _good_end(choice: Choice, wanted: Wanted, trials: Trials) -> tuple[Release, Criterion]:
    """The good end, and what tells the bad one, which is the reader of the choice, from it.

    Raises `NotBisectedError`; and `WhyError` for a good end that is bad too, or has no such figure.
    """
    reader, good, measure = choice.cell.reader, wanted.good, wanted.measure
    candidates = [release_named(good, trials.options.calendar)] if good else list(_candidates(choice, measure))
    trials.run([reader, *candidates[:1]])
    bad = trials[reader]
    if bad.verdict is Verdict.NOT_RUN:
        raise NotBisectedError(NO_ANSWER, f"jaxlib {reader.jaxlib} could not be run: {bad.message}")
    if measure.is_size:
        known_size(measure, bad)
    elif bad.verdict.works:
        then = f". The results say {result_line(choice.result)}" if choice.result else ""
        raise NotBisectedError(NOT_REPRODUCED, f"it does not fail here in jaxlib {reader.jaxlib}: {bad.verdict}{then}")
    for candidate in candidates:
        result = trials[candidate]
        is_good = measure.size(result) is not None if measure.is_size else result.verdict.works
        if result.verdict is Verdict.NOT_RUN or not (good or is_good):
            continue
        criterion = criterion_of(measure, bad, result)
        if not measure.is_size and criterion.is_bad(result):
            raise WhyError(f"--good {good}: it fails there as in {reader.jaxlib}: {result_line(result)}. Name another.")
        if criterion.is_bad(result) or not criterion.is_bad(bad):
            raise NotBisectedError(NOT_REPRODUCED, _alike(criterion, result, bad))
        return candidate, criterion
    tried = ", ".join(f"{each.jaxlib} ({trials[each].verdict})" for each in candidates) or "none"
    raise NotBisectedError(NO_ANSWER, f"no release is known in which it works; tried: {tried}. Name one with --good")


def _candidates(choice: Choice, measure: Measure) -> Iterator[Release]:
    """The releases that may be the good end, the most likely first."""
    seen = {choice.cell.reader}
    for name in _names_of_candidates(choice, measure):
        try:
            release = choice.release(name)
        except ReleaseError:  # it was withdrawn, or is not published by the day that was asked for
            continue
        if release not in seen:
            seen.add(release)
            yield release


def _names_of_candidates(choice: Choice, measure: Measure) -> Iterator[str]:
    """The releases in which it works by the results, the nearest first; the golden's writer; the newest release."""
    writer, built = choice.cell.golden.manifest.writer, choice.cell.reader.built

    def distance(result: Result) -> tuple[bool, int]:
        # On the side of the writer: there the failure began, on the other side it ended.
        is_beyond = (result.reader.built < built) != (writer.built < built)
        return is_beyond, abs((result.reader.built - built).days)

    if not measure.is_size:
        works = [result for result in choice.stored if result.verdict.works]
        yield from (f"{near.reader.jaxlib}-jax{near.reader.jax}" for near in sorted(works, key=distance))
    yield f"{writer.jaxlib}-jax{writer.jax}"
    yield choice.plan.calendar.newest()


def _alike(criterion: Criterion, good: Result, bad: Result) -> str:
    sizes = " and ".join(f"{criterion.measure.size(result) or 0:.6g}" for result in (good, bad))
    return (
        f"jaxlib {good.reader.jaxlib} and {bad.reader.jaxlib} are alike by {criterion.measure.by}: {sizes}, where more "
        f"than {criterion.threshold:.6g} is bad"
    )


# --- the releases between, and the edge among them --------------------------------------------------------------------


def between(first: Release, second: Release, calendar: Calendar) -> list[Release]:
    """The releases of a calendar from one to the other by build date, both included, in this order."""
    inner = [
        _release(jaxlib, calendar) for jaxlib in calendar.versions() if jaxlib not in (first.jaxlib, second.jaxlib)
    ]
    row = sorted({*inner, first, second}, key=_date_order)
    places = sorted((row.index(first), row.index(second)))
    row = row[places[0] : places[1] + 1]
    return row if row[0] == first else row[::-1]


def _release(jaxlib: str, calendar: Calendar) -> Release:
    """A jaxlib with the jax that was published with it."""
    # By its number, a candidate or a nightly of jax goes with other jaxlibs too: it would hide what jax changed.
    if version_key(jaxlib).is_prerelease:
        return calendar.pair(jaxlib, jaxlib) if jaxlib in calendar.jax else calendar.release(jaxlib)
    final = {version: jax for version, jax in calendar.jax.items() if not version_key(version).is_prerelease}
    return replace(calendar, jax=final).release(jaxlib)


def _date_order(release: Release) -> tuple[object, ...]:
    return release.built, version_key(release.jaxlib), version_key(release.jax)


class Edge(NamedTuple):
    """Positions in a row of releases: the last that is good and the first that is bad. Those between say nothing.

    The row begins with a good release and ends with the bad one. Nothing else is assumed: a failure may come and go.
    """

    last_good: int
    first_bad: int


def _edge(row: Sequence[Release], trials: Trials, criterion: Criterion, *, every: bool) -> Edge:
    if every or len(row) <= AT_ONCE:
        trials.run(row)
        return edge_in([criterion.is_bad(trials[release]) for release in row])
    return find_edge(len(row), lambda place: criterion.is_bad(trials[row[place]]))


def edge_in(answers: Sequence[Answer]) -> Edge:
    """The edge that is nearest to the bad end, where every release was asked."""
    last_good = max(place for place, answer in enumerate(answers) if answer is False)
    first_bad = min(place for place, answer in enumerate(answers) if answer and place > last_good)
    return Edge(last_good, first_bad)


def find_edge(count: int, ask: Callable[[int], Answer]) -> Edge:
    """An edge in a row of so many releases, by binary search: the only one, where there is only one.

    `ask` is called once for a position, and for neither end.
    """
    good, bad = 0, count - 1
    silent: set[int] = set()
    while left := [place for place in range(good + 1, bad) if place not in silent]:
        middle = min(left, key=lambda place: abs(2 * place - good - bad))
        match ask(middle):
            case True:
                bad = middle
            case False:
                good = middle
            case None:
                silent.add(middle)
    return Edge(good, bad)


# --- is jax or jaxlib to blame ----------------------------------------------------------------------------------------


def _mixed_pairs(good: Release, bad: Release, criterion: Criterion, trials: Trials) -> tuple[MixedPair, ...]:
    """What two mixed pairs say: the jax of one release on the jaxlib of the other. None where only one part differs."""
    if good.jax == bad.jax or good.jaxlib == bad.jaxlib:
        return ()
    # By the message also where the search went by the verdict: an error of the pair itself is an error too.
    measure = criterion.measure
    measure = replace(measure, by=BisectBy.MESSAGE) if measure.by is BisectBy.VERDICT else measure
    criterion = replace(criterion, measure=measure, bad=trials[bad])
    good_label = measure.label(trials[good])
    pairs = []
    for jax_of, jaxlib_of in ((bad, good), (good, bad)):
        result = trials.run_pair(jax_of, jaxlib_of)
        answer = criterion.is_bad(result)
        if answer is False and criterion.threshold is None and not result.verdict.works:
            # A failure that neither release has shows that the two parts do not fit, and says nothing of the break.
            answer = False if measure.label(result) == good_label else None
        why = result.message if result.verdict is Verdict.NOT_RUN else result_line(result)
        pairs.append(MixedPair(jax_of.jax, jaxlib_of.jaxlib, answer, why))
    return tuple(pairs)


def _blamed(good: Release, bad: Release, pairs: Sequence[MixedPair]) -> str:
    """Which part brings the failure; empty where that is not known."""
    if good.jax == bad.jax or good.jaxlib == bad.jaxlib:
        return JAXLIB if good.jax == bad.jax else JAX
    return part_to_blame(*(pair.is_bad for pair in pairs)) if pairs else ""


def part_to_blame(bad_jax_alone: Answer, bad_jaxlib_alone: Answer) -> str:
    """Which part brings the failure, from whether each of them alone does."""
    match bad_jax_alone, bad_jaxlib_alone:
        case True, True:
            return EITHER
        case False, False:
            return BOTH
        case (True, _) | (None, False):
            return JAX
        case (_, True) | (False, None):
            return JAXLIB
    return ""
