"""What a report says of costs: findings about budgets, a table of the newest figures, a line beside a row of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from export_core.base.phrases import plural, ranges
from export_core.features.costs.over_budget import SLOWER, Budgets, Limit, own_cells, place_of, unmeasured
from export_core.features.costs.policy_key import BUDGETS, GROWING
from export_core.judge import Judgement, Result
from export_core.judge.cost import CERTAIN, RunTimes, change_in, cost_of, run_times
from export_core.judge.result import Exceeded, by_build_date, grouped
from export_core.judge.verdicts import Kind
from export_core.policy import Policy
from export_core.readers.worker.protocol import Timings
from export_core.report.document import Finding, RowLine, Table
from export_core.report.wording import amount, exceeded_text, first_lines, times, writer_and_reader
from export_core.run.run import Run

NOT_MEASURED = Kind("NOT MEASURED", 7, "bold yellow")
SLOWER_CELLS = Kind("SLOWER", 8, "bold yellow", level="warning")
HEAD = ("cost of", "reader", "temp", "accessed", "flops", "instructions", "compile", "run")
_TO_DO = "`jaxexport trend --cost` shows in which release it began. Then change the program or the budget."


def cost_findings(run: Run) -> Iterator[Finding]:
    """One finding for each limit, figure and platform that cells exceed; then what is only shown."""
    if not BUDGETS.of(run.policy):
        return
    exceeding = run.by_judgement.get(Judgement.OVER_BUDGET, ())
    groups = grouped(
        ((result, exceeded) for result in exceeding for exceeded in result.exceeded),
        lambda pair: (pair[1].budget, pair[1].limit, pair[1].figure, pair[1].whose, pair[0].platform),
    )
    readers = by_build_date(run.readers)
    for number, group in enumerate(sorted(groups.values(), key=lambda group: -len(group))):
        yield _over_budget(group, number, readers)
    for number, text in enumerate(unmeasured(run.results, run.policy)):
        yield Finding(NOT_MEASURED, number, text)
    yield from _slower(run.results, run.policy)


def newest_costs(run: Run) -> Table | None:
    """What each golden costs in the newest release that compiled it; None where no cell says it."""
    newest = {}
    for result in sorted(run.results, key=lambda result: result.reader.date_order):
        if result.cost:
            newest[*result.golden_order, result.platform] = result
    return Table(HEAD, [_costs(result) for _, result in sorted(newest.items())]) if newest else None


def _costs(result: Result) -> tuple[str, ...]:
    figures = [(name, cost_of(result, name)) for name in ("temp_bytes", "bytes_accessed", "flops", "instructions")]
    timings = result.timings or Timings()
    seconds = [("run_seconds", timings.compile), ("run_seconds", median(timings.runs) if timings.runs else timings.run)]
    texts = ["-" if value is None else amount(name, value) for name, value in (*figures, *seconds)]
    where = "" if result.platform == result.writer.platform else f" on {result.platform}"
    return (f"{result.golden}{where}", result.reader.jaxlib, *texts)


def row_line(results: Sequence[Result]) -> RowLine | None:
    """The line of the cells of a row, by build date of the reader; None where memory and work stay the same.

    Of `GROWING`, the figure with the largest step is shown.
    """
    known = [result for result in results if result.cost]
    if len({result.cost for result in known}) < 2:
        return None
    steps = [
        (change, after)
        for before, after in pairwise(known)
        for figure in GROWING
        if (change := change_in(before, after, figure))
    ]
    if not steps:
        return None
    change, after = max(steps, key=lambda step: step[0].size)
    was, now = amount(change.figure, change.was), amount(change.figure, change.now)
    words = f"{change.figure} {was} -> {now} ({times(change.was, change.now)}) in {after.reader.jaxlib}"
    return words, tuple(cost_of(result, change.figure) for result in results)


def _over_budget(group: Sequence[tuple[Result, Exceeded]], number: int, readers: Sequence[str]) -> Finding:
    worst, most = max(group, key=lambda pair: _ratio(pair[1]))
    goldens = grouped(group, lambda pair: pair[0].golden)
    lines = []
    for golden, cells in goldens.items():
        versions = by_build_date(result.reader for result, _ in cells)
        largest = max((exceeded for _, exceeded in cells), key=_ratio)
        lines.append(f"{golden} in jaxlib {ranges(versions, readers)}: {exceeded_text(largest)}")
    limit = f"{most.limit} ({most.budget})"
    sentence = f"{plural(len(group), 'cell')} over {limit}: {lines[0]}."
    if len(goldens) > 1:
        sentence = (
            f"{plural(len(group), 'cell')} of {plural(len(goldens), 'golden')} over {limit}; the worst is "
            f"{worst.golden} in jaxlib {worst.reader.jaxlib}: {exceeded_text(most)}."
        )
    details = (
        ("goldens", first_lines(lines) if len(goldens) > 1 else ""),
        ("example", writer_and_reader(worst) if len(group) > 1 else ""),
        ("to do", _TO_DO),
        # Of a growth, one cell alone shows nothing.
        ("reproduce", worst.reproduce if most.against is None else ""),
    )
    texts = tuple(pair for pair in details if pair[1])
    kind = Judgement.OVER_BUDGET.facts.kind
    assert kind
    # Broken promises are of rank 0 too, and come first.
    return Finding(kind, 500_000 + number, sentence, texts, tuple(result for result, _ in group))


def _slower(results: Sequence[Result], policy: Policy) -> Iterator[Finding]:
    """Cells that run slower than in their golden's own writer, by more than `warn_slower`, and not by chance."""
    own, budgets = own_cells(results), Budgets(BUDGETS.of(policy))
    tested: list[tuple[Result, Limit, RunTimes]] = []
    for result in results:
        if not (result.promised and result.judgement.facts.works):
            continue
        writer = own.get(place_of(result))
        for limit in budgets.limits(result):
            if limit.key == SLOWER and writer and writer is not result and (test := run_times(writer, result)):
                tested.append((result, limit, test))
    # Of many cells some would look slower by chance alone: each has to be as unlikely as all of them may be.
    found = [
        (result, limit, test)
        for result, limit, test in tested
        if test.ratio > limit.value and test.chance * len(tested) < CERTAIN
    ]
    if not found:
        return
    found.sort(key=lambda item: -item[2].ratio)
    lines = [
        f"{result.golden} in jaxlib {result.reader.jaxlib}: {test.now / test.was:.3g} times, "
        f"{amount('run_seconds', test.was)} to {amount('run_seconds', test.now)} "
        f"({limit.key}: {limit.value:g}, {limit.location})"
        for result, limit, test in found
    ]
    sentence = (
        f"{plural(len(found), 'cell')} of {len(tested):,} run slower than in their goldens' own writers, by the "
        "medians of their repetitions and a rank test. It changes no judgement."
    )
    cells = tuple(result for result, _, _ in found)
    yield Finding(SLOWER_CELLS, 500_000, sentence, (("cells", first_lines(lines)),), cells)


def _ratio(exceeded: Exceeded) -> float:
    return exceeded.found / exceeded.allowed if exceeded.allowed else float("inf")
