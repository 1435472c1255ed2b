"""The two ends of a bisection, and the releases between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from export_core.features.why.bisection.bisected import NO_ANSWER, NOT_REPRODUCED
from export_core.features.why.bisection.likeness import Likeness, Measure, known_size, likeness
from export_core.features.why.bisection.trials import Trials, happened
from export_core.features.why.choice import Choice
from export_core.features.why.errors import WhyError
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.matrix.selection import release_named
from export_core.releases import Calendar, Release, ReleaseError
from export_core.releases.calendar import version_key


class NoEdge(Exception):  # noqa: N818 - it is an answer, and no error
    """There is nothing to search: why, and the exit code for it."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def ends(choice: Choice, good: str, measure: Measure, trials: Trials) -> tuple[Release, Likeness]:
    """The good end, and what tells the bad one, which is the reader of the choice, from it.

    `good` is the release that was named; empty to look for one. Raises `NoEdge`; and `WhyError` for a good end that is
    bad too, or has no such figure.
    """
    reader = choice.cell.reader
    wanted = [release_named(good, trials.options.calendar)] if good else list(_candidates(choice, measure))
    trials.run([reader, *wanted[:1]])
    bad = trials[reader]
    if bad.verdict is Verdict.NOT_RUN:
        raise NoEdge(NO_ANSWER, f"jaxlib {reader.jaxlib} could not be run: {bad.message}")
    if not measure.is_size and bad.verdict.works:
        then = f". The results say {happened(choice.result)}" if choice.result else ""
        raise NoEdge(NOT_REPRODUCED, f"it does not fail here in jaxlib {reader.jaxlib}: {bad.verdict}{then}")
    if measure.is_size:
        known_size(measure, bad)
    for candidate in wanted:
        result = trials[candidate]
        if result.verdict is Verdict.NOT_RUN or not (good or _is_good(result, measure)):
            continue
        like = likeness(measure, bad, result)
        if not measure.is_size and like.is_bad(result):
            raise WhyError(f"--good {good}: it fails there as in {reader.jaxlib}: {happened(result)}. Name another.")
        if like.is_bad(result) or not like.is_bad(bad):
            raise NoEdge(NOT_REPRODUCED, _alike(like, result, bad))
        return candidate, like
    tried = ", ".join(f"{each.jaxlib} ({trials[each].verdict})" for each in wanted) or "none"
    raise NoEdge(NO_ANSWER, f"no release is known in which it works; tried: {tried}. Name one with --good")


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


def _candidates(choice: Choice, measure: Measure) -> Iterator[Release]:
    """The releases that may be the good end, the most likely first."""
    reader = choice.cell.reader
    seen = {reader}
    for name in _names(choice, measure):
        try:
            release = choice.release(name)
        except ReleaseError:  # it was withdrawn, or is not published by the day that was asked for
            continue
        if release not in seen:
            seen.add(release)
            yield release


def _names(choice: Choice, measure: Measure) -> Iterator[str]:
    """Those that the results know, the nearest first; the golden's writer; the newest release."""
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


def _is_good(result: Result, measure: Measure) -> bool:
    return measure.size(result) is not None if measure.is_size else result.verdict.works


def _alike(like: Likeness, good: Result, bad: Result) -> str:
    sizes = " and ".join(f"{like.measure.size(result) or 0:.6g}" for result in (good, bad))
    return (
        f"jaxlib {good.reader.jaxlib} and {bad.reader.jaxlib} are alike by {like.measure.by}: {sizes}, where more than "
        f"{like.threshold:.6g} is bad"
    )


def _date_order(release: Release) -> tuple[object, ...]:
    return release.built, version_key(release.jaxlib), version_key(release.jax)
