"""The retention of goldens: which must stay on a day, and why. The others may be pruned."""

import datetime
from collections.abc import Iterator, Sequence

from export_core.goldens import Golden
from export_core.judge.custom_call_changes import ONE_DAY, status_of
from export_core.policy import Policy
from export_core.policy.entries import CustomCallChange
from export_core.releases import Calendar, Windows, promise


def leaves_window_on(written: datetime.date, windows: Windows) -> datetime.date:
    """Return the first day on which a new jaxlib need not run artifacts of a jaxlib built on the day `written`."""
    # The last day of a window is still in it.
    return written + datetime.timedelta(days=windows.backward_days + 1)


def deployed_readers(policy: Policy, day: datetime.date) -> tuple[str, ...]:
    """Return the jaxlibs that are deployed on a day: those of deployment targets, and of `retention.deployed`."""
    targets = (target.jaxlib for target in policy.targets_on(day) if target.jaxlib)
    return tuple(dict.fromkeys((*targets, *policy.retention.deployed)))


def listed_readers(policy: Policy) -> tuple[str, ...]:
    """Return the jaxlibs that `readers` of the policy lists by version."""
    # Versions of jaxlib only: words such as `window`, and other runtimes, begin with a letter. A wheel file is a
    # release candidate: it is tried, not deployed.
    names = (part.strip().partition("-jax")[0] for part in policy.readers.split(","))
    return tuple(dict.fromkeys(part for part in names if part[:1].isdigit() and not part.endswith(".whl")))


def readers_in_use(policy: Policy, day: datetime.date) -> tuple[str, ...]:
    """Return the jaxlib versions in use: those deployed on a day, and those that the policy's `readers` lists."""
    return tuple(dict.fromkeys((*deployed_readers(policy, day), *listed_readers(policy))))


def retirement_day(reader: datetime.date, written: Sequence[datetime.date], windows: Windows) -> datetime.date | None:
    """Return the first day on which a reader may be retired, or None if it is not promised to run any golden.

    From that day on, no new jaxlib is promised to run what the reader's own release exports, nor any golden that the
    reader is promised to run.

    Args:
        reader: The build date of the reader.
        written: The build dates of the goldens' writers.
        windows: The lengths of the windows.
    """
    days = [leaves_window_on(built, windows) for built in written if promise(built, reader, windows).promised]
    return max(*days, leaves_window_on(reader, windows)) if days else None


def live_readers(
    written: Sequence[datetime.date], calendar: Calendar, windows: Windows, day: datetime.date, in_use: Sequence[str]
) -> list[str]:
    """Return the jaxlibs to run on a day, oldest build first: those in use, and those that may not be retired yet.

    `written` are the build dates of the goldens' writers, and `in_use` are jaxlib versions. Raises `ReleaseError` if
    the calendar of that day is empty, or lacks a version in use.
    """
    calendar = calendar.as_of(day)
    calendar.newest()  # raises where the day is before the first release
    ends = {version: retirement_day(calendar.built(version), written, windows) for version in calendar.versions()}
    live = {version for version, end in ends.items() if end is not None and day < end}
    return sorted(live | set(in_use), key=calendar.built)


def retention_status(
    goldens: Sequence[Golden], policy: Policy, calendar: Calendar, day: datetime.date
) -> Iterator[tuple[Golden, list[str]]]:
    """Yield every golden with the reasons why it must stay on a day; a golden without a reason may be pruned.

    A golden must stay if a jaxlib built that day, a reader that is not retired or that `readers` lists, or a deployment
    target has to run it. A target counts even before its obligation begins. A golden must stay if it calls a
    custom-call target that may not be deleted yet. It also stays if it is pinned, or the newest golden of its case by a
    writer on its platform.
    """
    windows = policy.window_lengths()
    written = sorted({golden.manifest.writer.built for golden in goldens})
    live = live_readers(written, calendar, windows, day, deployed_readers(policy, day))
    listed = live_readers((), calendar, windows, day, listed_readers(policy))
    built = {version: calendar.built(version) for version in (*live, *listed)}
    deletable = {change.old: deletion_day(change, goldens, windows) for change in policy.custom_call_changes}
    newest: dict[tuple[str, str], Golden] = {}
    for golden in sorted(goldens, key=lambda golden: (golden.manifest.writer.built, golden.id)):
        newest[golden.manifest.case, golden.manifest.writer.platform] = golden
    for golden in goldens:
        manifest, written_on = golden.manifest, golden.manifest.writer.built
        reasons = []
        if written_on > day:
            reasons.append(f"written by a jaxlib built on {written_on}, after {day}")
        elif day < leaves_window_on(written_on, windows):
            reasons.append(f"a jaxlib built on {day} must run it")
        promised = [version for version, when in built.items() if promise(written_on, when, windows).promised]
        if readers := [version for version in promised if version in live]:
            reasons.append(f"promised to run in the live reader{'s' * (len(readers) > 1)} {', '.join(readers)}")
        elif retired := promised:
            names = f"reader{'s' * (len(retired) > 1)} {', '.join(retired)}"
            reasons.append(f"`readers` lists the retired {names}, promised to run it")
        for old, end in deletable.items():
            if old in manifest.custom_calls and (end is None or day < end):
                last = f"until the end of {end - ONE_DAY}" if end else "because no release is declared"
                reasons.append(f"calls {old}, which readers must run {last}")
        reasons += [f"pinned: {reason}" for reason in policy.retention.reasons_for(golden.names)]
        targets = [target for target in policy.deployed if day <= (target.until or day)]
        own = [target for target in targets if target.must_run(manifest.case, manifest.runs_on)]
        reasons += [f"must run in deployment target {target}" for target in own]
        if newest[manifest.case, manifest.writer.platform] is golden:
            reasons.append(f"the last of its case by a writer on {manifest.writer.platform}")
        yield golden, reasons


def deletion_day(change: CustomCallChange, goldens: Sequence[Golden], windows: Windows) -> datetime.date | None:
    """Return the first day on which a custom-call change's old target may be deleted; None while it has no release.

    The newest writer of a golden that calls the old target postpones that day.
    """
    calling = [golden.manifest.writer.built for golden in goldens if change.old in golden.manifest.custom_calls]
    return status_of(change, windows, change.introduced, max(calling, default=None)).delete_from
