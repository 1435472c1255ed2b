"""The difference from a baseline, as findings and as JSON: both verdicts, both dates, and the command to reproduce."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from export_core.environments.placement import Mode
from export_core.judge import Judgement, Result, Summary
from export_core.judge.result import ReaderOf, WriterOf
from export_core.matrix import Verdict
from export_core.releases import Direction
from export_core.report.findings import Finding, goldens_and_readers
from export_core.report.wording import (
    counts_line,
    evidence,
    first_line,
    group_similar,
    labelled_lines,
    writer_and_reader,
)
from export_core.runs.baseline import WORST_FIRST, BaselineDifference, CellDifference, Change
from export_core.worker.protocol import Stage

_TITLES = {
    Change.REGRESSED: "REGRESSED",
    Change.FIXED: "fixed",
    Change.CHANGED: "changed",
    Change.NEW: "new",
    Change.GONE: "gone",
}


class ComparedRun(msgspec.Struct, frozen=True):
    """One of the two runs. `judgements` are those in its own summary; `plan` is the digest of its plan."""

    as_of: datetime.date
    planned: int
    results: int
    judgements: dict[str, int]
    exit_code: int
    plan: str


class CellState(msgspec.Struct, frozen=True):
    """What a cell was in one run, judged by the policy of the new one."""

    judgement: Judgement
    verdict: Verdict
    mode: Mode
    stage: Stage
    message: str


class ChangedCell(msgspec.Struct, frozen=True):
    """A cell that changed.

    `then` is null for a cell that only the new run has, `now` for one that only the baseline has. `other_golden`: the
    golden of that name is not the same in both runs. `reproduce` is the command that runs the newer one again.
    """

    change: Change
    case: str
    golden: str
    writer: WriterOf
    reader: ReaderOf
    platform: str
    direction: Direction
    days: int
    promised: bool
    promised_until: datetime.date
    then: CellState | None
    now: CellState | None
    other_golden: bool
    reproduce: str


class BaselineReport(msgspec.Struct, frozen=True):
    """What `jaxexport judge NEW --baseline OLD --json` prints. `cells` are all but the unchanged ones."""

    now: ComparedRun
    baseline: ComparedRun
    caveats: list[str]
    counts: dict[str, int]
    cells: list[ChangedCell]


def baseline_report(difference: BaselineDifference) -> BaselineReport:
    """The difference as other programs read it."""
    # Unchanged cells are counted only: they are nearly all of a large run.
    changed = [_changed_cell(cell) for cell in difference.cells if cell.change is not Change.UNCHANGED]
    runs = _compared_run(difference.now), _compared_run(difference.baseline)
    return BaselineReport(*runs, difference.caveats, difference.counts, changed)


def baseline_findings(difference: BaselineDifference) -> list[Finding]:
    """The caveats, then every change by kind, the worst first; similar cells with the same change are one finding."""
    collected = [Finding((0, number, ""), "CAVEAT", f"{text}.") for number, text in enumerate(difference.caveats)]
    for rank, (change, title) in enumerate(_TITLES.items(), 1):
        cells = [cell for cell in difference.cells if cell.change is change]
        collected += [_finding(group, title, rank) for group in _group_similar_changes(cells)]
    return sorted(collected, key=lambda finding: finding.rank)


def baseline_line(difference: BaselineDifference) -> str:
    """The counts of all changes, in one line."""
    baseline = difference.baseline
    return (
        f"Since the baseline (as of {baseline.as_of}, {baseline.results} cells): {counts_line(difference.counts)}. "
        f"Exit code {difference.now.exit_code} is that of the new run alone."
    )


def _group_similar_changes(cells: Sequence[CellDifference]) -> list[list[CellDifference]]:
    """Those with the same two judgements and verdicts, whose newer results are similar."""
    by_states: dict[tuple[str, str, bool], list[CellDifference]] = {}
    for cell in cells:
        by_states.setdefault((_state(cell.then), _state(cell.now), cell.other_golden), []).append(cell)
    groups = []
    for same_states in by_states.values():
        # `group_similar` knows results only; this maps them back to their cells.
        by_result = {cell.result: cell for cell in same_states}
        similar = group_similar(cell.result for cell in same_states)
        groups += [[by_result[result] for result in group] for group in similar]
    return groups


def _finding(group: Sequence[CellDifference], title: str, rank: int) -> Finding:
    first = group[0]
    result = first.result
    lines = [f"{writer_and_reader(result)}."]
    if len(group) > 1:
        lines = [
            f"{len(group)} cells: {goldens_and_readers([cell.result for cell in group])}.",
            *labelled_lines([("example", writer_and_reader(result))]),
        ]
    lines += labelled_lines(
        [
            ("then", _state_line(first.then) or "not in the baseline"),
            ("now", _state_line(first.now) or "not in this run"),
            ("golden", "not the same as in the baseline" if first.other_golden else ""),
            *(pair for pair in evidence(result) if pair[0] in ("window", "stderr", "reproduce")),
        ]
    )
    # Within a kind of change, the worst verdict first.
    worst = WORST_FIRST.index(result.verdict)
    return Finding((rank, worst, result.golden), title, "\n".join(lines), tuple(cell.result for cell in group))


def _state(result: Result | None) -> str:
    return f"{result.judgement}: {result.verdict}" if result else ""


def _state_line(result: Result | None) -> str:
    if result is None or result.verdict in (Verdict.PASS, Verdict.COMPILED):
        return _state(result)
    return f"{_state(result)} in stage {result.stage}: {first_line(result.message) or 'no message'}"


def _compared_run(summary: Summary) -> ComparedRun:
    return msgspec.convert(summary, ComparedRun, from_attributes=True)


def _changed_cell(cell: CellDifference) -> ChangedCell:
    result = cell.result
    return ChangedCell(
        change=cell.change,
        case=result.case,
        golden=result.golden,
        writer=result.writer,
        reader=result.reader,
        platform=result.platform,
        direction=result.direction,
        days=result.days,
        promised=result.promised,
        promised_until=result.promised_until,
        then=_cell_state(cell.then),
        now=_cell_state(cell.now),
        other_golden=cell.other_golden,
        reproduce=result.reproduce,
    )


def _cell_state(result: Result | None) -> CellState | None:
    return msgspec.convert(result, CellState, from_attributes=True) if result else None
