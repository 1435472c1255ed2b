"""Which goldens must stay on a day, and why? The others may be pruned."""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from export_core.goldens import Golden
from export_core.judge.custom_calls import standing
from export_core.policy import CustomCallChange, Policy
from export_core.releases import Calendar, Windows, promise


@dataclass(frozen=True)
class Retained:
    """A golden with every reason why it stays, as sentences; with none it may be pruned."""

    golden: Golden
    reasons: tuple[str, ...]


def leaves_on(written: datetime.date, windows: Windows) -> datetime.date:
    """The first day on which a new jaxlib is not promised to run what was written by one built on `written`."""
    return written + datetime.timedelta(days=windows.backward_days + 1)


def readers_in_use(policy: Policy) -> tuple[str, ...]:
    """The jaxlib versions that the policy names as deployed, or as readers by number."""
    named = (part.strip().partition("-jax")[0] for part in policy.readers.split(","))
    single = (part for part in named if part not in ("", "window", "all") and not part.endswith(".whl"))
    return tuple(dict.fromkeys((*policy.retention.deployed, *single)))


def retirement(reader: datetime.date, written: Sequence[datetime.date], windows: Windows) -> datetime.date | None:
    """The first day on which a reader may be retired, or None where it is promised to run none of what was written.

    Then no new jaxlib is promised to run what its own release exports, nor any golden that it is promised to run.
    """
    days = [leaves_on(each, windows) for each in written if promise(each, reader, windows).promised]
    return max(*days, leaves_on(reader, windows)) if days else None


def live_readers(
    written: Sequence[datetime.date], calendar: Calendar, windows: Windows, day: datetime.date, in_use: Sequence[str]
) -> list[str]:
    """The releases that are still worth running on a day, oldest build first: those in use, and those not to be retired yet.

    Raises `ReleaseError` for one in use that the calendar does not have that day, and for a day before the first release.
    """
    then = calendar.as_of(day)
    then.newest()
    days = {version: retirement(then.built(version), written, windows) for version in then.versions()}
    live = {version for version, ends in days.items() if ends is not None and day < ends}
    return sorted(live | set(in_use), key=then.built)


def retained(goldens: Sequence[Golden], policy: Policy, calendar: Calendar, day: datetime.date) -> list[Retained]:
    """Every golden with why it stays on a day, in the order given.

    A golden stays while a jaxlib built that day must run it, while it is in the window of a live reader, while it calls a custom-call
    target that may not be deleted yet, when it is pinned, and when it is its case's last by a writer of its platform.
    """
    windows = policy.window_lengths()
    written = sorted({golden.manifest.writer.built for golden in goldens})
    live = live_readers(written, calendar, windows, day, readers_in_use(policy))
    built = {version: calendar.built(version) for version in live}
    old = {change.old: deletion(change, goldens, windows) for change in policy.custom_call_changes}
    last: dict[tuple[str, str], Golden] = {}
    for golden in goldens:
        kind = (golden.manifest.case, golden.manifest.writer.platform)
        last[kind] = max(golden, last.get(kind, golden), key=lambda each: (each.manifest.writer.built, each.id))
    found = []
    for golden in goldens:
        reasons = [*_in_a_window(golden, built, windows, day), *_calls(golden, old, day)]
        reasons += [
            f"pinned: {pin.reason}"
            for pin in policy.retention.pinned
            if any(_pins(pattern, golden) for pattern in pin.goldens)
        ]
        platform = golden.manifest.writer.platform
        if last[golden.manifest.case, platform] is golden:
            reasons.append(f"the last of its case by a writer on {platform}")
        found.append(Retained(golden, tuple(reasons)))
    return found


def pins_of_nothing(goldens: Sequence[Golden], policy: Policy) -> list[str]:
    """The pins that name no golden, a sentence each: what they should keep is misspelled, or gone."""
    return [
        f"retention.pinned[{number}] ({pin.reason}): {pattern!r} matches no golden."
        for number, pin in enumerate(policy.retention.pinned)
        for pattern in pin.goldens
        if not any(_pins(pattern, golden) for golden in goldens)
    ]


def _pins(pattern: str, golden: Golden) -> bool:
    return fnmatch.fnmatchcase(golden.id, pattern) or golden.id == pattern


def _in_a_window(golden: Golden, live: dict[str, datetime.date], windows: Windows, day: datetime.date) -> Iterator[str]:
    built = golden.manifest.writer.built
    if built > day:
        yield f"written by a jaxlib built on {built}, after {day}"
    elif day < leaves_on(built, windows):
        yield f"a jaxlib built on {day} must run it"
    readers = [version for version, when in live.items() if promise(built, when, windows).promised]
    if readers:
        yield f"promised to run in {', '.join(readers)}"


def _calls(golden: Golden, old: dict[str, datetime.date | None], day: datetime.date) -> Iterator[str]:
    for target, ends in old.items():
        if target in golden.manifest.custom_calls and (ends is None or day < ends):
            yield f"calls {target}, which readers run {f'until {ends}' if ends else 'as no release is declared'}"


def deletion(change: CustomCallChange, goldens: Sequence[Golden], windows: Windows) -> datetime.date | None:
    """The first day on which the old target of a change may go, as these goldens show its last writer."""
    calling = [golden.manifest.writer.built for golden in goldens if change.old in golden.manifest.custom_calls]
    return standing(change, windows, change.introduced, max(calling, default=None)).delete_from
