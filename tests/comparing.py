"""Comparison of two runs in memory, as `jaxexport judge --baseline` compares them."""

from collections.abc import Sequence

from making import document, summarize

from export_core.features.compare_runs.comparison import (
    BaselineDifference,
    CellDifference,
    Change,
    as_run_difference,
    change_of,
)
from export_core.judge import Result
from export_core.report.document import Document
from export_core.run.run import Run


def difference(then: Sequence[Result], now: Sequence[Result], caveats: Sequence[str] = ()) -> BaselineDifference:
    """Build the difference of two whole runs with these results."""
    before, after = Run(then, summarize(then)), Run(now, summarize(now))
    cells = [
        CellDifference(change_of(before.by_cell.get(one.key), one), before.by_cell.get(one.key), one) for one in now
    ]
    cells += [CellDifference(Change.GONE, one, None) for one in then if one.key not in after.by_cell]
    return BaselineDifference(before, after, cells, list(caveats))


def compared(then: Sequence[Result], now: Sequence[Result], caveats: Sequence[str] = ()) -> Document:
    """Return the report of the new run, with its difference from the other one."""
    return document(now, summarize(now), as_run_difference(difference(then, now, caveats)))
