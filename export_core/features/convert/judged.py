"""Conversion of the failing cells of a run: the field `healing` that `jaxexport matrix --convert` adds to results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from export_core.features.convert.healing import heal
from export_core.features.convert.modules import ModuleRewriter
from export_core.judge.result import Result
from export_core.readers.cell import Cell
from export_core.readers.placement import Mode

if TYPE_CHECKING:
    from export_core.matrix.replay_options import ReplayOptions


def with_healings(
    results: Sequence[Result],
    cells: Sequence[Cell],
    asked: RunOptions,
    options: ReplayOptions,
    notify: Callable[[str], None],
) -> Sequence[Result]:
    """With `--convert`, add the result of a conversion to each result of a cell that failed on a CPU.

    No judgement changes.

    Args:
        results: of the cells.
        cells: of the plan.
        asked: the options of the run.
        options: how converted artifacts are replayed.
        notify: called with a line about what happens meanwhile.
    """
    if not asked.convert:
        return results
    # Where the envelope is not enough.
    rewrite_modules = ModuleRewriter(options.calendar, notify)
    failing = {result.key for result in results if can_be_tried(result)}
    tried = [cell for cell in cells if cell.key in failing]
    healings = {cell.key: healing for cell, healing in heal(tried, rewrite_modules, options, notify)}
    return [structs.replace(result, healing=healings.get(result.key)) for result in results]


def can_be_tried(result: Result) -> bool:
    """Whether a cell fails in a way that conversion may heal: it was run on a CPU, and its artifact was there."""
    fails = result.verdict.fails
    return fails and result.platform == "cpu" and result.mode is Mode.RUN and not result.converted
