"""Since which release a cell fails: the two ends, the releases between, and the edge among them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from export_core.artifact import ArtifactError
from export_core.base.text import few, first_line
from export_core.features.why.bisect.bisection_report import (
    FOUND,
    NO_ANSWER,
    NOT_REPRODUCED,
    BisectBy,
    Bisection,
    IsBad,
    TriedRelease,
    changes_between,
    commits_between,
)
from export_core.features.why.choice import Choice, WhyError
from export_core.goldens import GoldenError
from export_core.judge import Result, judge
from export_core.judge.causes import failing_alike_in_writer
from export_core.knowledge import NO, forecasts
from export_core.matrix import Verdict, cached_replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import cell_names, release_name
from export_core.matrix.selection import reader_named
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.readers.environment import ReaderEnvironments
from export_core.releases import Calendar, Release, ReleaseError
from export_core.releases.calendar import version_key
from export_core.releases.calendar_entries import calendar_entries
from export_core.releases.index import with_nightlies_of
from export_core.releases.names import parts_of, title_of
from export_core.releases.runtimes import runtime_readers
from export_core.report.wording import with_asked

AT_ONCE = 12  # Up to so many releases, all are run, since a failure may come and go.


class NotBisectedError(Exception):
    """An error for a cell for which there is no edge to search; its arguments are the exit code and the reason."""


def bisect(
    choice: Choice,
    notify: Callable[[str], None],
    *,
    good: str = "",
    by: BisectBy = BisectBy.MESSAGE,
    every: bool = False,
) -> Bisection:
    """Find the release in which a cell began to fail, by replaying its golden on this machine.

    Args:
        choice: The cell; its reader is the bad end of the search.
        good: The good end, a release in which the cell works; empty to look for one.
        by: The properties by which two results count as alike.
        every: Whether all releases between the two ends are run, however many they are.
        notify: Called with a line about each release that was run, and about other progress.

    Raises:
        WhyError: The good release that was named is bad too, or a result has no error in units of noise.
        ReleaseError: A release does not exist, or an index does not answer.
    """
    calendar = with_nightlies_of(choice.plan.selection.indexes, choice.plan.calendar)
    trials = Trials(choice, replace(choice.options, calendar=calendar), notify)
    try:
        first, criterion = _good_end(choice, good, by, trials)
    except NotBisectedError as error:
        exit_code, message = error.args
        return _answer(choice, trials, by, exit_code, message)
    row = between(first, choice.cell.reader, choice.plan.calendar)
    releases, left = len(row), _around_edge(row, trials, criterion, every=every)
    # Nightlies only around the edge: all of them would be hundreds.
    nights = between(left[0], left[-1], calendar)
    left = _around_edge(nights, trials, criterion, every=every) if len(nights) > len(left) else left
    last_good, *silent, first_bad = left
    names = ", ".join(release.name for release in silent)
    message = f"not narrowed down further: no answer from {title_of(names)}" if silent else ""
    return structs.replace(
        _answer(choice, trials, by, NO_ANSWER if silent else FOUND, message, criterion),
        releases=releases,
        last_good=last_good,
        first_bad=first_bad,
        changes=changes_between(last_good, first_bad, calendar),
        commits=commits_between(last_good, first_bad, _folders(choice, trials.options, (last_good, first_bad))),
    )


@dataclass
class Trials:
    """The results of the chosen golden by release; a release is run when its result is first asked for.

    `options` say how the cells are run; `notify` is called with a line about each.
    """

    choice: Choice
    options: ReplayOptions
    notify: Callable[[str], None]
    results: dict[Release, Result] = field(default_factory=dict)

    def __getitem__(self, release: Release) -> Result:
        self.run([release])
        return self.results[release]

    def run(self, releases: Iterable[Release]) -> None:
        """Run the golden in each of these releases that has no result yet."""
        new = dict.fromkeys(release for release in releases if release not in self.results)
        if cells := [self.choice.cell_in(release) for release in new]:
            titles = [release_name(cell.reader) for cell in cells]
            self.notify(f"running {cells[0].golden.id} in {few(titles)}")
            # Closed at once when Ctrl-C ends the loop: this stops the cells that are running.
            with contextlib.closing(cached_replay.replay_here(cells, self.options, notify=self.notify)) as outcomes:
                for cell, outcome in outcomes:
                    self.results[cell.reader] = result = judge(outcome, cell.golden, self.options.policy)
                    self.notify(f"{release_name(result.reader)}: {result_line(result)}")


def _folders(choice: Choice, options: ReplayOptions, releases: Iterable[Release]) -> dict[Release, Path | None]:
    """Return the environment folder of each of these releases that has an environment here."""
    with ReaderEnvironments.of(options.policy, options.calendar, options.sources) as environments:
        built = {release: environments.find(choice.cell_in(release).placement) for release in releases}
    return {release: environment.folder for release, environment in built.items() if environment}


def result_line(result: Result) -> str:
    """Return what happened to a cell in one line, such as ``crash in stage run: died by signal 11 (SIGSEGV)``."""
    if result.verdict.works:
        return str(result.verdict)
    return f"{result.verdict} in stage {result.stage}: {first_line(result.message)}".removesuffix(": ")


def _answer(
    choice: Choice, trials: Trials, by: BisectBy, exit_code: int, message: str, criterion: Criterion | None = None
) -> Bisection:
    """Return the record of a bisection without its edge; the releases that were run are ordered by build date."""
    results = sorted(trials.results.values(), key=lambda result: result.reader.date_order)
    return Bisection(
        *cell_names(choice.cell),
        by=by,
        as_of=choice.plan.as_of,
        exit_code=exit_code,
        message=message,
        threshold=criterion.threshold if criterion else None,
        tried=tuple(
            TriedRelease(
                *(result.reader, result.stage, result.verdict, result.message),
                label=by.label(result),
                size=by.size(result),
                is_bad=criterion.is_bad(result) if criterion else None,
            )
            for result in results
        ),
    )


# --- which results are bad --------------------------------------------------------------------------------------------


def known_size(result: Result, asked: Mapping[str, str]) -> float:
    """Return the error of a result in units of noise.

    Raises `WhyError` if it has none. `asked` are the options that name the goldens and the policy, for the command in
    the message that measures noise.
    """
    if (size := BisectBy.NUMBERS.size(result)) is not None:
        return size
    where = f"--by numbers: {result.golden} in {result.reader.title} on {result.platform}"
    if not result.verdict.is_compared:
        raise WhyError(f"{where} ended in {result.verdict}, so it has no numbers to compare. Use --by message.")
    command = with_asked(f"`jaxexport goldens verify --noise {result.golden}`", asked)
    raise WhyError(
        f"{where} has no error in units of noise, since the golden's writer measured none. {command} measures it."
    )


@dataclass(frozen=True)
class Criterion:
    """The rule that decides whether a release is bad: whether its result is like that of the bad end.

    With `threshold`, a result is bad if its error in units of noise is larger. Without, it is bad if it is in the same
    class as the result `bad`, as `by` defines classes.
    """

    by: BisectBy
    bad: Result
    threshold: float | None = None

    def is_bad(self, result: Result) -> IsBad:
        """Return whether a result is like that of the bad end; None if that cannot be decided."""
        if _shows_nothing(result, self.bad):
            return None
        if self.threshold is None:
            return self.by.label(result) == self.by.label(self.bad)
        size = self.by.size(result)
        return None if size is None else size > self.threshold


def _shows_nothing(result: Result, bad: Result) -> bool:
    """Return whether a result cannot decide whether its release is bad: it was not run, or it timed out.

    A timeout decides only if the result of the bad end is a timeout too, since any cell may time out on a busy machine.
    """
    timed_out = result.verdict is Verdict.TIMEOUT and bad.verdict is not Verdict.TIMEOUT
    return timed_out or result.verdict is Verdict.NOT_RUN


# --- the two ends -----------------------------------------------------------------------------------------------------


def _good_end(choice: Choice, good: str, by: BisectBy, trials: Trials) -> tuple[Release, Criterion]:
    """Return the good end of the search, and the rule that distinguishes bad results from good ones.

    Raises:
        NotBisectedError: The cell does not fail or run here, no good end is known, or the ends do not differ enough.
        WhyError: The good end that was named is bad too, or a result has no error in units of noise.
    """
    reader = choice.cell.reader
    candidates = [reader_named(good, trials.options.calendar)] if good else _candidates(choice, by)
    trials.run([reader, *candidates[:1]])
    bad = trials[reader]
    if bad.verdict is Verdict.NOT_RUN:
        raise NotBisectedError(NO_ANSWER, f"{reader.title} could not be run: {bad.message}")
    bad_size = known_size(bad, choice.asked) if by is BisectBy.NUMBERS else None
    if bad_size is None and bad.verdict.works:
        then = f". The results say {result_line(choice.result)}" if choice.result else ""
        raise NotBisectedError(NOT_REPRODUCED, f"the cell does not fail here in {reader.title}: {bad.verdict}{then}")
    for candidate in candidates:
        result = trials[candidate]
        is_good = result.verdict.works if bad_size is None else by.size(result) is not None
        if _shows_nothing(result, bad) or not (good or is_good):
            continue
        criterion = Criterion(by, bad)
        if bad_size is not None:  # the middle between both ends
            good_size = known_size(result, choice.asked)
            middle = (good_size + bad_size) / 2 if math.isfinite(bad_size) else 2 * good_size + 1
            criterion = Criterion(by, bad, middle)
        elif criterion.is_bad(result):
            todo = _none_is_good(choice, [bad, result]) or "Name another release"
            raise WhyError(
                f"--good {good}: the cell fails in this release as it does in {reader.name}: {result_line(result)}. "
                f"{todo}."
            )
        if criterion.is_bad(result) or not criterion.is_bad(bad):
            sizes = " and ".join(f"{by.size(end) or 0:.6g}" for end in (result, bad))
            raise NotBisectedError(
                NOT_REPRODUCED,
                f"{result.reader.title} and {bad.reader.name} do not differ enough to search between them: their "
                f"errors are {sizes} in units of noise, and only more than {criterion.threshold:.6g} is bad",
            )
        return candidate, criterion
    tried = ", ".join(f"{candidate.name} ({trials[candidate].verdict})" for candidate in candidates) or "none"
    fail_alike = _none_is_good(choice, [bad, *map(trials.__getitem__, candidates)])
    todo = fail_alike or _none_is_forecast(choice) or "Name one with --good"
    why = f"no release is known in which the cell works; tried: {tried}. {todo}"
    raise NotBisectedError(NO_ANSWER, why)


def _none_is_good(choice: Choice, results: Sequence[Result]) -> str:
    """Return why no release can be the good end and what to do, if the golden fails alike in its writer; else "".

    `results` are those of the bisection, the bad end's first. The stored results are searched for the writer too.
    """
    own = failing_alike_in_writer(results[0], [*results, *choice.stored])
    if own is None:
        return ""
    explain = replace(choice, cell=choice.cell_in(own.reader)).command("explain")
    return (
        f"No release can be good: {own.reader.title} wrote the golden, and it fails there too, so that no release is "
        f"to blame. Check the golden and its test instead: `{explain}`"
    )


def _none_is_forecast(choice: Choice) -> str:
    """Return a sentence if, by the forecasts, no known release of the cell's runtime runs the artifact; else "".

    The result is always "" for a jaxlib.
    """
    cell, calendar = choice.cell, choice.plan.calendar
    if not cell.reader.runtime:
        return ""
    family, own = cell.reader.family, parts_of(cell.reader.name)[2]
    terms = Terms(calendar_entries(calendar))
    try:
        readers = [find_reader(one.name, terms, calendar) for one in runtime_readers(f"{family}>=0{own}", calendar)]
        known = [*forecasts(cell.golden.read_artifact(), readers, cell.platform)]
    except (ArtifactError, GoldenError, ReleaseError):  # then nothing is foreseen
        return ""
    if any(one.spoiled.answer != NO for one in known):
        return ""
    return (
        f"No release can be good: by its bytes, the artifact runs in no known release of {family} "
        f"({len(known)} asked). To see why: `{choice.command('explain')}`"
    )


def _candidates(choice: Choice, by: BisectBy) -> list[Release]:
    """Return the releases that may be the good end, the most likely first.

    They are the releases in which the golden works by the stored results, the nearest first; then the golden's writer
    and the newest jaxlib, or for another runtime its newest release.
    """
    reader, writer = choice.cell.reader, choice.cell.golden.manifest.writer

    def distance(result: Result) -> tuple[bool, int]:
        # On the side of the writer: there the failure began, on the other side it ended.
        is_beyond = (result.reader.built < reader.built) != (writer.built < reader.built)
        return is_beyond, abs((result.reader.built - reader.built).days)

    works = [
        result
        for result in choice.stored
        if result.verdict.works
        and (result.reader.family, result.reader.settings) == (reader.family, reader.settings)
        and by is not BisectBy.NUMBERS
    ]
    names = [near.reader.pair for near in sorted(works, key=distance)]
    own = parts_of(reader.name)[2]
    newest = [f"{writer.jaxlib}-jax{writer.jax}{own}", f"{choice.plan.calendar.newest()}{own}"]
    names += [f"{reader.family}{own}"] if reader.runtime else newest
    releases: dict[Release, None] = {}
    for name in names:
        with contextlib.suppress(ReleaseError):  # it was withdrawn, or is not published by the day that was asked for
            releases[choice.release(name)] = None
    releases.pop(reader, None)
    return list(releases)


# --- the releases between, and the edge among them --------------------------------------------------------------------


def between(first: Release, second: Release, calendar: Calendar) -> list[Release]:
    """Return the releases built from `first` to `second`, both included, in the order that leads from one to the other.

    If both ends are releases of another runtime, so are those between. Otherwise each release is a jaxlib with the jax
    that was published with it.
    """
    if first.runtime:
        row = runtime_readers(f"{first.family}>=0{parts_of(first.name)[2]}", calendar)
        start, end = sorted((row.index(first), row.index(second)))
        return row[start : end + 1] if row[start] == first else row[start : end + 1][::-1]
    # By its number, a candidate or a nightly of jax goes with other jaxlibs too: it would hide what jax changed.
    published = {version: jax for version, jax in calendar.jax.items() if not version_key(version).is_prerelease}
    final = replace(calendar, jax=published)

    def released(jaxlib: str) -> Release:
        if not version_key(jaxlib).is_prerelease:
            return final.release(jaxlib)
        return calendar.pair(jaxlib, jaxlib) if jaxlib in calendar.jax else calendar.release(jaxlib)

    versions = (jaxlib for jaxlib in calendar.versions() if jaxlib not in (first.jaxlib, second.jaxlib))
    inner = [structs.replace(released(jaxlib), with_settings=first.with_settings) for jaxlib in versions]
    row = sorted(
        {*inner, first, second},
        key=lambda release: (release.built, version_key(release.jaxlib), version_key(release.jax)),
    )
    start, end = sorted((row.index(first), row.index(second)))
    row = row[start : end + 1]
    return row if row[0] == first else row[::-1]


def _around_edge(row: Sequence[Release], trials: Trials, criterion: Criterion, *, every: bool) -> Sequence[Release]:
    """Return the part of a row of releases around its edge: a good release, those without an answer, and a bad one.

    The row begins with a good release and ends with a bad one. With `every`, or if the row is short, all its releases
    are run; otherwise the edge is found by binary search.
    """
    if every or len(row) <= AT_ONCE:
        trials.run(row)
        last_good, first_bad = edge_in([criterion.is_bad(trials[release]) for release in row])
    else:
        last_good, first_bad = find_edge(len(row), lambda place: criterion.is_bad(trials[row[place]]))
    return row[last_good : first_bad + 1]


def edge_in(answers: Sequence[IsBad]) -> tuple[int, int]:
    """Return the indexes of the last good release and of the first bad release after it.

    `answers` says for each release of a row, in order, whether it is bad; None for a release that gave no answer.
    """
    last_good = max(place for place, answer in enumerate(answers) if answer is False)
    return last_good, min(place for place, answer in enumerate(answers) if answer and place > last_good)


def find_edge(count: int, ask: Callable[[int], IsBad]) -> tuple[int, int]:
    """Return the indexes of a good release and of the next bad one in a row of `count` releases, by binary search.

    The row begins with a good release and ends with a bad one. If it has several such pairs, any of them is found.
    Releases between the two gave no answer. `ask` returns whether the release with an index is bad, or None for no
    answer. It is called at most once for an index, and for neither end of the row.
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
    return good, bad
