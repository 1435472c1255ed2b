"""What `jaxexport trend --cost` says to people: which figure changed between which releases, and how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_core.base.layout import aligned
from export_core.base.phrases import plural
from export_core.features.costs.cost_steps import Costs, CostStep
from export_core.judge.result import release_name
from export_core.report.wording import amount, times

MOST = 40
"""Lines with steps: goldens of a case that change alike share one."""


def cost_lines(costs: Costs) -> Iterator[str]:
    """A line for each step, the largest first; then how many have none here."""
    if not costs.goldens:
        yield "Nothing to compare: no golden has the costs of two releases. `jaxexport matrix --readers all` runs all."
        return
    yield (
        f"costs of {plural(costs.goldens, 'golden')} in {len(costs.readers)} releases by build date, from "
        f"{release_name(costs.readers[0])} to {release_name(costs.readers[-1])}: {plural(len(costs.steps), 'step')}"
    )
    alike: dict[tuple[str, ...], list[CostStep]] = {}
    for step in costs.steps:
        alike.setdefault((*_row(step), step.case), []).append(step)
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
