"""The forecast: on which days something happens to the goldens, and what a release built on such a day must run.

For readers in use, also which goldens they are forecast to read and to run, by the goldens' bytes: nothing is run. All
is given as data, and as lines for people.
"""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from operator import itemgetter

import msgspec
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from export_core.artifact import Artifact
from export_core.base.text import few, plural
from export_core.goldens import Golden
from export_core.judge.custom_call_changes import status_of
from export_core.judge.known import entry_name
from export_core.judge.retention import (
    deletion_day,
    deployed_readers,
    leaves_window_on,
    readers_in_use,
    retention_status,
    retirement_day,
)
from export_core.knowledge import NO, YES
from export_core.knowledge import forecast as forecast_of
from export_core.matrix.result import grouped
from export_core.policy import Policy
from export_core.policy.entries import CustomCallChange, DeploymentTarget, KnownFailure, Quirk
from export_core.policy.load_check import find_reader
from export_core.policy.model import left_out_targets
from export_core.policy.run_options import COMPARISONS, GROUPS, Selection
from export_core.policy.terms import Terms
from export_core.releases import Calendar, Windows, promise
from export_core.releases.calendar_entries import calendar_entries
from export_core.releases.names import parts_of, title_of
from export_core.releases.runtimes import runtime_of

MOST = 3  # The most reasons in the line of a reader.


class EventKind(StrEnum):
    """What happens on a day."""

    LEAVES = "leaves"  # Goldens of a writer: no jaxlib built from this day on is promised to run them.
    CLOSES = "closes"  # A reader, any known release: no jaxlib built from this day on is promised to be read by it.
    RETIRES = "retires"  # A reader: no new jaxlib needs to run its exports, nor the goldens it is promised to run.
    PRUNABLE = "prunable"  # Goldens that nothing requires from this day on.
    EXPIRES = "expires"  # A known failure or a quirk: its last day.
    TARGET = "deployment target"  # A deployment target of the policy: its obligation begins, or has ended.
    CUSTOM_CALL = "custom_call"  # A declared change of a custom call: its next phase begins.


class Event(msgspec.Struct, frozen=True):
    """A dated event of a forecast, such as the day on which a window closes."""

    kind: EventKind
    """What happens. `kind` and `subject` stay the same if a later forecast moves the event to another day."""
    subject: str  # A jaxlib, a known failure, a deployment target or a custom call.
    text: str  # What happens, in words.
    goldens: tuple[str, ...] = ()  # The goldens that it is about.


DatedEvent = tuple[datetime.date, Event]


class Generation(msgspec.Struct, frozen=True):
    """The goldens of a writer with their window."""

    writer: str  # The jaxlib that wrote them.
    built: datetime.date  # The day on which it was built.
    leaves: datetime.date  # No jaxlib built from this day on is promised to run them.
    goldens: int  # How many goldens.


class Obligations(msgspec.Struct, frozen=True):
    """What a jaxlib built on a day must do, given the goldens and releases that exist."""

    runs: tuple[str, ...]  # The writers whose goldens it must run.
    goldens: int  # How many goldens those are.
    readers: tuple[str, ...]  # The published readers in which its own exports must run.
    cases: int  # The number of cases of which it has to write goldens.
    unwritten: dict[str, int]
    """For each published writer whose artifacts it must run: the number of cases without a golden by it."""


class DeployedReader(msgspec.Struct, frozen=True):
    """A reader in use."""

    jaxlib: str  # The jaxlib of the reader.
    built: datetime.date  # The day on which that was built.
    promised_until: datetime.date  # It is promised to run what jaxlibs built until this day export.
    writer: str  # The newest published release.
    writer_built: datetime.date  # The day on which that was built.
    promised: bool  # Whether it is promised to run what the newest release exports.
    days: int  # The days from the build of the newest release to `promised_until`; negative if that is earlier.
    last_writer: str  # The newest release whose exports it is promised to run.
    targets: tuple[str, ...] = ()  # The deployment targets of the policy in which it runs.


class ForeseenReader(msgspec.Struct, frozen=True):
    """A reader in use, and which goldens it is forecast to read and to run, of those that it has to run."""

    reader: str  # Its name, such as `tensorflow==2.21.0` or, of a jaxlib, `0.9.2`.
    targets: tuple[str, ...]  # The deployment targets of the policy in which it runs.
    promised: tuple[datetime.date, datetime.date] | None
    """It promises to read what jaxlibs export that were built from the first of these days to the last; null if it
    promises nothing."""
    goldens: int
    """How many goldens it has to run: those of its targets' cases and platforms, or all for the CPU if it has no
    target."""
    unread: dict[str, list[str]]  # The goldens that it may not read, by the first reason.
    not_run: dict[str, list[str]]  # The goldens that it reads but does not run, by the first reason.
    in_doubt: dict[str, list[str]]
    """The goldens that it reads and may not run, by the first reason: it fails at some such artifacts, or no run of
    such an artifact is known."""
    run_otherwise: dict[str, list[str]] = {}
    """The goldens that it runs, and perhaps not as their writer does, by the first reason: it may give other numbers,
    or accept what it should refuse."""


class ForecastDay(msgspec.Struct, frozen=True):
    """A day of a forecast with its events, and with what a jaxlib built that day must do."""

    day: datetime.date  # The day.
    in_days: int  # The days until then, from `as_of`.
    events: tuple[Event, ...]  # What happens.
    release: Obligations  # What a jaxlib built on that day must do.


class DaysAhead(msgspec.Struct, frozen=True):
    """What `jaxexport forecast --json` prints: the days ahead on which something happens."""

    as_of: datetime.date  # The first day.
    until: datetime.date  # The last day.
    goldens: int  # How many goldens there are.
    cases: int  # How many cases there are.
    generations: tuple[Generation, ...]  # All writers by build date, also those whose goldens have left the window.
    deployed: tuple[DeployedReader, ...]  # The readers in use.
    foreseen: tuple[ForeseenReader, ...]
    """The forecasts for other runtimes in use, and for jaxlibs in use that do not run some golden."""
    release: Obligations  # What a jaxlib built on `as_of` must do.
    prunable: tuple[str, ...]  # Goldens that nothing requires on that day.
    days: tuple[ForecastDay, ...]  # The days, in order.
    retired: tuple[str, ...] = ()  # The jaxlibs of the policy's `readers` that have retired by `as_of`.
    left_out: dict[str, str] = {}
    """Why deployment targets of the policy have to run nothing on `as_of`, by the target's name."""


def forecast(
    goldens: Sequence[Golden],
    policy: Policy,
    calendar: Calendar,
    as_of: datetime.date,
    days: int,
    deployed: Sequence[str] = (),
) -> DaysAhead:
    """Look ahead from `as_of`, with the goldens and releases that exist on that day.

    Args:
        goldens: The goldens of the project.
        policy: The policy.
        calendar: The releases.
        as_of: The first day.
        days: How many days to look ahead.
        deployed: Readers in use besides those of the policy: jaxlibs, releases of other runtimes, or names of
            deployment targets, also of targets that are not in force.

    Raises:
        ReleaseError: One of `deployed` does not exist on that day.
    """
    calendar = calendar.as_of(as_of)
    targets = {target.name: target for target in policy.deployed}
    named = [targets[name].jaxlib or targets[name].release if name in targets else name for name in deployed]
    versions = [name for name in named if "==" not in name]
    in_use = tuple(dict.fromkeys((*readers_in_use(policy, as_of), *versions)))
    # As if the policy named all of them: what is retained and retired depends on them too. Targets have an end anyway.
    own = tuple(dict.fromkeys((*policy.retention.deployed, *versions)))
    policy = replace(policy, retention=replace(policy.retention, deployed=own))
    here = [target for target in policy.deployed if target.name in deployed or target.in_force(as_of)]
    goldens = [golden for golden in goldens if golden.manifest.writer.built <= as_of]
    built = (target.release for target in policy.targets_on(as_of))
    runtimes = dict.fromkeys(name for name in (*built, *named) if "==" in name)
    left_out = {name: why for name, why in left_out_targets(policy, as_of).items() if name not in deployed}
    until, windows = as_of + datetime.timedelta(days=days), policy.window_lengths()
    return DaysAhead(
        as_of=as_of,
        until=until,
        goldens=len(goldens),
        cases=len({golden.manifest.case for golden in goldens}),
        generations=tuple(_generations(goldens, windows)),
        deployed=tuple(_deployed_reader(version, calendar, windows, here) for version in in_use),
        foreseen=tuple(foreseen_readers((*in_use, *runtimes), goldens, here, calendar)),
        release=_obligations(goldens, policy, calendar, as_of),
        prunable=_prunable(goldens, policy, calendar, as_of),
        days=tuple(_days_ahead(goldens, policy, calendar, as_of, until)),
        retired=tuple(_retired(goldens, policy, calendar, as_of)),
        left_out=left_out,
    )


def _generations(goldens: Sequence[Golden], windows: Windows) -> Iterator[Generation]:
    writers = ((group[0].manifest.writer.built, jaxlib, len(group)) for jaxlib, group in _by_writer(goldens).items())
    for built, jaxlib, count in sorted(writers):
        yield Generation(jaxlib, built, leaves_window_on(built, windows), count)


def _days_ahead(
    goldens: Sequence[Golden], policy: Policy, calendar: Calendar, as_of: datetime.date, until: datetime.date
) -> Iterator[ForecastDay]:
    windows = policy.window_lengths()
    coming = [
        *_writer_events(goldens, policy),
        *_reader_events(goldens, policy, calendar, as_of),
        *_expiry_events(policy),
        *_target_events(policy.deployed),
        *(event for change in policy.custom_call_changes for event in _custom_call_events(change, goldens, windows)),
    ]
    day_of = itemgetter(0)
    by_day = grouped((pair for pair in sorted(coming, key=day_of) if as_of <= pair[0] <= until), day_of)
    before = _prunable(goldens, policy, calendar, as_of)
    # Nothing becomes prunable on a day on which nothing else happens, if only to a reader that no test has.
    for day, pairs in by_day.items():
        retire = (event.subject for _, event in pairs if event.kind is EventKind.RETIRES)
        untested = {version for version in retire if not _is_tested(version, policy)}
        events = [event for _, event in pairs if event.kind is not EventKind.RETIRES or event.subject not in untested]
        now = _prunable(goldens, policy, calendar.as_of(day), day)
        if day > as_of and (new := tuple(golden for golden in now if golden not in before)):
            text = f"{plural(len(new), 'golden')} may be pruned from this day on: {few(new)}"
            events.append(Event(EventKind.PRUNABLE, "goldens", text, new))
        before = now
        if not events:
            continue
        yield ForecastDay(day, (day - as_of).days, tuple(events), _obligations(goldens, policy, calendar, day))


def _is_tested(version: str, policy: Policy) -> bool:
    """Return whether the `readers` of a policy include a jaxlib, by its version or by a group such as `window`."""
    return any(
        name in GROUPS
        or name.partition("[")[0].partition("-jax")[0] == version
        or (name[0] in COMPARISONS and SpecifierSet(name).contains(version, prereleases=True))
        for name in Selection(readers=policy.readers).named
    )


def _by_writer(goldens: Sequence[Golden]) -> dict[str, list[Golden]]:
    return grouped(goldens, lambda golden: golden.manifest.writer.jaxlib)


def _writer_events(goldens: Sequence[Golden], policy: Policy) -> Iterator[DatedEvent]:
    windows = policy.window_lengths()
    for jaxlib, group in _by_writer(goldens).items():
        built = group[0].manifest.writer.built
        leaves = leaves_window_on(built, windows)
        text = (
            f"writer {jaxlib} (built {built}) is outside the backward window of "
            f"{plural(windows.backward_days, 'day')}: no "
            f"jaxlib built from this day on is promised to run its {plural(len(group), 'golden')}"
        )
        if adopted := sum(not golden.manifest.test for golden in group):
            text += (
                f"; no test can export {adopted} of them again: keep a release that runs them, since `jaxexport "
                "convert` rewrites what a later one refuses, and extends no promise"
            )
        yield leaves, Event(EventKind.LEAVES, jaxlib, text, tuple(golden.id for golden in group))


def _reader_events(
    goldens: Sequence[Golden], policy: Policy, calendar: Calendar, as_of: datetime.date
) -> Iterator[DatedEvent]:
    windows = policy.window_lengths()
    for version in calendar.versions():
        # The last day of a window is still in it.
        closes = calendar.built(version) + datetime.timedelta(days=windows.forward_days + 1)
        text = (
            f"reader {version} (built {calendar.built(version)}), whether you test with it or not, is outside the "
            f"forward window of {plural(windows.forward_days, 'day')}: nothing that a jaxlib built from this day on "
            "exports is promised to run in it"
        )
        yield closes, Event(EventKind.CLOSES, version, text)
    for day, version in _retirements(goldens, policy, calendar, as_of):
        if day > as_of:
            text = (
                f"you may stop testing with reader {version}, unless it is in use (then list it under `deployed`): "
                f"from this day on, new jaxlibs need not run the goldens that {version} has to run, nor what {version} "
                "exports"
            )
            yield day, Event(EventKind.RETIRES, version, text)


def _retirements(
    goldens: Sequence[Golden], policy: Policy, calendar: Calendar, as_of: datetime.date
) -> Iterator[tuple[datetime.date, str]]:
    """Yield each jaxlib that is not deployed, as (day, version): from that day on, it need not be tested."""
    written = sorted({golden.manifest.writer.built for golden in goldens})
    in_use = deployed_readers(policy, as_of)
    for version in calendar.versions():
        day = retirement_day(calendar.built(version), written, policy.window_lengths())
        if day is not None and version not in in_use:
            yield day, version


def _retired(goldens: Sequence[Golden], policy: Policy, calendar: Calendar, as_of: datetime.date) -> Iterator[str]:
    for day, version in _retirements(goldens, policy, calendar, as_of):
        if day <= as_of and _is_tested(version, policy):
            yield version


def _expiry_events(policy: Policy) -> Iterator[DatedEvent]:
    entries: dict[str, Sequence[KnownFailure | Quirk]] = {
        "known_failures": policy.known_failures,
        "quirks": policy.quirks,
    }
    for table, own in entries.items():
        for number, entry in enumerate(own):
            if entry.expires is not None:
                text = f"last day of {entry_name(table, number, entry)}; from the next day on the exit code is 4"
                # By issue and scope: the number of an entry changes when another one is taken off the list.
                yield entry.expires, Event(EventKind.EXPIRES, f"{entry.issue} {_scope(entry)}", text)


def _target_events(targets: Sequence[DeploymentTarget]) -> Iterator[DatedEvent]:
    for target in targets:
        # The last day is still in it.
        ended = target.until and target.until + datetime.timedelta(days=1)
        for day, cases in ((target.since, "its cases"), (ended, "nothing any more")):
            if day is not None:
                text = f"from this day on, deployment target {target} has to run {cases}"
                yield day, Event(EventKind.TARGET, target.name, text)


def _custom_call_events(change: CustomCallChange, goldens: Sequence[Golden], windows: Windows) -> Iterator[DatedEvent]:
    new = change.new or "nothing"
    name = f"{change.old} → {new}"
    new_from = status_of(change, windows, change.introduced).new_from
    steps = {
        "introduced": (change.introduced if change.new else None, f"readers have {new} from this day on"),
        "exports": (new_from, f"exports may use {new} from this day on"),
        "release": (
            change.release,
            (
                f"the first release with {new}; readers must run {change.old} for "
                f"{plural(windows.backward_days, 'day')} more"
            ),
        ),
        "deletion": (deletion_day(change, goldens, windows), f"{change.old} may be deleted"),
    }
    for step, (day, text) in steps.items():
        if day is not None:
            sentence = f"custom call {name}: {text} (owner {change.owner}, {change.issue})"
            yield day, Event(EventKind.CUSTOM_CALL, f"{name} {step}", sentence)


def _scope(entry: KnownFailure | Quirk) -> str:
    """Return the text that distinguishes an entry of the policy from others of the same issue.

    The text does not name the entry's position in the policy, since it must not change between forecasts.
    """
    if isinstance(entry, Quirk):
        return f"{entry.case}/{entry.writer}"
    named = (entry.cases, ("by", *entry.writers), ("in", *entry.readers), ("on", *entry.platforms))
    return f"{' '.join(name for names in named for name in names)}: {entry.verdict} in {entry.stage}"


def _obligations(goldens: Sequence[Golden], policy: Policy, calendar: Calendar, day: datetime.date) -> Obligations:
    windows = policy.window_lengths()
    run = [golden for golden in goldens if promise(golden.manifest.writer.built, day, windows).promised]
    cases = {golden.manifest.case for golden in goldens}
    unwritten = {}
    for version in calendar.versions():
        have = {golden.manifest.case for golden in run if golden.manifest.writer.jaxlib == version}
        if promise(calendar.built(version), day, windows).promised and (missing := len(cases - have)):
            unwritten[version] = missing
    writers = {golden.manifest.writer.jaxlib: golden.manifest.writer.built for golden in run}
    return Obligations(
        runs=tuple(sorted(writers, key=lambda jaxlib: (writers[jaxlib], jaxlib))),
        goldens=len(run),
        readers=tuple(name for name in calendar.versions() if promise(day, calendar.built(name), windows).promised),
        cases=len(cases),
        unwritten=unwritten,
    )


def _deployed_reader(
    version: str, calendar: Calendar, windows: Windows, targets: Sequence[DeploymentTarget]
) -> DeployedReader:
    built, newest = calendar.built(version), calendar.newest()
    until = built + datetime.timedelta(days=windows.forward_days)
    writers = [release for release in calendar.versions() if calendar.built(release) <= until]
    newest_built = calendar.built(newest)
    return DeployedReader(
        jaxlib=version,
        built=built,
        promised_until=until,
        writer=newest,
        writer_built=newest_built,
        promised=promise(newest_built, built, windows).promised,
        days=(until - newest_built).days,
        last_writer=writers[-1] if writers else version,
        targets=tuple(target.name for target in targets if target.jaxlib == version),
    )


def _prunable(goldens: Sequence[Golden], policy: Policy, calendar: Calendar, day: datetime.date) -> tuple[str, ...]:
    retained = retention_status(goldens, policy, calendar, day)
    return tuple(golden.id for golden, reasons in retained if not reasons)


def foreseen_readers(
    names: Iterable[str], goldens: Sequence[Golden], targets: Sequence[DeploymentTarget], calendar: Calendar
) -> Iterator[ForeseenReader]:
    """Yield, for each of these releases, which goldens it is forecast to read and to run.

    A jaxlib is left out unless there is a golden that it does not read or does not run. Raises `ReleaseError` for
    a release that is not known.
    """
    terms = Terms(calendar_entries(calendar))
    read: dict[str, Artifact] = {}
    for name in names:
        promise = _promise_of(name, calendar) if "==" in name else None
        reader = find_reader(name, terms, calendar)
        own = [target for target in targets if name in (target.release, target.jaxlib)]
        # The window of a jaxlib needs no artifact: a missing file is no error here.
        needed = [golden for golden in goldens if "==" in name or golden.artifact.is_file()]
        here = [golden for golden in needed if _has_to_run(golden, own)]
        read |= {golden.id: golden.read_artifact() for golden in here if golden.id not in read}
        artifacts = {golden.id: read[golden.id] for golden in here}
        unread: dict[str, list[str]] = {}
        not_run: dict[str, list[str]] = {}
        in_doubt: dict[str, list[str]] = {}
        otherwise: dict[str, list[str]] = {}
        for golden, artifact in artifacts.items():
            known = forecast_of(artifact, reader, own[0].platform if own else "cpu")
            if known.loads.answer != YES:
                unread.setdefault(str(known.loads.reasons[0]), []).append(golden)
            elif known.runs.answer == NO:
                not_run.setdefault(str(known.runs.reasons[0]), []).append(golden)
            elif known.runs.answer != YES:
                in_doubt.setdefault(str(known.runs.reasons[0]), []).append(golden)
            elif known.numbers.answer != YES:
                otherwise.setdefault(str(known.numbers.reasons[0]), []).append(golden)
        if "==" in name or unread or not_run:
            targets_here = tuple(target.name for target in own)
            yield ForeseenReader(name, targets_here, promise, len(artifacts), unread, not_run, in_doubt, otherwise)


def _promise_of(name: str, calendar: Calendar) -> tuple[datetime.date, datetime.date] | None:
    """Return the first and last build date of jaxlibs whose exports a release of another runtime promises to read.

    None if the runtime promises nothing.
    """
    runtime = runtime_of(name)
    built, ends = runtime.release(parts_of(name)[1], calendar).built, runtime.promise
    if ends is None:
        return None
    return built - datetime.timedelta(ends.backward_days), built + datetime.timedelta(ends.forward_days)


def _has_to_run(golden: Golden, targets: Sequence[DeploymentTarget]) -> bool:
    runs_on, case = golden.manifest.runs_on, golden.manifest.case
    if not targets:
        return "cpu" in runs_on
    return any(target.must_run(case, runs_on) for target in targets)


# --- the text ---------------------------------------------------------------------------------------------------------


def forecast_lines(forecast: DaysAhead) -> Iterator[str]:
    """Yield lines about each day with events; where the obligations of a new release change, they are added."""
    goldens, cases = plural(forecast.goldens, "golden"), plural(forecast.cases, "case")
    yield f"{goldens} of {cases}, from {forecast.as_of} to {forecast.until}"
    yield from map(deployed_line, forecast.deployed)
    yield from map(foreseen_line, forecast.foreseen)
    yield from (f"{name}: left out, since {why}" for name, why in forecast.left_out.items())
    yield ""
    counted = plural(len(forecast.prunable), "golden")
    may_go = f"{counted} may be pruned (`jaxexport goldens prune`): {few(forecast.prunable)}"
    today = [Event(EventKind.PRUNABLE, "goldens", may_go)] if forecast.prunable else []
    if forecast.retired:
        are_several = len(forecast.retired) > 1
        them, in_use, has, exports = (
            ("them", "they are", "these have", "these export")
            if are_several
            else ("it", "it is", "it has", "it exports")
        )
        stop = (
            f"you may already stop testing with reader{'s' * are_several} {few(forecast.retired)}, unless {in_use} in "
            f"use (then list {them} under `deployed`): new jaxlibs need not run the goldens that {has} to run, nor "
            f"what {exports}; `goldens prune` keeps those goldens while `readers` lists {them} by version"
        )
        today.append(Event(EventKind.RETIRES, "readers", stop))
    before: Obligations | None = None
    for day in (ForecastDay(forecast.as_of, 0, tuple(today), forecast.release), *forecast.days):
        yield f"{day.day}  {({0: 'today', 1: 'tomorrow'}).get(day.in_days, f'in {day.in_days} days')}"
        for event in day.events:
            yield f"  {event.kind.replace('_', ' ')}: {event.text}"
        yield from _obligation_lines(day.release, before)
        before = day.release
    if not forecast.days and forecast.until > forecast.as_of:
        yield f"nothing happens until {forecast.until}"


def _obligation_lines(release: Obligations, before: Obligations | None) -> Iterator[str]:
    """Yield what a jaxlib built on a day has to do, as far as it differs from the day before.

    `before` is None for the first day, which also says what every new release asks of the project.
    """
    if before is None or (release.runs, release.goldens) != (before.runs, before.goldens):
        runs = f"has to run the {plural(release.goldens, 'golden')} by {', '.join(release.runs)}"
        yield f"  a jaxlib built on this day {runs if release.runs else 'does not have to run any golden that exists'}"
    if release.readers:
        if before is None or release.readers != before.readers:
            yield f"  what a jaxlib built on this day exports has to run in {', '.join(release.readers)}"
    elif before and before.readers:
        yield "  what a jaxlib built on this day exports does not have to run in any release that exists"
    if release.unwritten and (before is None or release.unwritten != before.unwritten):
        counts = (f"{version} ({plural(count, 'case')})" for version, count in release.unwritten.items())
        command = f"`jaxexport goldens backfill --writers {','.join(release.unwritten)}`"
        yield (
            "  a jaxlib built on this day also has to run what these writers export, though no golden of it exists: "
            f"{', '.join(counts)}{'' if before else f'; {command} writes them'}"
        )
    if before is None:
        yield f"  with each new jaxlib, write a golden of each case, now {release.cases}: later ones have to run them"


def deployed_line(reader: DeployedReader) -> str:
    """Return a line on which writers' artifacts a reader in use is still promised to run, without a full stop."""
    targets = f"{few(reader.targets)}: " if reader.targets else ""
    start = (
        f"{targets}reader {reader.jaxlib} (built {reader.built}) is promised to run what jaxlibs built until "
        f"{reader.promised_until} export; the last such release is {reader.last_writer}"
    )
    if reader.promised:
        return f"{start}, the newest"
    return (
        f"{start}; the newest, {reader.writer}, was built on {reader.writer_built}, "
        f"{plural(-reader.days, 'day')} too late"
    )


def foreseen_line(reader: ForeseenReader) -> str:
    """Return a line on the goldens that a reader is forecast to read and to run; no full stop ends the line."""
    targets = f"{few(reader.targets)}: " if reader.targets else ""
    unread, not_run, in_doubt = (
        sum(map(len, by_reason.values())) for by_reason in (reader.unread, reader.not_run, reader.in_doubt)
    )
    reads = reader.goldens - unread
    runs = reads - not_run - in_doubt
    of_all = f"{reads or 'none'} of {plural(reader.goldens, 'golden')}"
    parts = [f"{targets}{title_of(reader.reader)} is foreseen to read {of_all}, and to run {runs or 'none'}"]
    for by_reason, what in (
        (reader.unread, "Not read"),
        (reader.not_run, "Read, but not run"),
        (reader.in_doubt, "Read, but perhaps not run"),
        (reader.run_otherwise, "Run, but perhaps not as by the writer"),
    ):
        counted = sorted(((len(ids), reason) for reason, ids in by_reason.items()), reverse=True)
        shown = [f"{count} ({reason})" for count, reason in counted[:MOST]]
        others = sum(count for count, _ in counted[MOST:])
        shown += [f"{others} for other reasons"] if others else []
        parts += [f"{what}: {', '.join(shown)}"] if shown else []
    if reader.promised:
        first, last = reader.promised
        parts.append(f"It promises to read what jaxlibs built from {first} to {last} export")
    return ". ".join(parts)
