"""The reduction of the cell that a person chose: its environments are found or built first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from export_core.features.why.choice import Choice
from export_core.features.why.errors import WhyError
from export_core.features.why.reduction.record import ReductionFolder
from export_core.features.why.reduction.reduce import Environments, NotReproducedError, Reduced, reduce_cell
from export_core.matrix import Verdict
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.hardware import missing_hardware, resolve_mode
from export_core.readers.placement import Mode, Placement


def reduce_chosen(
    choice: Choice, good: str, folder: ReductionFolder, *, resume: bool, notify: Callable[[str], None]
) -> Reduced:
    """Reduce the cell of a choice.

    Args:
        choice: the cell, and how it is replayed.
        good: the jaxlib of the second reader; empty for the writer of the golden.
        folder: where the smallest program so far is kept.
        resume: continue the reduction that is in the folder.
        notify: called with a line about what happens.

    Raises:
        WhyError: nothing can be reduced.
        ReleaseError: there is no release `good`.
        EnvironmentFailed: a reader has no environment.
    """
    earlier = folder.earlier(resume=resume)  # before an environment is built
    cell = replace(choice.cell, mode=resolve_mode(choice.cell.mode, choice.cell.platform))
    if cell.mode is Mode.RUN and (problem := missing_hardware(cell.platform)):
        raise NotReproducedError(f"{cell.platform} cannot run here: {problem}. --platform {cell.platform}:compile may.")
    calendar = choice.plan.calendar
    jaxlib = good or cell.golden.manifest.writer.jaxlib
    second = calendar.release(jaxlib)
    if second == cell.reader and good:
        raise WhyError(f"--good {good}: is the release in which the cell fails. Name one in which it works.")
    options, policy = choice.options, choice.options.policy
    with ReaderEnvironments.of(policy, calendar, options.sources, notify=notify) as environments:

        def second_environment() -> Environment | None:
            if second == cell.reader:
                return None
            try:
                return environments.build(replace(cell.placement, reader=second))
            except EnvironmentFailed as error:
                known = choice.result.verdict if choice.result else None
                if good or known is Verdict.NUMERICS:
                    raise
                notify(f"without a second reader: {error}")
                return None

        used = Environments(
            environments.build(cell.placement),
            second_environment(),
            environments.build(Placement(calendar.release(calendar.newest()))),
        )
        return reduce_cell(cell, used, options, folder, earlier, notify=notify)
