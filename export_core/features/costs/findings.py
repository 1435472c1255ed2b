"""The findings about costs: budgets that are exceeded, what no budget could measure, and cells that run slower."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from export_core.base.phrases import plural
from export_core.features.costs.over_budget import SLOWER, Budgets, Limit, own_cells, place_of, unmeasured
from export_core.features.costs.policy_key import BUDGETS
from export_core.judge import Judgement, Result, Summary
from export_core.judge.cost import CERTAIN, RunTimes, run_times
from export_core.judge.result import Exceeded, by_build_date
from export_core.judge.verdicts import Kind
from export_core.policy import Policy
from export_core.report.document import Finding
from export_core.report.wording import amount, exceeded_text, first_lines, ranges, writer_and_reader

NOT_MEASURED = Kind("NOT MEASURED", 7, "bold yellow")
SLOWER_CELLS = Kind("SLOWER", 8, "bold yellow", level="warning")
_TO_DO = "`jaxexport trend --cost` shows in which release it began. Then change the program or the budget."


def cost_findings(results: Sequence[Result], summary: Summary) -> Iterator[Finding]:
    """One finding for each limit, figure and platform that cells exceed; then what is only shown."""
    policy = msgspec.convert(summary.policy, Policy)
    if not BUDGETS.of(policy):
        return
    groups: dict[tuple[str, ...], list[tuple[Result, Exceeded]]] = defaultdict(list)
    for result in results:
        for exceeded in result.exceeded if result.judgement is Judgement.COSTLY else ():
            groups[exceeded.budget, exceeded.limit, exceeded.figure, exceeded.whose, result.platform].append(
                (result, exceeded)
            )
    readers = by_build_date(result.reader for result in results)
    for number, group in enumerate(sorted(groups.values(), key=lambda group: -len(group))):
        yield _over_budget(group, number, readers)
    for number, text in enumerate(unmeasured(results, policy)):
        yield Finding(NOT_MEASURED, number, text)
    yield from _slower(results, policy)


def _over_budget(group: Sequence[tuple[Result, Exceeded]], number: int, readers: Sequence[str]) -> Finding:
    worst, most = max(group, key=lambda pair: _ratio(pair[1]))
    goldens: dict[str, list[tuple[Result, Exceeded]]] = defaultdict(list)
    for result, exceeded in group:
        goldens[result.golden].append((result, exceeded))
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
        ("goldens", "\n".join(first_lines(lines)) if len(goldens) > 1 else ""),
        ("example", writer_and_reader(worst) if len(group) > 1 else ""),
        ("to do", _TO_DO),
        # Of a growth, one cell alone shows nothing.
        ("reproduce", worst.reproduce if most.against is None else ""),
    )
    texts = tuple(pair for pair in details if pair[1])
    kind = Judgement.COSTLY.facts.kind
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
    yield Finding(SLOWER_CELLS, 500_000, sentence, (("cells", "\n".join(first_lines(lines))),), cells)


def _ratio(exceeded: Exceeded) -> float:
    return exceeded.found / exceeded.allowed if exceeded.allowed else float("inf")
