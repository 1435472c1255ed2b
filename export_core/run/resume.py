"""The continuation of a run that was interrupted: which of its results still count, and which cells are left."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from export_core.base.untrusted import decode_json
from export_core.judge.judgement import judge_again
from export_core.judge.result import Result, reader_of, writer_of
from export_core.matrix import Cell, Plan, Verdict
from export_core.policy import Policy
from export_core.readers.cell import CellKey
from export_core.run.journal import Journal


def results_so_far(journal: Journal, plan: Plan, policy: Policy) -> list[Result]:
    """The results of the run, one for a cell; the journal has only these from now on. What was not run is left out.

    They are judged again: no summary has a hash of them yet.
    """
    planned = {cell.key: cell for cell in plan.cells}
    results: dict[CellKey, Result] = {}

    def is_wanted(line: bytes) -> bool:
        try:
            result = decode_json(line, Result)
        except msgspec.MsgspecError:
            return False
        # A cell that was not run is run now: what failed around it may work today.
        if result.verdict is Verdict.NOT_RUN or result.key in results or not _is_of(result, planned.get(result.key)):
            return False
        results[result.key] = result
        return True

    journal.retain(is_wanted)
    return [judge_again(result, policy, plan.as_of) for result in results.values()]


def _is_of(result: Result, cell: Cell | None) -> bool:
    """Whether a result says of its cell, and of its dates, what the plan says."""
    if cell is None:
        return False
    manifest = cell.golden.manifest
    return (result.case, result.writer, result.reader, result.custom_calls) == (
        *(manifest.case, writer_of(manifest.writer), reader_of(cell.reader)),
        manifest.custom_calls,
    )


def cells_left(plan: Plan, results: Iterable[Result]) -> list[Cell]:
    """The cells of a plan that have no result."""
    done = {result.key for result in results}
    return [cell for cell in plan.cells if cell.key not in done]
