"""The difference between a run and its baseline, cell by cell: regressed, fixed, new, gone, changed, unchanged."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from export_core.base.escaping import json_bytes
from export_core.base.phrases import plural
from export_core.judge.cost import FIGURES, CostChange, change_in
from export_core.judge.gate import exit_code_of, lost_bonuses, summarize
from export_core.judge.judgement import judge_again
from export_core.judge.result import Result
from export_core.judge.verdicts import WORST_FIRST, Judgement
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.run.errors import IncompleteResults, RunError
from export_core.run.results import read_run
from export_core.run.run import Run, by_rules

_NO_RESULT = Judgement.INCOMPLETE.facts.badness


class Change(StrEnum):
    """How a cell changed from one run to the next."""

    REGRESSED = "regressed"  # It was fine and is not any more.
    FIXED = "fixed"  # It was not fine and is now.
    NEW = "new"  # Only the new run has it.
    GONE = "gone"  # Only the earlier run has it.
    CHANGED = "changed"  # Another verdict, stage or judgement, neither better nor worse.
    UNCHANGED = "unchanged"  # As it was.


@dataclass(frozen=True)
class CellDifference:
    """A cell in two runs: `then` is None where only the new one has it, `now` where only the old one has.

    `other_golden`: the golden that it replayed is not the same any more, so that the change may come from the golden.
    """

    change: Change
    then: Result | None
    now: Result | None
    other_golden: bool = False

    @property
    def result(self) -> Result:
        """The newer one."""
        newer = self.now or self.then
        assert newer
        return newer


@dataclass(frozen=True)
class BaselineDifference:
    """Two runs, both judged by the policy of the new one. `caveats`: why a change may not come from the cell itself.

    `now` is the new run, with the exit code that it has where the policy forbids to lose a bonus or to grow. The
    summary of the `baseline` is its own.
    """

    baseline: Run
    now: Run
    cells: list[CellDifference]
    caveats: list[str]

    @property
    def costs(self) -> list[tuple[CellDifference, CostChange]]:
        """The figures that are not the same in both runs, with their cells, the largest change first."""
        changes = [
            (cell, change)
            for cell in self.cells
            if cell.then and cell.now
            for figure in FIGURES
            if (change := change_in(cell.then, cell.now, figure))
        ]
        return sorted(changes, key=lambda item: item[1].size, reverse=True)

    @property
    def counts(self) -> dict[str, int]:
        """How many cells of each change, all of them named."""
        counts = Counter(cell.change for cell in self.cells)
        return {str(change): counts[change] for change in Change}


def compare_with_baseline(run: Run, baseline: Path) -> BaselineDifference:
    """Compare a run with the earlier one in a folder, which is judged by the policy of the new one.

    So no difference comes from another policy.

    Raises `RunError` for a baseline that is no finished run, is empty, is the new run itself, or has no cell that the
    new run has.
    """
    if run.folder and run.folder.resolve() == baseline.resolve():
        raise RunError(f"--baseline {baseline}: expected an earlier run, found the one that is judged.")
    policy = run.policy
    try:
        recorded = read_run(baseline)
    except IncompleteResults as error:  # the new run is not incomplete because of it
        raise RunError(f"--baseline: {error}") from None
    judged = by_rules([judge_again(result, policy, run.summary.as_of) for result in recorded.results], policy)
    earlier = replace(recorded, results=judged)
    if (grown := by_rules(run.results, policy, earlier.by_cell)) != run.results:
        run = replace(run, results=grown, summary=summarize(grown, policy, run.summary))
    # Of runs without a common cell, everything would be new or gone, and nothing worse.
    old, new = earlier.by_cell, run.by_cell
    if old.keys().isdisjoint(new):
        raise RunError(
            f"--baseline {baseline}: expected at least one cell that {run.folder} also has, found none. "
            "Name another baseline."
        )
    other_goldens = {golden for golden, digest in run.goldens.items() if earlier.goldens.get(golden, digest) != digest}
    cells = [
        CellDifference(change_of(old.get(cell), result), old.get(cell), result, result.golden in other_goldens)
        for cell, result in new.items()
    ]
    cells += [CellDifference(Change.GONE, result, None) for cell, result in old.items() if cell not in new]
    caveats = list(_caveats(run, recorded, other_goldens))
    before, now = recorded.policy.without_locations(), policy.without_locations()
    if keys := [name for name in Policy.__struct_fields__ if getattr(before, name) != getattr(now, name)]:
        rejudged = sum(then.judgement != now.judgement for then, now in zip(recorded.results, judged, strict=True))
        caveats.append(
            f"another policy ({', '.join(keys)}): the baseline is judged by the policy of this run, which changes "
            f"{plural(rejudged, 'judgement')}"
        )
    if lost := lost_bonuses([(cell.then, cell.now) for cell in cells], policy):
        summary = msgspec.structs.replace(run.summary, failed_on=[*run.summary.failed_on, *lost])
        run = replace(run, summary=msgspec.structs.replace(summary, exit_code=exit_code_of(summary)))
    return BaselineDifference(earlier, run, cells, caveats)


def _caveats(run: Run, earlier: Run, other_goldens: set[str]) -> Iterator[str]:
    """What besides the policy makes two runs hard to compare: missing cells, other settings, other goldens."""
    for name, summary in (("the baseline", earlier.summary), ("this run", run.summary)):
        # Neither a cell that has no result at all nor one that was not run can be compared.
        missing = summary.planned - summary.results + summary.judgements.get(Judgement.INCOMPLETE, 0)
        if missing or summary.planned == 0:
            yield f"{name} is incomplete: {missing} of {summary.planned} planned cells have no result that counts"
        if summary.shard:
            yield f"{name} is only shard {summary.shard.index}/{summary.shard.count} of its plan"
    now, then = run.plan, earlier.plan
    assert now
    assert then
    values: list[tuple[str, Any, Any]] = [
        ("tool", then.tool, now.tool),
        ("as of", then.as_of, now.as_of),
        *((key, then.selection.get(key), value) for key, value in now.selection.items()),
        *((key, then.limits.get(key, 0.0), value) for key, value in now.limits.items()),
        ("newest jaxlib", earlier.summary.calendar.get("newest_jaxlib"), run.summary.calendar.get("newest_jaxlib")),
    ]
    different = [f"{name} {_text(old)}, now {_text(new)}" for name, old, new in values if old != new]
    if different:
        yield f"another plan: {'; '.join(different)}"
    if other_goldens:
        yield (
            f"{plural(len(other_goldens), 'golden')} changed between the runs, such as {min(other_goldens)}: "
            "what changed in their cells may come from that"
        )


def change_of(then: Result | None, now: Result) -> Change:
    """By the order of judgements, then of verdicts: docs/how-to/compare-runs.md has both as tables.

    A cell that had not run has nothing to be compared with: its first result is new. Only what works now is called
    fixed.
    """
    if then is None or (_level(then) == _NO_RESULT and _level(now) != _NO_RESULT):
        return Change.NEW
    if _badness(now) > _badness(then):
        return Change.REGRESSED
    if _level(now) == 0 < _level(then):
        return Change.FIXED
    return Change.UNCHANGED if _state(now) == _state(then) else Change.CHANGED


def _level(result: Result) -> int:
    # Outside the window a cell that was not run may be judged "outside": it has shown nothing all the same.
    return _NO_RESULT if result.verdict is Verdict.NOT_RUN else result.judgement.facts.badness


def _badness(result: Result) -> tuple[int, int]:
    """The higher, the worse. All cells that work are equal: whether a device was there makes no difference."""
    level = _level(result)
    # WORST_FIRST ends with the best: the sign turns its places around.
    return level, -WORST_FIRST.index(result.verdict) if level else 0


def _state(result: Result) -> tuple[str, ...]:
    """All of a result that counts as a change."""
    works = not _level(result)
    message = "" if works else "".join(result.message.strip().splitlines()[:1])
    return str(result.judgement), str(result.verdict), str(result.mode), "" if works else str(result.stage), message


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else json_bytes(value).decode()
