"""The costs in a report: findings about budgets, a table of the newest figures, a line beside a row of cells."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from export_core.base.layout import aligned
from export_core.base.text import plural, ranges
from export_core.features.costs.exceeded import EXCEEDED, Exceeded
from export_core.features.costs.over_budget import unmeasured
from export_core.features.costs.policy_key import BUDGETS, GROWING
from export_core.judge import Judgement, Result
from export_core.judge.cost import CostChange, change_in, cost_of
from export_core.matrix.result import Cells, by_build_date
from export_core.matrix.verdicts import FindingKind
from export_core.readers.worker.protocol import Timings
from export_core.releases.names import title_of
from export_core.report.document import Finding, RowLine
from export_core.report.wording import amount, first_lines, named_folder, times, writer_and_reader
from export_core.run.run import Run

NOT_MEASURED = FindingKind("NOT MEASURED", 7, "bold yellow")
HEAD = ("cost of", "reader", "temp", "accessed", "flops", "instructions", "compile", "run")
_TO_DO = "`jaxexport report{} --trend cost` shows in which release it began. Then change the program or the budget."
_TO_DO_IN_PROGRAM = (
    "The writer's release exceeds it too, and so does every other that was measured: none of them began it. Change the "
    "program or the budget."
)


def cost_findings(run: Run) -> Iterator[Finding]:
    """Yield one finding for each limit, figure and platform that cells exceed; then what could not be measured."""
    if not BUDGETS.of(run.policy):
        return
    exceeding = [
        (result, part, (part.budget, part.limit, part.figure, part.whose, result.platform))
        for result in run.by_judgement.get(Judgement.OVER_BUDGET, ())
        for part in EXCEEDED.of(result.facts) or ()
    ]
    by_count = Counter(limit for *_, limit in exceeding).most_common()
    for number, (limit, _) in enumerate(by_count):
        yield _over_budget({result: part for result, part, own in exceeding if own == limit}, number, run)
    for number, text in enumerate(unmeasured(run.results, run.policy)):
        yield Finding(NOT_MEASURED, number, text)


def newest_costs(run: Run) -> list[str]:
    """Return what each golden costs in the newest release that compiled it, as the lines of a table.

    Empty if no result has costs.
    """
    newest = {}
    for result in sorted(run.results, key=lambda result: result.reader.date_order):
        if result.cost:
            newest[*result.golden_order, result.platform] = result
    rows: list[tuple[str, ...]] = [HEAD]
    for _, result in sorted(newest.items()):
        timings = result.timings or Timings()
        values = [(name, cost_of(result, name)) for name in ("temp_bytes", "bytes_accessed", "flops", "instructions")]
        values += [("run_seconds", timings.compile)]
        values += [("run_seconds", median(timings.runs) if timings.runs else timings.run)]
        where = "" if result.platform == result.writer.platform else f" on {result.platform}"
        texts = ["-" if value is None else amount(name, value) for name, value in values]
        rows.append((f"{result.golden}{where}", result.reader.name, *texts))
    return [*aligned(rows, right=range(1, len(HEAD)))] if newest else []


def row_line(results: Sequence[Result]) -> RowLine | None:
    """Return a sentence and a sparkline for a row of cells, by build date of the reader.

    They show the figure of `GROWING` with the largest step. None if memory and work stay the same.
    """
    if (step := largest_step(results)) is None:
        return None
    return step_in_words(*step), tuple(cost_of(result, step[0].figure) for result in results)


def largest_step(results: Sequence[Result]) -> tuple[CostChange, Result] | None:
    """Return the largest change of memory or work from one of these cells to the next, and the cell after it.

    None if nothing changes.
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
    return max(steps, key=lambda step: step[0].size, default=None)


def step_in_words(change: CostChange, after: Result) -> str:
    """Return a step as text: ``temp_bytes 84.5 MB -> 169.0 MB (x2.00) in 0.11.0``."""
    was, now = amount(change.figure, change.was), amount(change.figure, change.now)
    return f"{change.figure} {was} -> {now} ({times(change.was, change.now)}) in {after.reader.name}"


def _over_budget(exceeding: Mapping[Result, Exceeded], number: int, run: Run) -> Finding:
    """Return the finding about the cells that exceed one limit, each with its own excess; `number` orders findings."""
    worst = max(exceeding, key=lambda result: _ratio(exceeding[result]))
    goldens, readers = Cells([*exceeding]).by_golden, by_build_date(run.readers)
    lines = []
    for (golden, _), cells in goldens.items():
        versions = by_build_date(result.reader for result in cells)
        largest = max((exceeding[result] for result in cells), key=_ratio)
        lines.append(f"{golden} in {title_of(ranges(versions, readers))}: {largest}")
    limit = f"{exceeding[worst].limit} ({exceeding[worst].budget})"
    sentence = f"{plural(len(exceeding), 'cell')} over {limit}: {lines[0]}."
    if len(goldens) > 1:
        sentence = (
            f"{plural(len(exceeding), 'cell')} of {plural(len(goldens), 'golden')} over {limit}; the worst is "
            f"{worst.golden} in {worst.reader.title}: {exceeding[worst]}."
        )
    details = (
        ("goldens", first_lines(lines) if len(goldens) > 1 else ""),
        ("example", writer_and_reader(worst) if len(exceeding) > 1 else ""),
        ("to do", _TO_DO.format(named_folder(run.folder)) if _may_be_release(exceeding, run) else _TO_DO_IN_PROGRAM),
        # A growth cannot be reproduced with one cell alone.
        ("reproduce", worst.reproduce if exceeding[worst].against is None else ""),
    )
    kind = Judgement.OVER_BUDGET.facts.kind
    assert kind
    # Broken promises are of rank 0 too, and come first.
    return Finding(kind, 500_000 + number, sentence, tuple(pair for pair in details if pair[1]), tuple(exceeding))


def _may_be_release(exceeding: Mapping[Result, Exceeded], run: Run) -> bool:
    """Return whether a change of release may explain why cells exceed a limit.

    It may if a cell of the same golden in another release stays within the limit, or if the release of a golden's
    writer was not measured. Otherwise the program itself exceeds the limit, in every release.
    """
    parts = {result.series: part for result, part in exceeding.items() if result.reader == result.writer.release}
    for result in exceeding:
        if (own := parts.get(result.series)) is None:
            return True
        costs = ((cell, cost_of(cell, own.figure)) for cell in run.by_series[result.series] if cell not in exceeding)
        if any(cost is not None and cost <= own.allowed for _, cost in costs):
            return True
    return False


def _ratio(exceeded: Exceeded) -> float:
    return exceeded.found / exceeded.allowed if exceeded.allowed else float("inf")
