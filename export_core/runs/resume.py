"""The continuation of a run that was interrupted: which of its results still count, and which cells are left."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from export_core.judge.result import Result
from export_core.matrix import Cell, Plan, Verdict
from export_core.matrix.cell import CellKey
from export_core.runs.journal import Journal
from export_core.untrusted import decode_json


def results_so_far(journal: Journal, plan: Plan) -> list[Result]:
    """The results of the run, one for a cell; the journal has only these from now on. What was not run is left out."""
    planned = {cell.key for cell in plan.cells}
    results: dict[CellKey, Result] = {}

    def is_wanted(line: bytes) -> bool:
        try:
            result = decode_json(line, Result)
        except msgspec.MsgspecError:
            return False
        # A cell that was not run is run now: what failed around it may work today.
        if result.verdict is Verdict.NOT_RUN or result.key not in planned or result.key in results:
            return False
        results[result.key] = result
        return True

    journal.retain(is_wanted)
    return list(results.values())


def cells_left(plan: Plan, results: Iterable[Result]) -> list[Cell]:
    """The cells of a plan that have no result."""
    done = {result.key for result in results}
    return [cell for cell in plan.cells if cell.key not in done]
