"""The budgets of a policy: which promised cells work and cost more than they may.

A growth is measured against another cell, so this is asked of all results of a run at once, after it has ended.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from export_core.base.text import plural
from export_core.features.costs.exceeded import EXCEEDED, Exceeded
from export_core.features.costs.policy_key import BUDGETS, FIGURES, Budget
from export_core.judge.cost import cost_of, grows
from export_core.matrix.result import Result, Series
from export_core.matrix.verdicts import Judgement
from export_core.policy import Policy
from export_core.policy.entries import matches
from export_core.readers.cell import CellKey

GROWTH = "max_growth"


class Limit(NamedTuple):
    """A limit that applies to a cell: the key, its figure, its value, and the line of the policy that sets it."""

    key: str
    figure: str
    value: float
    location: str


def with_budgets(
    results: Iterable[Result], policy: Policy, baseline: Mapping[CellKey, Result] | None = None
) -> list[Result]:
    """Return the results, with promised cells that work and exceed a budget judged `over-budget`.

    Such a result has the exceeded limits.

    A growth is measured against the golden's cell in its own writer, if the run has that cell, and against the same
    cell of the `baseline`, if there is one.
    """
    # Facts of an earlier judgement are removed: this one's policy may have no budget.
    results = [
        replace(result, facts=EXCEEDED.put(result.facts, None)) if EXCEEDED.name in result.facts else result
        for result in results
    ]
    if not BUDGETS.of(policy):
        return results
    own, limits_of, judged = _own_cells(results), _limits_of_cells(policy), []
    for result in results:
        # Not every promised cell that works: one of a converted artifact stays a bonus.
        if result.promised and result.judgement in (Judgement.KEPT, Judgement.OVER_BUDGET):
            others = (("writer", own.get(result.series)), ("baseline", (baseline or {}).get(result.key)))
            exceeded = tuple(part for limit in limits_of(result) for part in _exceeded(result, limit, others))
            judgement = Judgement.OVER_BUDGET if exceeded else Judgement.KEPT
            judged.append(replace(result, judgement=judgement, facts=EXCEEDED.put(result.facts, exceeded or None)))
        else:
            judged.append(result)
    return judged


def _exceeded(result: Result, limit: Limit, others: Sequence[tuple[str, Result | None]]) -> Iterator[Exceeded]:
    """Yield the ways in which a cell exceeds a limit.

    A growth is measured against each result in `others`, which are named `writer` and `baseline`.
    """
    if (cost := cost_of(result, limit.figure)) is None:
        return
    if limit.key != GROWTH:
        if cost > limit.value:
            yield Exceeded(limit.key, limit.figure, limit.value, cost, limit.location)
        return
    for whose, other in others:
        was = cost_of(other, limit.figure)
        if was is not None and grows(was, cost, limit.figure, limit.value):
            yield Exceeded(limit.key, limit.figure, was * limit.value, cost, limit.location, was, whose)


def _own_cells(results: Iterable[Result]) -> dict[Series, Result]:
    """Return each golden's cells in the release that wrote it, on any platform, by `Result.series`."""
    return {result.series: result for result in results if result.reader == result.writer.release}


def unmeasured(results: Sequence[Result], policy: Policy) -> list[str]:
    """Return a sentence for each limit that could not be checked for some cells: for how many, and why."""
    own, limits_of = _own_cells(results), _limits_of_cells(policy)
    counts: Counter[tuple[str, str]] = Counter()
    for result in results:
        # Runtimes other than jaxlib report no costs.
        if result.promised and result.judgement.facts.works and not result.reader.runtime:
            for limit in limits_of(result):
                if why := _missing(result, own.get(result.series), limit):
                    counts[f"{limit.location}: {limit.key}", why] += 1
    return [f"{entry}: {plural(count, 'promised cell')} not measured: {why}." for (entry, why), count in counts.items()]


def _missing(result: Result, writer: Result | None, limit: Limit) -> str:
    """Return why a limit cannot be checked for a cell; empty if it can.

    `writer` is the golden's cell in its own writer, if the run has that cell.
    """
    if cost_of(result, limit.figure) is None:
        return f"the compiler reports no {limit.figure} of them"
    if limit.key == GROWTH and cost_of(writer, limit.figure) is None:
        return f"no {limit.figure} in the releases of their goldens' writers"
    return ""


def _limits_of_cells(policy: Policy) -> Callable[[Result], Sequence[Limit]]:
    """Return a function that returns a cell's limits, each from the first entry that matches and sets the limit."""
    budgets: Sequence[Budget] = BUDGETS.of(policy)

    # Many cells have the same case, writer, reader and platform, and matching globs is slow.
    @functools.cache
    def matching(case: str, writer: str, reader: str, platform: str) -> Sequence[Limit]:
        names = {"cases": case, "writers": writer, "readers": reader, "platforms": platform}
        limits: dict[tuple[str, str], Limit] = {}
        for budget in budgets:
            if all(any(matches(name, pattern) for pattern in getattr(budget, key)) for key, name in names.items()):
                own = {(limit.key, limit.figure): limit for limit in _limits_of(budget)}
                limits |= {key: limit for key, limit in own.items() if key not in limits}
        return list(limits.values())

    return lambda result: matching(result.case, result.writer.jaxlib, result.reader.name, result.platform)


def _limits_of(budget: Budget) -> Iterator[Limit]:
    location = Path(budget.location).name or "budgets"
    for figure in FIGURES:
        if (value := getattr(budget, f"max_{figure}")) is not None:
            yield Limit(f"max_{figure}", figure, value, location)
    for figure, growth in budget.growths().items():
        yield Limit(GROWTH, figure, growth, location)
