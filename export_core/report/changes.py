"""What is different from an earlier run, in sentences and as JSON: both verdicts, both dates, and the command to see it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from export_core.environments.placement import Mode
from export_core.judge import Judgement, Result, Summary
from export_core.judge.result import ReaderOf, WriterOf
from export_core.matrix import Verdict
from export_core.releases import Direction
from export_core.report.findings import Finding
from export_core.report.words import alike, evidence, few, first_line, listed, sides
from export_core.runs.baseline import WORST_FIRST, Change, Compared, Comparison
from export_core.worker.protocol import Stage

_TITLES = {
    Change.REGRESSED: "REGRESSED",
    Change.FIXED: "fixed",
    Change.CHANGED: "changed",
    Change.NEW: "new",
    Change.GONE: "gone",
}


class RunTold(msgspec.Struct, frozen=True):
    """One of the two runs. `judgements` are those that its own summary has; `plan` is the digest of its plan."""

    as_of: datetime.date
    planned: int
    results: int
    judgements: dict[str, int]
    exit_code: int
    plan: str


class Standing(msgspec.Struct, frozen=True):
    """What a cell was in one run, judged by the policy of the new one."""

    judgement: Judgement
    verdict: Verdict
    mode: Mode
    stage: Stage
    message: str


class ChangedCell(msgspec.Struct, frozen=True):
    """A cell that is not what it was. `then` is null for one that only the new run has, `now` for one that only the baseline has.

    `other_golden`: the golden of that name is not the same in both runs. `reproduce` is the command that runs the newer one again.
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
    then: Standing | None
    now: Standing | None
    other_golden: bool
    reproduce: str


class ComparisonTold(msgspec.Struct, frozen=True):
    """What `jaxexport judge NEW --baseline OLD --json` prints. `cells` are all but the unchanged ones."""

    now: RunTold
    baseline: RunTold
    caveats: list[str]
    counts: dict[str, int]
    cells: list[ChangedCell]


def told(comparison: Comparison) -> ComparisonTold:
    """A comparison as other programs read it."""
    changed = [_cell(each) for each in comparison.cells if each.change is not Change.UNCHANGED]
    return ComparisonTold(
        _run(comparison.now), _run(comparison.baseline), comparison.caveats, comparison.counts, changed
    )


def changes(comparison: Comparison) -> list[Finding]:
    """What stands between the two runs, then every change by kind, those that tell the same story together. The worst first."""
    found = [Finding((0, number, ""), "CAVEAT", f"{text}.") for number, text in enumerate(comparison.caveats)]
    for rank, (change, title) in enumerate(_TITLES.items(), 1):
        cells = [each for each in comparison.cells if each.change is change]
        found += [_finding(group, title, rank) for group in _same_story(cells)]
    return sorted(found, key=lambda finding: finding.rank)


def counted(comparison: Comparison) -> str:
    """The line that says how two runs compare."""
    counts = ", ".join(f"{count} {name}" for name, count in comparison.counts.items())
    return (
        f"Since the baseline (as of {comparison.baseline.as_of}, {comparison.baseline.results} cells): {counts}. "
        f"Exit code {comparison.now.exit_code} is that of the new run alone."
    )


def _same_story(cells: Sequence[Compared]) -> list[list[Compared]]:
    """Those with the same two judgements and verdicts, whose newer results are alike."""
    kinds: dict[tuple[str, str, bool], list[Compared]] = {}
    for each in cells:
        kinds.setdefault((_standing(each.then), _standing(each.now), each.other_golden), []).append(each)
    groups = []
    for kind in kinds.values():
        by_result = {id(each.result): each for each in kind}
        groups += [[by_result[id(result)] for result in group] for group in alike(each.result for each in kind)]
    return groups


def _finding(group: Sequence[Compared], title: str, rank: int) -> Finding:
    first = group[0]
    result = first.result
    lines = [f"{sides(result).rstrip(',')}."]
    if len(group) > 1:
        goldens = sorted({each.result.golden for each in group})
        readers = sorted({(each.result.reader.built, each.result.reader.jaxlib) for each in group})
        names = few([version for _, version in readers])
        lines = [f"{len(group)} cells: {few(goldens)} in jaxlib {names}.", *listed([("for one", lines[0].rstrip("."))])]
    lines += listed(
        [
            ("then", _told(first.then) or "not in the baseline"),
            ("now", _told(first.now) or "not in this run"),
            ("golden", "not the same as in the baseline" if first.other_golden else ""),
            *(pair for pair in evidence(result) if pair[0] in ("window", "stderr", "reproduce")),
        ]
    )
    worst = WORST_FIRST.index(result.verdict)
    results = tuple(each.result for each in group)
    return Finding((rank, worst, result.golden), title, "\n".join(lines), results)


def _standing(result: Result | None) -> str:
    return f"{result.judgement}: {result.verdict}" if result else ""


def _told(result: Result | None) -> str:
    if result is None:
        return ""
    if result.verdict in (Verdict.PASS, Verdict.COMPILED):
        return _standing(result)
    return f"{_standing(result)} in stage {result.stage}: {first_line(result.message) or 'no message'}"


def _run(summary: Summary) -> RunTold:
    return RunTold(summary.as_of, summary.planned, summary.results, summary.judgements, summary.exit_code, summary.plan)


def _cell(each: Compared) -> ChangedCell:
    result = each.result
    return ChangedCell(
        change=each.change,
        case=result.case,
        golden=result.golden,
        writer=result.writer,
        reader=result.reader,
        platform=result.platform,
        direction=result.direction,
        days=result.days,
        promised=result.promised,
        promised_until=result.promised_until,
        then=_as_standing(each.then),
        now=_as_standing(each.now),
        other_golden=each.other_golden,
        reproduce=result.reproduce,
    )


def _as_standing(result: Result | None) -> Standing | None:
    if result is None:
        return None
    return Standing(result.judgement, result.verdict, result.mode, result.stage, result.message)
