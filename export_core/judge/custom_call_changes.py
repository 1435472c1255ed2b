"""Declared changes of custom-call targets: what must hold on a day, checked against the goldens of a run.

The life of such a change, from the jax.export documentation ("Ensuring forward and backward compatibility"): D - 1, D,
D + 21, RELEASE, RELEASE + 180, with the lengths of the policy's windows.
"""

import datetime
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from export_core.base.text import plural
from export_core.matrix import Verdict
from export_core.matrix.result import Result
from export_core.matrix.verdicts import Judgement
from export_core.policy.entries import CustomCallChange
from export_core.releases import Windows

ONE_DAY = datetime.timedelta(days=1)


class Phase(StrEnum):
    """A phase in the replacement or removal of a custom-call target.

    D is the day `introduced` of the declared change, and RELEASE its day `release`.
    """

    BEFORE = "before"  # Until D: only the old target exists.
    FORWARD = "forward window"  # Until D + 21: readers have both targets, and exports still use the old one.
    UNRELEASED = "unreleased"  # Exports may use the new target, and the backward window has not begun.
    BACKWARD = "backward window"  # Until the end of RELEASE + 180: readers still run the old target.
    OVER = "over"  # The old target may be deleted.


class ChangeStatus(NamedTuple):
    """What exports and readers must do about a declared change of a custom-call target on a day."""

    phase: Phase
    new_from: datetime.date  # The first day on which exports may use the new target instead of the old one.
    delete_from: datetime.date | None  # From when on the old target may be deleted; None without a declared release.
    must: tuple[str, ...]  # Two sentences: which target exports must use, and which targets readers must run.


class JudgedChange(msgspec.Struct, frozen=True):
    """A declared change of a custom-call target as of a day, checked against a run's goldens that existed that day."""

    old: str  # The target that is replaced or removed.
    new: str | None  # The new target; null if there is none.
    why: str  # Why it changes.
    phase: Phase  # The phase on that day.
    must: tuple[str, ...]  # What must hold on that day, a sentence each.
    broken: tuple[str, ...]  # Which goldens call the new target too early, a sentence each.
    goldens: tuple[str, ...]  # The goldens that call the old target.
    measured: tuple[str, ...]  # Those of them that a promised reader with the new lowering ran.
    cells: int  # The number of cells in which they ran.
    passed: int  # The number of those that passed.
    delete_from: datetime.date | None  # The day from which on these goldens may be pruned; null while it is not known.
    deleted: tuple[str, ...] = ()  # Which readers lack the old target too early, a sentence for each golden.


def status_of(
    change: CustomCallChange, windows: Windows, day: datetime.date, last_writer: datetime.date | None = None
) -> ChangeStatus:
    """Return the status of a declared change of a custom-call target on a day.

    Exports may use the new target one forward window after it was introduced, since all readers that must run them have
    it then. If nothing replaces the old target, exports may stop using it from `introduced` on.

    `last_writer` is the build date of the last writer known to export the old target; it postpones its deletion.
    """
    new_from = change.introduced + datetime.timedelta(days=windows.forward_days if change.new else 0)
    delete_from = None
    if change.release is not None:
        # The last promised reader is built at the end of the window, that day included: released on 1 February, it may
        # be deleted on 1 August. Never while exports must still use it, whatever the lengths of the windows.
        window = datetime.timedelta(days=windows.backward_days + 1)
        delete_from = max(change.release + window, new_from)
        if last_writer is not None:
            delete_from = max(delete_from, last_writer + window)
    if day < change.introduced:
        phase = Phase.BEFORE
    elif day < new_from:
        phase = Phase.FORWARD
    elif delete_from is not None and day >= delete_from:
        phase = Phase.OVER
    elif change.release is None or day < change.release:
        phase = Phase.UNRELEASED
    else:
        phase = Phase.BACKWARD
    exports = _exports_sentence(change, phase, new_from, windows)
    must = exports, _readers_sentence(change, phase, delete_from, windows)
    return ChangeStatus(phase, new_from, delete_from, must)


def judge_changes(
    results: Iterable[Result], changes: Sequence[CustomCallChange], windows: Windows, as_of: datetime.date
) -> list[JudgedChange]:
    """Check each declared change of a custom-call target against a run, and return the changes with their violations.

    Results whose writer or reader was built after `as_of` do not count.
    """
    # With --as-of a run may be judged for a day before some of its releases. Custom calls are those of jaxlib.
    of_jaxlib = (result for result in results if not result.reader.runtime)
    existing = [result for result in of_jaxlib if max(result.writer.built, result.reader.built) <= as_of]
    return [_judge(change, windows, as_of, existing) for change in changes]


def _judge(change: CustomCallChange, windows: Windows, day: datetime.date, results: Sequence[Result]) -> JudgedChange:
    calling_old = [result for result in results if change.old in result.custom_calls]
    status = status_of(change, windows, day, max((result.writer.built for result in calling_old), default=None))
    broken, deleted = {}, {}
    back = datetime.timedelta(days=windows.forward_days)
    for result in results:
        writer = result.writer
        if change.new in result.custom_calls and writer.built < status.new_from:
            broken[result.golden] = (
                f"{result.golden}, written by jaxlib {writer.jaxlib} (built {writer.built}), calls {change.new}: "
                f"expected {change.old} in exports until {status.new_from}. The golden is promised to readers built "
                f"since {writer.built - back}, and those built before {change.introduced} do not have {change.new}. "
                f"Let the lowering use {change.old} where ctx.is_forward_compat() is true, export without "
                "jax_export_ignore_forward_compatibility, or correct `introduced`."
            )
    last = status.delete_from
    until = f"until the end of {last - ONE_DAY}" if last else "as long as no release is declared"
    for result in calling_old:
        reader = result.reader
        # A reader of a golden outside its window may fail for many reasons, and only one is the target's.
        is_targets = result.judgement is Judgement.OUTSIDE and change.old in result.message
        if is_targets and (last is None or reader.built < last):
            deleted[f"{result.golden} in {reader.jaxlib}"] = (
                f"{result.golden} calls {change.old}, which jaxlib {reader.jaxlib} (built {reader.built}) does not "
                f"run: readers must run it {until}, whatever the window of a golden. Bring the target back, or correct "
                "`release`."
            )
    # Readers from before the change run the old target anyway: only those that could have dropped it measure anything.
    ran = [result for result in calling_old if result.promised and result.verdict is not Verdict.NOT_RUN]
    measuring = [result for result in ran if result.reader.built >= change.introduced]
    passed = [result for result in measuring if result.verdict is Verdict.PASS]
    return JudgedChange(
        old=change.old,
        new=change.new,
        why=f"{change.reason}; owner {change.owner}, {change.issue}",
        phase=status.phase,
        must=status.must,
        broken=tuple(broken[name] for name in sorted(broken)),
        goldens=_in_order(calling_old),
        measured=_in_order(passed),
        cells=len(measuring),
        passed=len(passed),
        delete_from=status.delete_from,
        deleted=tuple(deleted[name] for name in sorted(deleted)),
    )


def _in_order(results: Iterable[Result]) -> tuple[str, ...]:
    return tuple(golden for *_, golden in sorted({result.golden_order for result in results}))


def _exports_sentence(change: CustomCallChange, phase: Phase, new_from: datetime.date, windows: Windows) -> str:
    if phase is Phase.BEFORE:
        return f"exports use {change.old}; the change begins on {change.introduced}"
    if change.new is None:
        return f"exports no longer have to use {change.old} since {new_from}"
    if phase is Phase.FORWARD:
        return (
            f"exports use {change.old} until {new_from}, {plural(windows.forward_days, 'day')} after {change.new} was "
            f"introduced: readers built before {change.introduced} are still promised, and do not have it"
        )
    return f"exports may use {change.new} since {new_from}: every promised reader has it"


def _readers_sentence(
    change: CustomCallChange, phase: Phase, delete_from: datetime.date | None, windows: Windows
) -> str:
    run = f"readers run {change.new} too, and" if change.new and phase is not Phase.BEFORE else "readers run"
    days = plural(windows.backward_days, "day")
    if change.release is None or delete_from is None:
        return f"{run} {change.old}: no release is declared, so the {days} have not begun"
    if phase is Phase.OVER:
        return f"readers no longer have to run {change.old} since {delete_from}"
    end = f"the release of {change.release} and {days}"
    if delete_from > change.release + datetime.timedelta(days=windows.backward_days + 1):
        end += ", and longer because exports continued to use it"
    return f"{run} {change.old} until the end of {delete_from - ONE_DAY}: {end}"
