"""Where the cost of goldens changes from release to release, by build date: `jaxexport trend --cost`, and its lines.

Shown and not judged. Nothing is compared here but the figures that a run recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from export_core.base.layout import aligned
from export_core.base.phrases import plural
from export_core.judge.cost import CERTAIN, FIGURES, CostChange, change_in, cost_of, run_times, runs_of
from export_core.judge.result import ReaderOf, Result, WriterOf, grouped, release_name
from export_core.report.wording import amount, times

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
    known = [result for result in results if result.cost or result.timings]
    known.sort(key=lambda result: (*_series(result), result.reader.date_order))
    series = list(grouped(known, _series).values())
    steps = [step for cells in series for step in _figure_steps(cells)]
    tested = [pair for cells in series for pair in pairwise(cell for cell in cells if runs_of(cell))]
    steps += _time_steps(tested)
    steps.sort(key=lambda step: (step.golden, step.platform, step.change.figure))
    steps.sort(key=lambda step: step.change.size, reverse=True)
    readers = sorted({result.reader for result in known}, key=lambda reader: reader.date_order)
    goldens = {cells[0].golden for cells in series if len(cells) > 1}
    return Costs(len(goldens), tuple(readers), tuple(steps))


def _series(result: Result) -> tuple[str, ...]:
    return result.case, str(result.writer.built), result.golden, result.platform, result.device, result.mode


def _figure_steps(cells: list[Result]) -> Iterator[CostStep]:
    for figure in FIGURES:
        before: Result | None = None
        for cell in cells:
            if cost_of(cell, figure) is None:
                continue
            if before and (change := change_in(before, cell, figure)):
                yield _step(before, cell, change)
            before = cell


def _time_steps(pairs: Sequence[tuple[Result, Result]]) -> Iterator[CostStep]:
    """Of cells in two releases next to each other that ran it again: those whose times are apart, and not by chance."""
    tests = [(*pair, test) for pair in pairs if (test := run_times(*pair))]
    for before, after, test in tests:
        # Of many tests some find a difference by chance alone: each has to be as unlikely as all of them may be.
        if not 1 / SLOWER < test.ratio < SLOWER and test.chance * len(tests) < CERTAIN:
            yield _step(before, after, CostChange("run_seconds", test.was, test.now), test.chance)


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
    alike = grouped(costs.steps, lambda step: (*_row(step), step.case))
    groups = list(alike.items())[:MOST]
    yield from aligned([(*row, _name(steps), where) for (*row, where, _), steps in groups], indent="  ")
    if rest := len(costs.steps) - sum(len(steps) for _, steps in groups):
        yield f"  and {plural(rest, 'smaller step')}: --json has all, --cases chooses"


def _name(steps: Sequence[CostStep]) -> str:
    """The golden, or the case where several generations of it changed alike."""
    return steps[0].golden if len(steps) == 1 else f"{steps[0].case}, {len(steps)} goldens"


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
