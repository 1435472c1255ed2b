"""What is different from an earlier run, cell by cell? Regressed, fixed, new, gone, changed otherwise, unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from export_core.judge.gate import Summary
from export_core.judge.judgement import judge_again
from export_core.judge.result import Judgement, Result
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.runs.errors import RunError
from export_core.runs.journal import PLAN, PlanRecord, recorded
from export_core.runs.results import read_run

WORST_FIRST = (
    *(Verdict.NUMERICS, Verdict.CRASH, Verdict.TIMEOUT, Verdict.ERROR, Verdict.REFUSED),
    *(Verdict.COMPILED, Verdict.PASS, Verdict.NOT_RUN),
)
"""Verdicts, from a silently wrong number down to what is no failure."""

_WORKS, _ACCEPTED, _BROKEN, _NO_RESULT = range(4)
_LEVELS = {
    Judgement.KEPT: _WORKS,
    Judgement.BONUS: _WORKS,
    Judgement.KNOWN: _ACCEPTED,
    Judgement.OUTSIDE: _ACCEPTED,
    Judgement.BROKEN: _BROKEN,
    Judgement.INCOMPLETE: _NO_RESULT,
}


class Change(StrEnum):
    """What became of a cell from one run to the next."""

    REGRESSED = "regressed"
    FIXED = "fixed"
    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Compared:
    """A cell in two runs: `then` is None where only the new one has it, `now` where only the old one has.

    `other_golden`: what it replayed is not the same golden any more, so that a change may be the golden's.
    """

    change: Change
    then: Result | None
    now: Result | None
    other_golden: bool = False

    @property
    def result(self) -> Result:
        """The newer one."""
        found = self.now or self.then
        assert found
        return found


@dataclass(frozen=True)
class Comparison:
    """Two runs beside each other, both judged by the policy of the new one. `caveats` say why a change may be none of the cell's own."""

    baseline: Summary
    now: Summary
    cells: list[Compared]
    caveats: list[str]

    @property
    def counts(self) -> dict[str, int]:
        """How many cells of each change, all of them named."""
        found = Counter(each.change for each in self.cells)
        return {str(change): found[change] for change in Change}


def compare_runs(
    folder: Path, baseline: Path, results: Sequence[Result], summary: Summary, policy: Policy
) -> Comparison:
    """Compare a run with an earlier one.

    Args:
        folder: that of the new run, where its plan is.
        baseline: that of the earlier one.
        results: of the new run, judged by `policy`.
        summary: of the new run.
        policy: by which the earlier one is judged again, so that what differs is what happened.

    Raises `RunError` for a baseline that is no finished run, is empty, is the new run itself, or has no cell that the new run has.
    """
    if folder.resolve() == baseline.resolve():
        raise RunError(f"--baseline {baseline}: expected an earlier run, found the one that is judged.")
    recorded_then, before = read_run(baseline)
    judged_then = [judge_again(result, policy) for result in recorded_then]
    old = {result.key: result for result in judged_then}
    if len(old) != len(recorded_then):
        raise RunError(
            f"--baseline {baseline}: expected each cell once, found {len(recorded_then)} results of {len(old)} cells. Run it again."
        )
    new = {result.key: result for result in results}
    if old.keys().isdisjoint(new):
        raise RunError(
            f"--baseline {baseline}: expected cells that {folder} has too, found none: there is nothing to compare."
        )
    plans = recorded(folder), recorded(baseline)
    other = _other_goldens(*plans)
    cells = [
        Compared(change_of(old.get(cell), result), old.get(cell), result, result.golden in other)
        for cell, result in new.items()
    ]
    cells += [Compared(Change.GONE, result, None) for cell, result in old.items() if cell not in new]
    rejudged = sum(then.judgement != now.judgement for then, now in zip(recorded_then, judged_then, strict=True))
    return Comparison(before, summary, cells, _caveats(before, summary, plans, other, rejudged, policy))


def change_of(then: Result | None, now: Result) -> Change:
    """The order of judgements, then of verdicts: docs/judging.md has it as a table.

    A cell that had not run has nothing to be compared with: its first result is new. Only what works now is called fixed.
    """
    if then is None or (_level(then) == _NO_RESULT and _level(now) != _NO_RESULT):
        return Change.NEW
    if _standing(now) > _standing(then):
        return Change.REGRESSED
    if _level(now) == _WORKS < _level(then):
        return Change.FIXED
    return Change.UNCHANGED if _told(now) == _told(then) else Change.CHANGED


def _level(result: Result) -> int:
    return _NO_RESULT if result.verdict is Verdict.NOT_RUN else _LEVELS[result.judgement]


def _standing(result: Result) -> tuple[int, int]:
    """The higher, the worse. What works, works: a device that is missing now, or was then, is no matter of better or worse."""
    level = _level(result)
    return level, 0 if level == _WORKS else -WORST_FIRST.index(result.verdict)


def _told(result: Result) -> tuple[str, ...]:
    works = _level(result) == _WORKS
    message = "" if works else "".join(result.message.strip().splitlines()[:1])
    return str(result.judgement), str(result.verdict), str(result.mode), "" if works else str(result.stage), message


def _other_goldens(now: PlanRecord | None, then: PlanRecord | None) -> set[str]:
    if now is None or then is None:
        return set()
    return {golden for golden, digest in now.goldens.items() if then.goldens.get(golden, digest) != digest}


def _caveats(
    then: Summary,
    now: Summary,
    plans: tuple[PlanRecord | None, PlanRecord | None],
    other: set[str],
    rejudged: int,
    policy: Policy,
) -> list[str]:
    found = []
    for name, run in (("the baseline", then), ("this run", now)):
        missing = run.planned - run.results + run.judgements.get(Judgement.INCOMPLETE, 0)
        if missing or run.planned == 0:
            found.append(f"{name} is incomplete: {missing} of {run.planned} planned cells have no result that counts")
        if run.shard:
            found.append(f"{name} is only shard {run.shard.index}/{run.shard.count} of its plan")
    found += _plans_differ(then, now, plans)
    if other:
        names = sorted(other)
        found.append(
            f"{len(names)} goldens are not what they were, such as {names[0]}: what changed of their cells may be the golden's doing"
        )
    if keys := _keys_that_differ(then, policy):
        found.append(
            f"another policy ({', '.join(keys)}): the baseline is judged by this one here, which makes {rejudged} of its judgements others"
        )
    return found


def _plans_differ(then: Summary, now: Summary, plans: tuple[PlanRecord | None, PlanRecord | None]) -> list[str]:
    this, other = plans
    if this is None or other is None:
        return [f"{PLAN} is missing in one of the runs: whether their goldens have the same bytes is not known"]
    parts: list[tuple[str, Any, Any]] = [
        ("tool", other.tool, this.tool),
        ("as of", other.as_of, this.as_of),
        *((key, other.selection.get(key), value) for key, value in this.selection.items()),
        *((key, other.limits.get(key), value) for key, value in this.limits.items()),
        ("newest jaxlib", then.calendar.get("newest_jaxlib"), now.calendar.get("newest_jaxlib")),
    ]
    told = [f"{name} {_spelled(old)}, now {_spelled(new)}" for name, old, new in parts if old != new]
    return [f"another plan: {'; '.join(told)}"] if told else []


def _keys_that_differ(then: Summary, policy: Policy) -> list[str]:
    try:
        old = msgspec.convert(then.policy, Policy).without_locations()
    except msgspec.MsgspecError:
        return ["of another version of pytest-jaxexport"]
    now = policy.without_locations()
    return [name for name in Policy.__struct_fields__ if getattr(old, name) != getattr(now, name)]


def _spelled(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else msgspec.json.encode(value).decode()
