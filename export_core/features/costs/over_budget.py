"""The budgets of a policy: which promised cells work and cost more than they may.

A growth is measured against another cell, so this is asked of all results of a run at once, after it has ended.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from export_core.base.phrases import plural
from export_core.features.costs.policy_key import BUDGETS, FIGURES, Budget
from export_core.judge.cost import FEWEST_RUNS, cost_of, grows, runs_of
from export_core.judge.result import Exceeded, Result
from export_core.judge.verdicts import Judgement
from export_core.policy import Policy
from export_core.policy.entries import matches
from export_core.readers.cell import CellKey
from export_core.readers.placement import Mode

_Place = tuple[str, str, str, Mode]
GROWTH, SLOWER = "max_growth", "warn_slower"


class Limit(NamedTuple):
    """A limit that counts for a cell: the key, its figure, its value, and the line of the policy that sets it."""

    key: str
    figure: str
    value: float
    location: str

    @property
    def entry(self) -> str:
        """``export_compat.yaml:12: max_growth``."""
        return f"{self.location}: {self.key}"


def with_budgets(
    results: Iterable[Result], policy: Policy, baseline: Mapping[CellKey, Result] | None = None
) -> list[Result]:
    """The results; promised cells that work and exceed a budget are `over-budget`, with the limits that they exceed.

    A growth is measured against the golden's own writer, where the run has its cell, and against the same cell of a
    `baseline`.
    """
    results = list(results)
    if not BUDGETS.of(policy):
        return results
    own, budgets = own_cells(results), Budgets(BUDGETS.of(policy))
    return [_judged(result, budgets, own.get(place_of(result)), (baseline or {}).get(result.key)) for result in results]


def own_cells(results: Iterable[Result]) -> dict[_Place, Result]:
    """The cells of goldens in the release of their writer, by golden, platform, device and mode."""
    return {place_of(result): result for result in results if _read_by_writer(result)}


def place_of(result: Result) -> _Place:
    """What two cells of a golden have in common whose figures can be compared."""
    return result.golden, result.platform, result.device, result.mode


def unmeasured(results: Sequence[Result], policy: Policy) -> list[str]:
    """For each limit by which some cells could not be measured: how many, and why. A sentence each."""
    if not BUDGETS.of(policy):
        return []
    own, budgets = own_cells(results), Budgets(BUDGETS.of(policy))
    counts: Counter[tuple[str, str]] = Counter()
    for result in results:
        if result.promised and result.judgement.facts.works:
            for limit in budgets.limits(result):
                counts[limit.entry, _missing(result, own.get(place_of(result)), limit)] += 1
    return [
        f"{entry}: {plural(count, 'promised cell')} not measured: {why}."
        for (entry, why), count in counts.items()
        if why
    ]


def _missing(result: Result, writer: Result | None, limit: Limit) -> str:
    """What a cell lacks for a limit; empty where it lacks nothing."""
    if limit.key == SLOWER:
        enough = writer and min(len(runs_of(result)), len(runs_of(writer))) >= FEWEST_RUNS
        return "" if enough else f"it and its golden's own writer need `--repeat {FEWEST_RUNS}` or more"
    if cost_of(result, limit.figure) is None:
        return f"no {limit.figure} is known of them"
    if limit.key == GROWTH and cost_of(writer, limit.figure) is None:
        return f"no {limit.figure} is known of their goldens' own writers"
    return ""


class Budgets:
    """The limits of a policy, by cell."""

    def __init__(self, budgets: Sequence[Budget]) -> None:
        self._budgets = budgets
        # Many cells have the same case, writer, reader and platform, and matching globs is slow.
        self._matching = functools.cache(self._first_matching)

    def limits(self, result: Result) -> Sequence[Limit]:
        """The limits that count for a cell: each is that of the first entry that is about the cell and sets it."""
        return self._matching(result.case, result.writer.jaxlib, result.reader.jaxlib, result.platform)

    def _first_matching(self, case: str, writer: str, reader: str, platform: str) -> Sequence[Limit]:
        names = {"cases": case, "writers": writer, "readers": reader, "platforms": platform}
        limits: dict[tuple[str, str], Limit] = {}
        for budget in self._budgets:
            if all(any(matches(name, pattern) for pattern in getattr(budget, key)) for key, name in names.items()):
                for limit in _limits_of(budget):
                    limits.setdefault((limit.key, limit.figure), limit)
        return list(limits.values())


def _limits_of(budget: Budget) -> Iterator[Limit]:
    location = Path(budget.location).name or "budgets"
    for figure in FIGURES:
        if (value := getattr(budget, f"max_{figure}")) is not None:
            yield Limit(f"max_{figure}", figure, value, location)
    for figure, growth in budget.growths().items():
        yield Limit(GROWTH, figure, growth, location)
    if budget.warn_slower is not None:
        yield Limit(SLOWER, "runs", budget.warn_slower, location)


def _read_by_writer(result: Result) -> bool:
    """Whether the reader is the release of the golden's writer, on whichever platform."""
    return (result.writer.jax, result.writer.jaxlib) == (result.reader.jax, result.reader.jaxlib)


def _judged(result: Result, budgets: Budgets, writer: Result | None, before: Result | None) -> Result:
    # Not each promised cell that works: one of a converted artifact is a bonus, and stays one.
    if not (result.promised and result.judgement in (Judgement.KEPT, Judgement.OVER_BUDGET)):
        return result
    others = (("writer", writer), ("baseline", before))
    exceeded = tuple(
        exceeded
        for limit in budgets.limits(result)
        if limit.key != SLOWER
        for exceeded in _exceeded(result, limit, others)
    )
    return replace(result, judgement=Judgement.OVER_BUDGET if exceeded else Judgement.KEPT, exceeded=exceeded)


def _exceeded(result: Result, limit: Limit, others: Sequence[tuple[str, Result | None]]) -> Iterator[Exceeded]:
    """What of a limit a cell exceeds: the limit itself, or the growth against each of the others."""
    found = cost_of(result, limit.figure)
    if found is None:
        return
    if limit.key != GROWTH:
        if found > limit.value:
            yield Exceeded(limit.key, limit.figure, limit.value, found, limit.location)
        return
    for whose, other in others:
        was = cost_of(other, limit.figure)
        if was is not None and grows(was, found, limit.figure, limit.value):
            yield Exceeded(limit.key, limit.figure, was * limit.value, found, limit.location, was, whose)
