"""The small line beside a row of the page's table: a figure of the compiler that changes from reader to reader."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from export_core.features.costs.policy_key import GROWING
from export_core.judge import Result
from export_core.judge.cost import CostChange, change_in, cost_of
from export_core.report.wording import amount, times

CostLine = tuple[str, tuple[float | None, ...]]
"""What the line says in words, and the figure in each cell of the row, None where it is not known."""


def cost_line(results: Sequence[Result]) -> CostLine | None:
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
    figure = change.figure
    return _words(change, after), tuple(cost_of(result, figure) for result in results)


def _words(change: CostChange, after: Result) -> str:
    was, now = amount(change.figure, change.was), amount(change.figure, change.now)
    return f"{change.figure} {was} -> {now} ({times(change.was, change.now)}) in {after.reader.jaxlib}"
