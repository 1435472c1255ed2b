"""The difference between a run and its baseline, cell by cell: regressed, fixed, new, gone, changed, unchanged.

Also how reports show it: as findings, as a section of the page, and as JSON.
"""

import datetime
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from export_core.base.leaf_names import without_paths
from export_core.base.text import few, first_line, plural
from export_core.judge.cost import FIGURES, CostChange, change_in
from export_core.judge.gate import BONUS_LOST, exit_code_of, lost_bonuses, summarize
from export_core.judge.judgement import judge_again
from export_core.matrix import Verdict
from export_core.matrix.result import Result, WriterOf, by_build_date, existed_on, grouped
from export_core.matrix.verdicts import WORST_FIRST, FindingKind, Judgement
from export_core.policy import Policy
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Direction, Release
from export_core.releases.names import title_of
from export_core.report.document import Finding, RunDifference, by_kind, capped
from export_core.report.page_data import cell_link, filter_link, measured_in
from export_core.report.wording import amount, counts_line, evidence, first_lines, writer_and_reader
from export_core.run.errors import IncompleteResults, RunError
from export_core.run.results import read_run
from export_core.run.run import Run, by_rules, names_of_runs

_NO_RESULT = Judgement.INCOMPLETE.facts.badness


class Change(StrEnum):
    """How a cell changed from one run to the next."""

    REGRESSED = "regressed"  # It worked before and fails now.
    FIXED = "fixed"  # It failed before and works now.
    NEW = "new"  # Only the new run has it.
    GONE = "gone"  # Only the earlier run has it.
    CHANGED = "changed"  # It has a different verdict, stage or judgement, neither better nor worse.
    UNCHANGED = "unchanged"  # The same as before.


@dataclass(frozen=True)
class CellDifference:
    """A cell in two runs: `then` is its result in the baseline, `now` in the new run, None if a run lacks it.

    `other_golden` is whether its golden differs between the runs: then the change may come from the golden.
    """

    change: Change
    then: Result | None
    now: Result | None
    other_golden: bool = False

    @property
    def result(self) -> Result:
        """The result in the new run, or that of the baseline if the new run lacks the cell."""
        newer = self.now or self.then
        assert newer
        return newer


@dataclass(frozen=True)
class BaselineDifference:
    """The difference between two runs, both judged by the policy of the new run.

    `caveats` are reasons why a change may not come from the cell itself. `now` is the new run; its exit code also
    counts lost bonuses and growth, if the policy forbids them. `grown` is the number of cells whose costs grew by more
    than a budget allows. The summary of the `baseline` is unchanged.
    """

    baseline: Run
    now: Run
    cells: list[CellDifference]
    caveats: list[str]
    grown: int = 0

    @property
    def costs(self) -> list[tuple[CellDifference, CostChange]]:
        """The figures that differ between the runs, each with its cell, the largest change first."""
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
        """How many cells there are of each kind of change, also of kinds without a cell."""
        counts = Counter(cell.change for cell in self.cells)
        return {str(change): counts[change] for change in Change}


def compare_with_baseline(run: Run, baseline: Path) -> BaselineDifference:
    """Compare a run with the earlier run in a folder.

    The earlier run is judged anew by the policy of the new run, so that no difference comes from a change of policy.

    Raises `RunError` if the baseline is not a finished run, is empty, is the new run itself, or shares no cell with it.
    """
    if run.folder and run.folder.resolve() == baseline.resolve():
        raise RunError(f"--baseline {baseline}: expected an earlier run, found the one that is judged.")
    policy = run.policy
    try:
        recorded = read_run(baseline)
    except IncompleteResults as error:  # the new run can be judged all the same
        raise RunError(f"--baseline: {error}") from None
    day = run.summary.as_of
    # A cell of a release that was built after the day of the new run is not gone from it.
    recorded = replace(recorded, results=[result for result in recorded.results if existed_on(result, day)])
    judged = by_rules([judge_again(result, policy, day) for result in recorded.results], policy)
    earlier = replace(recorded, results=judged)
    results = by_rules(run.results, policy, earlier.by_cell)
    # Both lists have the order of a run, and only the baseline differs in what the features' rules got.
    if grown := sum(now != alone for now, alone in zip(results, run.results, strict=True)):
        run = replace(run, results=results, summary=summarize(results, policy, run.summary))
    # Of runs without a common cell, everything would be new or gone, and nothing worse.
    old, new = earlier.by_cell, run.by_cell
    if old.keys().isdisjoint(new):
        expected = f"expected at least one cell that {run.folder} also has, found none"
        raise RunError(f"--baseline {baseline}: {expected}. Name another baseline.")
    other = {golden for golden, digest in run.goldens.items() if earlier.goldens.get(golden, digest) != digest}
    cells = [
        CellDifference(change_of(old.get(key), now), old.get(key), now, now.golden in other) for key, now in new.items()
    ]
    cells += [CellDifference(Change.GONE, then, None) for key, then in old.items() if key not in new]
    if lost := lost_bonuses([(cell.then, cell.now) for cell in cells], policy):
        summary = msgspec.structs.replace(run.summary, failed_on=[*run.summary.failed_on, *lost])
        run = replace(run, summary=msgspec.structs.replace(summary, exit_code=exit_code_of(summary)))
    return BaselineDifference(earlier, run, cells, [*_caveats(run, recorded, judged, other)], grown)


def _caveats(run: Run, earlier: Run, judged: Sequence[Result], other_goldens: set[str]) -> Iterator[str]:
    """Yield what makes two runs hard to compare: missing cells, and different settings, goldens or policies.

    `judged` are the results of the earlier run, judged by the policy of the new one.
    """
    for name, summary in (("the baseline", earlier.summary), ("this run", run.summary)):
        # Neither a cell that has no result at all nor one that was not run can be compared.
        missing = summary.planned - summary.results + summary.judgements.get(Judgement.INCOMPLETE, 0)
        if missing or summary.planned == 0:
            yield (
                f"{name} is incomplete: {missing} of {summary.planned} planned cells "
                f"{'has' if missing == 1 else 'have'} no result that counts"
            )
        if summary.shard:
            yield f"{name} is only shard {summary.shard.index}/{summary.shard.count} of its plan"
    now, then = run.plan, earlier.plan
    assert now
    assert then
    whole = ["whole" if plan.selection.get("whole") else "partial" for plan in (then, now)]
    keys = [key for key in {**now.selection, **then.selection} if key != "whole"]
    values: list[tuple[str, Any, Any]] = [
        ("as of", then.as_of, now.as_of),
        ("the run", whole[0], whole[1]),
        *((key, then.selection.get(key), now.selection.get(key)) for key in keys),
        *((key, then.limits.get(key, type(value)()), value) for key, value in now.limits.items()),
        ("newest jaxlib", earlier.summary.calendar.get("newest_jaxlib"), run.summary.calendar.get("newest_jaxlib")),
    ]
    different = [f"{name} {_text(old)}, now {_text(new)}" for name, old, new in values if old != new]
    if different:
        yield f"the baseline was planned otherwise: {'; '.join(different)}"
    if parts := earlier.changed_since():
        yield f"the baseline was made by {parts}"
    if other_goldens:
        yield (
            f"{plural(len(other_goldens), 'golden')} changed between the runs, such as {min(other_goldens)}: "
            "what changed in their cells may come from that"
        )
    before, policy = earlier.policy.without_locations(), run.policy.without_locations()
    if keys := [name for name in Policy.__struct_fields__ if getattr(before, name) != getattr(policy, name)]:
        changed = sum(old.judgement != new.judgement for old, new in zip(earlier.results, judged, strict=True))
        by_new = f"the baseline is judged by the policy of this run, which changes {plural(changed, 'judgement')}"
        yield f"another policy ({', '.join(keys)}): {by_new}"


def change_of(then: Result | None, now: Result) -> Change:
    """Return how a cell changed, by the order of judgements, then of verdicts.

    Both orders are tables in docs/how-to/compare-runs.md. A cell that did not run before is new, since there is nothing
    to compare it with. Only a cell that works now is fixed.
    """
    if then is None or (_level(then) == _NO_RESULT and _level(now) != _NO_RESULT):
        return Change.NEW
    if _badness(now) > _badness(then):
        return Change.REGRESSED
    if _level(now) == 0 < _level(then):
        return Change.FIXED
    return Change.UNCHANGED if _compared(now) == _compared(then) else Change.CHANGED


def _level(result: Result) -> int:
    # Outside the window a cell that was not run may be judged "outside": it has shown nothing all the same.
    return _NO_RESULT if result.verdict is Verdict.NOT_RUN else result.judgement.facts.badness


def _badness(result: Result) -> tuple[int, int]:
    """Return a sort key of a result, higher for worse.

    All cells that work have equal keys, whether they were run or only compiled.
    """
    level = _level(result)
    # WORST_FIRST ends with the best: the sign reverses its order.
    return level, -WORST_FIRST.index(result.verdict) if level else 0


def _compared(result: Result) -> tuple[str, ...]:
    """Return the parts of a result in which a difference counts as a change."""
    works = not _level(result)
    # The baseline may be by an older version, which named outputs by number alone.
    message = "" if works else without_paths("".join(result.message.strip().splitlines()[:1]))
    return str(result.judgement), str(result.verdict), str(result.mode), "" if works else str(result.stage), message


def _text(value: Any) -> str:
    """Return a setting of a run as text: `all` for an empty list, `none` for a setting that was not given."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "all"
    return "none" if value in (None, "") else str(value)


CAVEAT = FindingKind("CAVEAT", 0, "bold yellow")
CHANGED = {
    Change.REGRESSED: FindingKind("REGRESSED", 1, "bold red", is_open=True),
    Change.FIXED: FindingKind("fixed", 2, "green", is_open=True),
    Change.CHANGED: FindingKind("changed", 3),
    Change.NEW: FindingKind("new", 4),
    Change.GONE: FindingKind("gone", 5),
}
"""The kind of finding for each change that is reported."""
COST = FindingKind("cost", 6)  # The kind of the finding about changed costs.
_MOST = 20  # The most findings of each kind of change on the page.


class RunInShort(msgspec.Struct, frozen=True):
    """One of the two runs: what was planned, and how it ended."""

    as_of: datetime.date  # The day as of which it was judged.
    planned: int  # The number of planned cells.
    results: int  # The number of results.
    judgements: dict[str, int]  # Cells by judgement, as its own summary has them.
    exit_code: int  # Its exit code.
    plan: str  # The digest of its plan.


class CellState(msgspec.Struct, frozen=True):
    """The state of a cell in one run, judged by the policy of the new one."""

    judgement: Judgement  # What the verdict means, by the policy of the new run.
    verdict: Verdict  # What happened.
    mode: Mode  # run or compile.
    stage: Stage  # How far the cell got.
    message: str  # What happened in words.


class ChangedCell(msgspec.Struct, frozen=True):
    """A cell that changed."""

    change: Change  # How it changed.
    case: str  # The id of the case.
    golden: str  # The golden, `case/writer`.
    writer: WriterOf  # The release that exported it.
    reader: Release  # The release that ran it.
    platform: str  # The platform of the cell.
    direction: Direction  # Whether the reader was built after the writer, before it, or on the same day.
    days: int  # The days between the two build dates.
    promised: bool  # Whether the reader is inside the window of the writer.
    promised_until: datetime.date
    """The last build date of a reader in this direction that is promised: in forward direction the earliest day."""
    then: CellState | None  # Its state in the baseline; null for a cell that only the new run has.
    now: CellState | None  # Its state in the new run; null for a cell that only the baseline has.
    other_golden: bool  # Whether the golden of that name differs between the runs.
    reproduce: str  # The shell command that runs the cell of the newer result again.


class ChangedCost(msgspec.Struct, frozen=True):
    """A figure of the compiler that differs between the runs by more than a hundredth."""

    golden: str  # The golden, `case/writer`.
    reader: Release  # The release that ran it.
    platform: str  # The platform of the cell.
    change: CostChange  # The figure, with its old and new value.
    other_golden: bool  # Whether the golden of that name differs between the runs.


class BaselineReport(msgspec.Struct, frozen=True):
    """What `jaxexport judge NEW --baseline OLD --json` prints."""

    now: RunInShort  # The new run.
    baseline: RunInShort  # The earlier run.
    caveats: list[str]  # What makes the two runs hard to compare, a sentence each.
    counts: dict[str, int]  # Cells by change.
    cells: list[ChangedCell]  # All cells that changed.
    costs: list[ChangedCost] = []  # What changed in costs, the largest change first.


def compared(run: Run, *baselines: Path) -> RunDifference:
    """Return the difference from the newest of the runs in these folders; older runs are shown as its history.

    Raises `RunError` as `compare_with_baseline` does.
    """
    differences = [compare_with_baseline(run, baseline) for baseline in baselines]
    *older, newest = sorted(differences, key=lambda difference: difference.baseline.moment)
    return as_run_difference(newest, [difference.baseline for difference in older])


def as_run_difference(difference: BaselineDifference, older: Sequence[Run] = ()) -> RunDifference:
    """Return a difference as every medium shows it.

    `older` are runs before the baseline, judged by the same policy.
    """
    runs = [*older, difference.baseline, difference.now]
    in_runs = {key: [run.by_cell.get(key) for run in runs] for key in difference.now.by_cell}
    names = [f"{number}: {name}" for number, name in enumerate(names_of_runs(runs)[:-1], start=1)]
    changes, costs = list(_changes(difference)), list(_costs(difference))
    return RunDifference(
        line=baseline_line(difference),
        caveats=[Finding(CAVEAT, number, f"{text}.") for number, text in enumerate(difference.caveats)],
        changes=changes,
        others=costs,
        run=difference.now,
        before=difference.baseline,
        runs=[*names, "this run"],
        cells={
            key: ([_state(result) for result in results], [_change(*two) for two in itertools.combinations(results, 2)])
            for key, results in in_runs.items()
        },
        measured={key: [measured_in(result) for result in results] for key, results in in_runs.items()},
        section=partial(_section, difference, changes, costs),
        as_json=partial(baseline_report, difference),
    )


def _changes(difference: BaselineDifference) -> Iterator[Finding]:
    """Yield a finding for each change, the worst kind first; cells with the same change and cause share a finding."""
    for change, kind in CHANGED.items():
        alike = grouped((cell for cell in difference.cells if cell.change is change), _change_key)
        # Within a kind of change, the worst verdict first.
        groups = sorted(
            alike.values(), key=lambda group: (WORST_FIRST.index(group[0].result.verdict), group[0].result.golden_order)
        )
        yield from (_finding(group, kind, number) for number, group in enumerate(groups))


def _costs(difference: BaselineDifference) -> Iterator[Finding]:
    """Yield one finding with all changes of costs, the largest first, if there are any."""
    if not (costs := difference.costs):
        return
    lines = [
        f"{cell.result.golden} in {cell.result.reader.title}: {change.figure} "
        f"{amount(change.figure, change.was)} -> {amount(change.figure, change.now)}"
        for cell, change in costs
    ]
    goldens = plural(len({cell.result.golden for cell, _ in costs}), "golden")
    sentence = f"{plural(len(costs), 'figure')} of {goldens} changed, the largest first."
    yield Finding(COST, 0, sentence, (("figures", first_lines(lines)),), tuple(cell.result for cell, _ in costs))


def baseline_line(difference: BaselineDifference) -> str:
    """Return a line with the number of cells by kind of change, and the exit code."""
    baseline, now = difference.baseline.summary, difference.now.summary
    lost = [text for text in now.failed_on if text.startswith(BONUS_LOST)]
    lost += [f"{plural(difference.grown, 'cell')} grew by more than a budget allows"] if difference.grown else []
    size = plural(baseline.results, "cell")
    return (
        f"Since the baseline (as of {baseline.as_of}, {size}): {counts_line(difference.counts)}. "
        f"Exit code {now.exit_code}{': ' + '; '.join(lost) if lost else ' is that of the new run alone'}."
    )


def _change_key(cell: CellDifference) -> tuple[str, ...]:
    """Return the key by which changed cells share a finding: judgements and verdicts, platform, causes."""
    causes = (cell.then.cause if cell.then else "", cell.now.cause if cell.now else "")
    return _state(cell.then), _state(cell.now), str(cell.other_golden), cell.result.platform, *causes


def _finding(group: Sequence[CellDifference], kind: FindingKind, number: int) -> Finding:
    first, results = group[0], tuple(cell.result for cell in group)
    sentence = f"{writer_and_reader(results[0])}."
    if len(group) > 1:
        goldens = [golden for *_, golden in sorted({result.golden_order for result in results})]
        readers = by_build_date(result.reader for result in results)
        sentence = f"{len(group):,} cells: {few(goldens)} in {title_of(few(readers))}."
    details = [
        ("example", writer_and_reader(results[0]) if len(group) > 1 else ""),
        ("then", _state_line(first.then) or "not in the baseline"),
        ("now", _state_line(first.now) or "not in this run"),
        ("golden", "not the same as in the baseline" if first.other_golden else ""),
        *(pair for pair in evidence(results[0]) if pair[0] in ("window", "stderr", "reproduce")),
    ]
    return Finding(kind, number, sentence, tuple(pair for pair in details if pair[1].strip()), results)


def _state(result: Result | None) -> str:
    return f"{result.judgement}: {result.verdict}" if result else ""


def _change(then: Result | None, now: Result | None) -> str:
    """Return how a cell changed between any two runs; empty if neither run has it."""
    return str(change_of(then, now)) if now else str(Change.GONE) if then else ""


def _state_line(result: Result | None) -> str:
    if result is None or result.verdict.works:
        return _state(result)
    return f"{_state(result)} in stage {result.stage}: {first_line(result.message) or 'no message'}"


def _section(difference: BaselineDifference, changes: Sequence[Finding], costs: Sequence[Finding]) -> Markup:
    """Return the section of the report's page, with regressed and fixed cells first."""
    from export_core.report.page import part_of_page

    listed, more = capped(changes, _MOST)
    findings = by_kind(listed)
    return part_of_page(
        Path(__file__).with_name("comparison.html"),
        line=baseline_line(difference),
        caveats=difference.caveats,
        kinds=[
            (change, kind, difference.counts[change], findings[kind], more[kind])
            for change, kind in CHANGED.items()
            if kind in findings
        ],
        costs=costs,
        cells=difference.now.by_cell,
        filter_link=filter_link,
        cell_link=cell_link,
    )


def baseline_report(difference: BaselineDifference) -> BaselineReport:
    """Return the difference as data for JSON.

    Unchanged cells are left out, since they are nearly all of a large run.
    """
    runs = (difference.now, difference.baseline)
    now, baseline = (msgspec.convert(run.summary, RunInShort, from_attributes=True) for run in runs)
    changed = [
        msgspec.convert({**msgspec.structs.asdict(cell.result), **vars(cell)}, ChangedCell, from_attributes=True)
        for cell in difference.cells
        if cell.change is not Change.UNCHANGED
    ]
    costs = [
        ChangedCost(cell.result.golden, cell.result.reader, cell.result.platform, change, cell.other_golden)
        for cell, change in difference.costs
    ]
    return BaselineReport(now, baseline, difference.caveats, difference.counts, changed, costs)
