"""The table of costs in a terminal: what each golden costs in the newest release that compiled it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from export_core.base.layout import aligned
from export_core.judge import Result
from export_core.judge.cost import cost_of
from export_core.readers.worker.protocol import Timings
from export_core.report.wording import amount

HEAD: tuple[str, ...] = ("cost of", "reader", "temp", "accessed", "flops", "instructions", "compile", "run")


def newest_costs(results: Iterable[Result]) -> Iterator[str]:
    """A table of what each golden costs in the newest release that compiled it; nothing where no cell says it."""
    newest = {}
    for result in sorted(results, key=lambda result: result.reader.date_order):
        if result.cost:
            newest[*result.golden_order, result.platform] = result
    if newest:
        rows = [HEAD, *(_costs(result) for _, result in sorted(newest.items()))]
        yield from aligned(rows, right=range(1, len(HEAD)))


def _costs(result: Result) -> tuple[str, ...]:
    figures = [(name, cost_of(result, name)) for name in ("temp_bytes", "bytes_accessed", "flops", "instructions")]
    timings = result.timings or Timings()
    seconds = [("run_seconds", timings.compile), ("run_seconds", median(timings.runs) if timings.runs else timings.run)]
    texts = ["-" if value is None else amount(name, value) for name, value in (*figures, *seconds)]
    where = "" if result.platform == result.writer.platform else f" on {result.platform}"
    return (f"{result.golden}{where}", result.reader.jaxlib, *texts)
