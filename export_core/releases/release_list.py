"""The output of `jaxexport releases list`: the calendar as of a day, with the windows of each release."""

import datetime
from collections.abc import Iterator

import msgspec

from export_core.base.layout import aligned
from export_core.base.text import plural
from export_core.releases import Calendar, Windows, promise
from export_core.releases.runtimes import runtime_named


class DatedRelease(msgspec.Struct, frozen=True):
    """A jaxlib release that exists on a day, with what is promised to it and by it."""

    jaxlib: str  # The jaxlib of the release.
    jax: str  # The jax that goes with it.
    built: datetime.date  # The day on which the jaxlib was built.
    age_days: int  # How many days ago that was.
    runs: tuple[str, ...]  # The writers published by then whose artifacts it is promised to run, itself among them.
    promised_from: datetime.date  # Its own artifacts are promised to run in jaxlibs built from this day on,
    promised_until: datetime.date  # until this day, both included.
    promised_by_newest: bool  # Whether the newest jaxlib of that day is one of those.


class DatedCalendar(msgspec.Struct, frozen=True):
    """The output of `jaxexport releases list --json`: every release that exists on a day, oldest build first."""

    as_of: datetime.date  # The day.
    backward_days: int  # The length of the backward window.
    forward_days: int  # The length of the forward window.
    releases: tuple[DatedRelease, ...]  # The releases.
    withdrawn: dict[str, str | None]
    """Releases that the index took back, by version, with its reason; null where it gives none. They are never
    chosen."""


def dated_calendar(calendar: Calendar, windows: Windows, day: datetime.date) -> DatedCalendar:
    """Return every release that exists on a day, with its promises.

    Raises `ReleaseError` for a day before the first release.
    """
    then = calendar.as_of(day)
    newest, versions = then.built(then.newest()), then.versions()
    releases = []
    for version in versions:
        built = then.built(version)
        # The newest is never older than `built`, so `until` is the end of the backward window.
        by_newest = promise(built, newest, windows)
        releases.append(
            DatedRelease(
                jaxlib=version,
                jax=then.release(version).jax,
                built=built,
                age_days=(day - built).days,
                runs=tuple(writer for writer in versions if promise(then.built(writer), built, windows).promised),
                promised_from=built - datetime.timedelta(days=windows.forward_days),
                promised_until=by_newest.until,
                promised_by_newest=by_newest.promised,
            )
        )
    withdrawn = {
        version: entry.yanked if isinstance(entry.yanked, str) else None
        for version, entry in sorted(then.jaxlib.items(), key=lambda item: item[1].built)
        if entry.yanked
    }
    return DatedCalendar(day, windows.backward_days, windows.forward_days, tuple(releases), withdrawn)


def calendar_lines(calendar: DatedCalendar) -> Iterator[str]:
    """Yield the lines of a table of releases, then a line for each withdrawn release."""
    newest = max(calendar.releases, key=lambda release: release.built).jaxlib
    promises = "runs artifacts of", "promised to jaxlibs built until", newest + " runs them"
    rows: list[tuple[str, ...]] = [("jaxlib", "built", "days ago", " jax", *promises)]
    for release in calendar.releases:
        count, first, last = len(release.runs), release.runs[0], release.runs[-1]
        runs = first if count == 1 else f"{first} … {last} ({count})"
        by_newest = "promised" if release.promised_by_newest else "outside"
        dates = str(release.built), str(release.age_days), f" {release.jax}", runs, str(release.promised_until)
        rows.append((release.jaxlib, *dates, by_newest))
    yield from aligned(rows, {2}, least=(10, 12, 8, 11, 29), gap=" ")
    for version, reason in calendar.withdrawn.items():
        yield f"{version:<10} withdrawn: {reason or 'no reason given'}"


def runtime_lines(name: str, calendar: Calendar) -> Iterator[str]:
    """Yield lines that say what a runtime is and what it promises, then a line for each of its releases.

    Raises `ReleaseError` for an unknown runtime.
    """
    runtime = runtime_named(name)
    yield f"{name}: {runtime.about}"
    if runtime.promise:
        yield (
            f"promises to read artifacts of writers up to {plural(runtime.promise.backward_days, 'day')} older and "
            f"{plural(runtime.promise.forward_days, 'day')} younger: {runtime.promise.source}"
        )
    else:
        yield "promises nothing: only a deployment target of the policy requires anything of it"
    rows: list[tuple[str, ...]] = [(name, "built", "StableHLO", "calling convention", "dialects", "CPython")]
    for version, release in runtime.known(calendar).items():
        most = f"up to {release.convention}" if release.convention else "any"
        known = release.stablehlo or "not measured", most, ", ".join(release.dialects)
        rows.append((version, str(release.built), *known, ", ".join(release.python)))
    yield from aligned(rows)
