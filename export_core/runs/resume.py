"""Which results of a run that is resumed still count, and which cells are left?"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from export_core.judge.result import Result
from export_core.matrix import Cell, Plan, Verdict
from export_core.runs.journal import Journal


def results_so_far(journal: Journal, plan: Plan) -> list[Result]:
    """The results of a run that goes on, one for a cell; the journal holds just these from now on. What was not run is run now."""
    planned = {_of_cell(cell) for cell in plan.cells}
    found: dict[tuple[str, ...], Result] = {}

    def wanted(line: bytes) -> bool:
        try:
            result = msgspec.json.decode(line, type=Result)
        except msgspec.MsgspecError:
            return False
        name = _of_result(result)
        if result.verdict is Verdict.NOT_RUN or name not in planned or name in found:
            return False
        found[name] = result
        return True

    journal.keep(wanted)
    return list(found.values())


def cells_left(plan: Plan, results: Iterable[Result]) -> list[Cell]:
    """The cells of a plan that have no result."""
    done = {_of_result(result) for result in results}
    return [cell for cell in plan.cells if _of_cell(cell) not in done]


def _of_cell(cell: Cell) -> tuple[str, ...]:
    return cell.golden.id, cell.reader.jaxlib, cell.reader.jax, cell.platform


def _of_result(result: Result) -> tuple[str, ...]:
    return result.golden, result.reader.jaxlib, result.reader.jax, result.platform
