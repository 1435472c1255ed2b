"""Since which release a cell fails: the two ends, the releases between, and the edge among them."""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from export_core.base.phrases import few, first_line
from export_core.base.processes import deciding_variables
from export_core.features.why.bisect.criterion import Answer, BisectBy, Criterion, Measure
from export_core.features.why.bisect.report import (
    FOUND,
    NO_ANSWER,
    NOT_REPRODUCED,
    Bisection,
    TriedRelease,
    changes_between,
    commits_between,
)
from export_core.features.why.choice import Choice
from export_core.features.why.errors import WhyError
from export_core.judge import Result, judge
from export_core.judge.result import cell_names, reader_of, release_name
from export_core.matrix import Cell, Outcome, Verdict, cached_replay
from export_core.matrix.cache_keys import code, machine
from export_core.matrix.cached_replay import OutcomeCache
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.selection import reader_named
from export_core.policy.run_options import RESULTS, of_cell
from export_core.readers.environment import ReaderEnvironments, cell_variables
from export_core.releases import Calendar, Release, ReleaseError
from export_core.releases.calendar import version_key
from export_core.releases.index import with_nightlies_of
from export_core.releases.names import title_of
from export_core.releases.runtimes import runtime_readers
from export_core.run.plan_record import hash_of, policy_hash
from export_core.run.results import make_folder

_BY_MESSAGE = Measure()
BISECTED = "bisected"  # The folder of what was run, inside that of results.
AT_ONCE = 12  # In a window of at most so many releases all are run, since a failure may come and go.


class NotBisectedError(Exception):
    """There is nothing to search: why, and the exit code that says so."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def bisect(
    choice: Choice,
    notify: Callable[[str], None],
    *,
    good: str = "",
    measure: Measure = _BY_MESSAGE,
    every: bool = False,
    resume: bool = False,
) -> Bisection:
    """Bisect the cell of a choice, by replays on this machine.

    Args:
        choice: the cell, whose reader is the bad end.
        notify: called with a line about each release that was run, and about what happens beside it.
        good: a release in which it works; empty to look for one.
        measure: by what results are alike.
        every: run all releases of the window, however many they are.
        resume: what an interrupted bisection of the cell has run here is not run again.

    Raises:
        WhyError: the good release that was named is bad too, or there is no such figure.
        ReleaseError: a release that does not exist, or an index that does not answer.
    """
    calendar = with_nightlies_of(choice.plan.selection.indexes, choice.plan.calendar)
    options = replace(choice.options, calendar=calendar)
    bisection = Bisection(
        *cell_names(choice.cell),
        by=measure.by,
        as_of=choice.plan.as_of,
        exit_code=NO_ANSWER,
        message="",
        figure=measure.figure if measure.by is BisectBy.COST else "",
    )
    folder = RESULTS / BISECTED
    try:
        make_folder(folder)
    except OSError as error:
        notify(f"{folder}: cannot be made, so that nothing can be resumed: {error.strerror or error}")
    with OutcomeCache(folder, notify) as cache:
        trials = Trials(options, {}, choice, cache, resume, notify)
        try:
            first, criterion = _good_end(choice, good, measure, trials)
        except NotBisectedError as error:
            tried = _tried(trials, measure, None)
            return structs.replace(bisection, exit_code=error.exit_code, message=str(error), tried=tried)
        row = between(first, choice.cell.reader, choice.plan.calendar)
        releases, edge = len(row), _edge(row, trials, criterion, every=every)
        # Nightlies only around the edge: all of them would be hundreds.
        nights = between(row[edge.last_good], row[edge.first_bad], calendar)
        if len(nights) > edge.first_bad - edge.last_good + 1:
            row, edge = nights, _edge(nights, trials, criterion, every=every)
    last_good, first_bad = row[edge.last_good], row[edge.first_bad]
    silent = [release.name for release in row[edge.last_good + 1 : edge.first_bad]]
    with ReaderEnvironments.of(options.policy, calendar, options.sources) as environments:
        built = {
            release: environments.find(replace(choice.cell, reader=release).placement)
            for release in (last_good, first_bad)
        }
    folders = {release: environment.folder for release, environment in built.items() if environment}
    return structs.replace(
        bisection,
        exit_code=NO_ANSWER if silent else FOUND,
        message=f"not narrowed down further: no answer from {title_of(', '.join(silent))}" if silent else "",
        threshold=criterion.threshold,
        releases=releases,
        tried=_tried(trials, measure, criterion),
        last_good=reader_of(last_good),
        first_bad=reader_of(first_bad),
        changes=changes_between(last_good, first_bad, calendar),
        commits=commits_between(last_good, first_bad, folders),
    )


@dataclass
class Trials:
    """The results of the golden of a choice, by release: each release is run once.

    `options` say how, `notify` is called with a line about each. Outcomes are in a cache of the project too, and are
    taken from it where a bisection is resumed: the usual one has none of an accelerator, nor those of a user's
    comparators, and may be of another machine.
    """

    options: ReplayOptions
    results: dict[Release, Result]
    _choice: Choice
    _cache: OutcomeCache
    _resume: bool
    _notify: Callable[[str], None]

    def __getitem__(self, release: Release) -> Result:
        self.run([release])
        return self.results[release]

    def run(self, releases: Iterable[Release]) -> None:
        """Run the releases that were not run yet."""
        new = dict.fromkeys(release for release in releases if release not in self.results)
        cells = {_key(cell, self.options): cell for cell in map(self._choice.cell_in, new)}
        stored = self._cache.get(tuple(cells)) if self._resume else {}
        for key, cell in cells.items():
            if key in stored:
                self._add(stored[key].for_cell(cell))
        if left := [cell for key, cell in cells.items() if key not in stored]:
            titles = [release_name(reader_of(cell.reader)) for cell in left]
            self._notify(f"running {left[0].golden.id} in {few(titles)}")
            # Closed at once when Ctrl-C ends the loop: this stops the cells that are running.
            with contextlib.closing(cached_replay.replay_here(left, self.options, notify=self._notify)) as outcomes:
                for outcome in outcomes:
                    self._cache.put(_key(outcome.cell, self.options), outcome)
                    self._add(outcome)

    def _add(self, outcome: Outcome) -> None:
        self.results[outcome.cell.reader] = result = judge(outcome, self.options.policy)
        self._notify(f"{release_name(result.reader)}: {result_line(result)}")


def _key(cell: Cell, options: ReplayOptions) -> str:
    """The name of an outcome: all that decides it, but for what is in the environment, which may not be built yet."""
    variables = cell_variables(cell.placement, options.policy.environment)
    parts: list[Any] = [
        *(hash_of(cell.golden.manifest), str(cell.key), cell.mode, str(cell.target)),
        *(options.sources.content(cell.reader), policy_hash(msgspec.to_builtins(options.policy))),
        *(*of_cell(options.limits).values(), deciding_variables(variables), code(), machine()),
    ]
    return hashlib.sha256(msgspec.msgpack.encode(parts, order="deterministic")).hexdigest()


def result_line(result: Result | Outcome) -> str:
    """What happened to a cell, in a line: ``crash in stage run: died by signal 11 (SIGSEGV)``."""
    if result.verdict.works:
        return str(result.verdict)
    return f"{result.verdict} in stage {result.stage}: {first_line(result.message)}".removesuffix(": ")


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


# --- the two ends -----------------------------------------------------------------------------------------------------


def _good_end(choice: Choice, good: str, measure: Measure, trials: Trials) -> tuple[Release, Criterion]:
    """The good end, and what tells the bad one, which is the reader of the choice, from it.

    Raises `NotBisectedError`; and `WhyError` for a good end that is bad too, or has no such figure.
    """
    reader = choice.cell.reader
    candidates = [reader_named(good, trials.options.calendar)] if good else _candidates(choice, measure)
    trials.run([reader, *candidates[:1]])
    bad = trials[reader]
    if bad.verdict is Verdict.NOT_RUN:
        raise NotBisectedError(NO_ANSWER, f"{reader.title} could not be run: {bad.message}")
    if measure.is_size:
        measure.known_size(bad)
    elif bad.verdict.works:
        then = f". The results say {result_line(choice.result)}" if choice.result else ""
        raise NotBisectedError(NOT_REPRODUCED, f"it does not fail here in {reader.title}: {bad.verdict}{then}")
    for candidate in candidates:
        result = trials[candidate]
        is_good = measure.size(result) is not None if measure.is_size else result.verdict.works
        if result.verdict is Verdict.NOT_RUN or not (good or is_good):
            continue
        criterion = Criterion.between(measure, bad, result)
        if not measure.is_size and criterion.is_bad(result):
            raise WhyError(f"--good {good}: it fails there as in {reader.name}: {result_line(result)}. Name another.")
        if criterion.is_bad(result) or not criterion.is_bad(bad):
            sizes = " and ".join(f"{measure.size(end) or 0:.6g}" for end in (result, bad))
            raise NotBisectedError(
                NOT_REPRODUCED,
                f"{result.reader.title} and {bad.reader.name} are alike by {measure.by}: {sizes}, where more "
                f"than {criterion.threshold:.6g} is bad",
            )
        return candidate, criterion
    tried = ", ".join(f"{candidate.name} ({trials[candidate].verdict})" for candidate in candidates) or "none"
    raise NotBisectedError(NO_ANSWER, f"no release is known in which it works; tried: {tried}. Name one with --good")


def _candidates(choice: Choice, measure: Measure) -> list[Release]:
    """The releases that may be the good end, the most likely first.

    Those in which it works by the results, the nearest first; of jaxlib the golden's writer; the newest release.
    """
    reader, writer = choice.cell.reader, choice.cell.golden.manifest.writer

    def distance(result: Result) -> tuple[bool, int]:
        # On the side of the writer: there the failure began, on the other side it ended.
        is_beyond = (result.reader.built < reader.built) != (writer.built < reader.built)
        return is_beyond, abs((result.reader.built - reader.built).days)

    works = [
        result
        for result in choice.stored
        if result.verdict.works and result.reader.family == reader.family and not measure.is_size
    ]
    names = [near.reader.pair for near in sorted(works, key=distance)]
    names += [reader.family] if reader.runtime else [f"{writer.jaxlib}-jax{writer.jax}", choice.plan.calendar.newest()]
    releases: dict[Release, None] = {}
    for name in names:
        with contextlib.suppress(ReleaseError):  # it was withdrawn, or is not published by the day that was asked for
            releases[choice.release(name)] = None
    releases.pop(reader, None)
    return list(releases)


# --- the releases between, and the edge among them --------------------------------------------------------------------


def between(first: Release, second: Release, calendar: Calendar) -> list[Release]:
    """The releases of a calendar from one to the other by build date, both included, in this order.

    Each jaxlib is with the jax that was published with it; of another runtime they are its own releases.
    """
    if first.runtime:
        row = runtime_readers(f"{first.family}>=0", calendar)
        start, end = sorted((row.index(first), row.index(second)))
        return row[start : end + 1] if row[start] == first else row[start : end + 1][::-1]
    # By its number, a candidate or a nightly of jax goes with other jaxlibs too: it would hide what jax changed.
    published = {version: jax for version, jax in calendar.jax.items() if not version_key(version).is_prerelease}
    final = replace(calendar, jax=published)

    def released(jaxlib: str) -> Release:
        if not version_key(jaxlib).is_prerelease:
            return final.release(jaxlib)
        return calendar.pair(jaxlib, jaxlib) if jaxlib in calendar.jax else calendar.release(jaxlib)

    inner = [released(jaxlib) for jaxlib in calendar.versions() if jaxlib not in (first.jaxlib, second.jaxlib)]
    row = sorted(
        {*inner, first, second},
        key=lambda release: (release.built, version_key(release.jaxlib), version_key(release.jax)),
    )
    start, end = sorted((row.index(first), row.index(second)))
    row = row[start : end + 1]
    return row if row[0] == first else row[::-1]


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
