"""Where the cost of goldens changes from release to release, by build date: `jaxexport trend --cost`, and its lines.

Shown and not judged. Nothing is compared here but the figures that a run recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from export_core.base.layout import aligned
from export_core.base.phrases import plural
from export_core.judge.cost import CERTAIN, FIGURES, CostChange, change_in, cost_of, run_times, runs_of
from export_core.judge.result import ReaderOf, Result, WriterOf, release_name
from export_core.report.wording import amount, times
from export_core.run.run import Cells

SLOWER = 1.5
"""How many times slower or faster the repetitions of a cell are before that is a step."""

MOST = 40
"""Lines with steps: goldens of a case that change alike share one."""


class CostStep(msgspec.Struct, frozen=True, gc=False):
    """A figure of one golden on one platform that changes from one release to the next that says it."""

    case: str
    """The id of the case."""
    golden: str
    """The golden, `case/writer`."""
    writer: WriterOf
    """The release that exported it."""
    platform: str
    """The platform."""
    device: str
    """The kind of device; empty on a CPU."""
    before: ReaderOf
    """The last release with the figure as it was."""
    after: ReaderOf
    """The first release with the new one."""
    change: CostChange
    """The figure, and what it was and is."""
    chance: float | None = None
    """Of `run_seconds`: how likely the rank test finds such a difference by chance; null for the compiler's figures."""


class Costs(msgspec.Struct, frozen=True):
    """What a run shows of costs: how many goldens, in which releases, and each step, the largest first."""

    goldens: int
    """How many goldens have a figure of two releases."""
    readers: tuple[ReaderOf, ...]
    """The releases, oldest first."""
    steps: tuple[CostStep, ...]
    """The steps."""


def cost_steps(results: Iterable[Result]) -> Costs:
    """The steps of all goldens, the largest first.

    The compiler's figures are the same each time, and every change of more than a hundredth is a step. Run times are
    not: a step needs `--repeat`, times that are `SLOWER` times apart, and a rank test that says so also of all cells.
    """
    known = sorted(
        (result for result in results if result.cost or result.timings), key=lambda result: result.reader.date_order
    )
    series = list(Cells(known).by_series.values())
    steps = [step for cells in series for figure in FIGURES for step in _figure_steps(cells, figure)]
    repeated = [pair for cells in series for pair in pairwise(cell for cell in cells if runs_of(cell))]
    tests = [(*pair, test) for pair in repeated if (test := run_times(*pair))]
    for before, after, test in tests:
        # Of many tests some find a difference by chance alone: each has to be as unlikely as all of them may be.
        if not 1 / SLOWER < test.ratio < SLOWER and test.chance * len(tests) < CERTAIN:
            steps.append(_step(before, after, CostChange("run_seconds", test.was, test.now), test.chance))
    steps.sort(key=lambda step: (step.golden, step.platform, step.change.figure))
    steps.sort(key=lambda step: step.change.size, reverse=True)
    goldens = {cells[0].golden for cells in series if len(cells) > 1}
    return Costs(len(goldens), Cells(known).readers, tuple(steps))


def _figure_steps(cells: Sequence[Result], figure: str) -> Iterator[CostStep]:
    """The steps of a figure between releases that say it."""
    for before, after in pairwise(cell for cell in cells if cost_of(cell, figure) is not None):
        if change := change_in(before, after, figure):
            yield _step(before, after, change)


def _step(before: Result, after: Result, change: CostChange, chance: float | None = None) -> CostStep:
    named = after.case, after.golden, after.writer, after.platform, after.device
    return CostStep(*named, before.reader, after.reader, change, chance)


def cost_lines(costs: Costs) -> Iterator[str]:
    """A line for each step, the largest first; then how many have none here."""
    if not costs.goldens:
        yield "Nothing to compare: no golden has the costs of two releases. `jaxexport matrix --readers all` runs all."
        return
    yield (
        f"costs of {plural(costs.goldens, 'golden')} in {len(costs.readers)} releases by build date, from "
        f"{release_name(costs.readers[0])} to {release_name(costs.readers[-1])}: {plural(len(costs.steps), 'step')}"
    )
    # Goldens of a case that changed alike share a line.
    rows = [(*_row(step), step.case) for step in costs.steps]
    counts, goldens = Counter(rows), dict(zip(rows, (step.golden for step in costs.steps), strict=True))
    groups = list(counts.items())[:MOST]
    lines = []
    for row, count in groups:
        *texts, where, case = row
        lines.append((*texts, goldens[row] if count == 1 else f"{case}, {count} goldens", where))
    yield from aligned(lines, indent="  ")
    if rest := len(costs.steps) - sum(count for _, count in groups):
        yield f"  and {plural(rest, 'smaller step')}: --json has all, --cases chooses"


def _row(step: CostStep) -> tuple[str, ...]:
    """What a line says of a step but its golden: goldens of a case for which it is the same share one."""
    figure, was, now = step.change.figure, step.change.was, step.change.now
    releases = step.before.jaxlib, step.after.jaxlib
    if releases[0] == releases[1]:  # one jaxlib with two jax
        releases = f"{step.before.jaxlib} with jax {step.before.jax}", f"{step.after.jaxlib} with jax {step.after.jax}"
    where = [step.platform] * (step.platform != step.writer.platform) + [step.device] * bool(step.device)
    return (
        times(was, now),
        figure,
        f"{amount(figure, was)} -> {amount(figure, now)}",
        " -> ".join(releases),
        f"on {' '.join(where)}" if where else "",
    )
