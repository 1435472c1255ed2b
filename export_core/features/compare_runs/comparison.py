"""The difference from a baseline as reports show it: findings, a section of the page, JSON."""

import datetime
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from markupsafe import Markup

from export_core.base.phrases import few, first_line, plural
from export_core.features.compare_runs.baseline import BaselineDifference, CellDifference, Change, compare_with_baseline
from export_core.judge import Judgement, Result
from export_core.judge.cost import CostChange
from export_core.judge.gate import BONUS_LOST
from export_core.judge.result import ReaderOf, WriterOf, by_build_date, grouped
from export_core.judge.verdicts import WORST_FIRST, Kind
from export_core.matrix import Verdict
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Direction
from export_core.report.document import Comparison, Finding, by_kind, capped
from export_core.report.page_data import cell_link, filter_link
from export_core.report.wording import amount, counts_line, evidence, first_lines, writer_and_reader
from export_core.run.run import Run

CAVEAT = Kind("CAVEAT", 0, "bold yellow")
CHANGED = {
    Change.REGRESSED: Kind("REGRESSED", 1, "bold red", is_open=True),
    Change.FIXED: Kind("fixed", 2, "green", is_open=True),
    Change.CHANGED: Kind("changed", 3),
    Change.NEW: Kind("new", 4),
    Change.GONE: Kind("gone", 5),
}
"""The kinds of findings about a change."""
COST = Kind("cost", 6)  # The kind of the finding about changed costs.
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
    """What a cell was in one run, judged by the policy of the new one."""

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
    reader: ReaderOf  # The release that ran it.
    platform: str  # The platform of the cell.
    direction: Direction  # Whether the reader was built after the writer, before it, or on the same day.
    days: int  # The days between the two build dates.
    promised: bool  # Whether the reader is inside the window of the writer.
    promised_until: datetime.date  # The last build date of a reader in this direction that is promised.
    then: CellState | None  # What it was in the baseline; null for a cell that only the new run has.
    now: CellState | None  # What it is in the new run; null for a cell that only the baseline has.
    other_golden: bool  # The golden of that name is not the same in both runs.
    reproduce: str  # The shell command that runs the newer one again.


class ChangedCost(msgspec.Struct, frozen=True):
    """A figure of the compiler that is not the same in both runs, by more than a hundredth of it."""

    golden: str  # The golden, `case/writer`.
    reader: ReaderOf  # The release that ran it.
    platform: str  # The platform of the cell.
    change: CostChange  # The figure, and what it was and is.
    other_golden: bool  # The golden of that name is not the same in both runs.


class BaselineReport(msgspec.Struct, frozen=True):
    """What `jaxexport judge NEW --baseline OLD --json` prints."""

    now: RunInShort  # The new run.
    baseline: RunInShort  # The earlier run.
    caveats: list[str]  # What makes the two hard to compare, a sentence each.
    counts: dict[str, int]  # Cells by change.
    cells: list[ChangedCell]  # All cells but the unchanged ones.
    costs: list[ChangedCost] = []  # What changed in costs, the largest change first.


def compared(run: Run, baseline: Path) -> Comparison:
    """A run compared with the one in the folder `baseline`. Raises `RunError` as `compare_with_baseline` does."""
    return as_comparison(compare_with_baseline(run, baseline))


def as_comparison(difference: BaselineDifference) -> Comparison:
    """A difference as every medium shows it."""
    changes, costs = list(_changes(difference)), list(_costs(difference))
    return Comparison(
        line=baseline_line(difference),
        caveats=[Finding(CAVEAT, number, f"{text}.") for number, text in enumerate(difference.caveats)],
        changes=changes,
        others=costs,
        run=difference.now,
        before=difference.baseline,
        cells={
            cell.result.key: (str(cell.change), f"{cell.then.judgement}, {cell.then.verdict}" if cell.then else "")
            for cell in difference.cells
        },
        # What is gone has no cell in this run.
        counts={name: count for name, count in difference.counts.items() if count and name != Change.GONE},
        section=partial(_section, difference, changes, costs),
        as_json=partial(baseline_report, difference),
    )


def _changes(difference: BaselineDifference) -> Iterator[Finding]:
    """Every change by kind, the worst first; cells with one cause and one change are one finding."""
    for change, kind in CHANGED.items():
        alike = grouped((cell for cell in difference.cells if cell.change is change), _change_key)
        # Within a kind of change, the worst verdict first.
        groups = sorted(
            alike.values(), key=lambda group: (WORST_FIRST.index(group[0].result.verdict), group[0].result.golden_order)
        )
        yield from (_finding(group, kind, number) for number, group in enumerate(groups))


def _costs(difference: BaselineDifference) -> Iterator[Finding]:
    """All changes of costs in one finding, the largest first."""
    if not (costs := difference.costs):
        return
    lines = [
        f"{cell.result.golden} in {cell.result.reader.title}: {change.figure} "
        f"{amount(change.figure, change.was)} -> {amount(change.figure, change.now)}"
        for cell, change in costs
    ]
    goldens = plural(len({cell.result.golden for cell, _ in costs}), "golden")
    sentence = f"{plural(len(costs), 'figure')} of {goldens} changed, the largest first."
    cells = tuple(cell.result for cell, _ in costs)
    yield Finding(COST, 0, sentence, (("figures", first_lines(lines)),), cells)


def baseline_line(difference: BaselineDifference) -> str:
    """The counts of all changes, in one line."""
    baseline, now = difference.baseline.summary, difference.now.summary
    lost = [text for text in now.failed_on if text.startswith(BONUS_LOST)]
    grown = sum(any(part.whose == "baseline" for part in result.exceeded) for result in difference.now.results)
    lost += [f"{plural(grown, 'cell')} grew by more than a budget allows"] if grown else []
    return (
        f"Since the baseline (as of {baseline.as_of}, {baseline.results:,} cells): {counts_line(difference.counts)}. "
        f"Exit code {now.exit_code}{': ' + '; '.join(lost) if lost else ' is that of the new run alone'}."
    )


def _change_key(cell: CellDifference) -> tuple[str, ...]:
    """A key of changes that are one finding: equal judgements and verdicts in both runs, one platform, equal causes."""
    causes = (cell.then.cause if cell.then else "", cell.now.cause if cell.now else "")
    return _state(cell.then), _state(cell.now), str(cell.other_golden), cell.result.platform, *causes


def _finding(group: Sequence[CellDifference], kind: Kind, number: int) -> Finding:
    first, results = group[0], tuple(cell.result for cell in group)
    sentence = f"{writer_and_reader(results[0])}."
    if len(group) > 1:
        goldens = [golden for *_, golden in sorted({result.golden_order for result in results})]
        readers = by_build_date(result.reader for result in results)
        sentence = f"{len(group):,} cells: {few(goldens)} in jaxlib {few(readers)}."
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


def _state_line(result: Result | None) -> str:
    if result is None or result.verdict.works:
        return _state(result)
    return f"{_state(result)} in stage {result.stage}: {first_line(result.message) or 'no message'}"


def _section(difference: BaselineDifference, changes: Sequence[Finding], costs: Sequence[Finding]) -> Markup:
    """The section of the page: what regressed and what works again first; then both maps."""
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
        maps=both_maps(difference) if changes else [],
        cells=difference.now.by_cell,
        filter_link=filter_link,
        cell_link=cell_link,
    )


def both_maps(difference: BaselineDifference) -> list[tuple[str, Markup]]:
    """Both runs with the same rows and columns; what did not change is pale."""
    from export_core.report.map_svg import map_svg
    from export_core.report.run_tables import release_map, same_rows

    # What is new or gone is seen by itself: often it is a case, and would be in every square.
    in_both = (Change.REGRESSED, Change.FIXED, Change.CHANGED)
    changed = {cell.result.key for cell in difference.cells if cell.change in in_both}
    runs = difference.baseline, difference.now
    if not all(run.results for run in runs):
        return []
    then, now = same_rows(*(release_map(run, changed or None) for run in runs))
    return [
        (f"Then, as of {then.as_of}", Markup(map_svg(then))),
        (f"Now, as of {now.as_of}", Markup(map_svg(now, links=True))),
    ]


def baseline_report(difference: BaselineDifference) -> BaselineReport:
    """The difference as other programs read it, without unchanged cells: they are nearly all of a large run."""
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
