"""May this be released? Counts, the exit code, and what is in the two result files."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from export_core.judge.accepted import Accepted
from export_core.judge.coverage import uncovered
from export_core.judge.custom_calls import JudgedChange, judge_changes
from export_core.judge.known import check_width, scope_of, stale_entries
from export_core.judge.result import Judgement, Result
from export_core.policy import Policy
from export_core.releases import Calendar

KEPT, BROKEN, BAD_INPUT, INCOMPLETE, STALE = 0, 1, 2, 3, 4
"""Exit codes of matrix and judge."""


class ShardOf(msgspec.Struct, frozen=True):
    """Which part of a plan a run was, counted from 1."""

    index: int
    count: int


class Summary(msgspec.Struct, frozen=True):
    """summary.json: what was planned, what came of it, and by which policy and calendar.

    `uncovered` says what is missing beside the cells that were not run. `plan` is a digest of the whole plan: the same for all its shards.
    `shard` says which of them this was. `flaky` counts the cells whose verdict was another one the last time.
    `without_cells` tells of selected goldens that have no cell on the platforms asked for.
    """

    planned: int
    results: int
    verdicts: dict[str, int]
    judgements: dict[str, int]
    stale: list[str]
    as_of: datetime.date
    selection: dict[str, Any]
    policy: dict[str, Any]
    calendar: dict[str, Any]
    seconds: float
    exit_code: int
    custom_call_changes: list[JudgedChange] = []
    accepted: list[Accepted] = []
    uncovered: list[str] = []
    plan: str = ""
    shard: ShardOf | None = None
    flaky: int = 0
    without_cells: str = ""


def summarize(
    results: Sequence[Result],
    *,
    planned: int,
    policy: Policy,
    as_of: datetime.date,
    selection: dict[str, Any],
    seconds: float,
    calendar: Calendar | None = None,
    accepted: Sequence[Accepted] = (),
    plan: str = "",
    shard: ShardOf | None = None,
    without_cells: str = "",
) -> Summary:
    """Count, check the list of known failures and the declared changes of custom calls, and decide the exit code.

    Nothing planned, a result missing or given twice, and what the policy requires and no cell covers is incomplete. A golden that
    calls a new target too early is a broken promise, also where no reader was there to show it: readers of those days are deployed,
    and not all of them are published.

    `selection` says what was asked for; its entry ``whole`` is true when the run held every golden with its window. `calendar` is
    that of the run, where it had releases beside the policy's; `accepted` what its goldens were let through with. A `shard` holds
    only some cells of its `plan`, `without_cells` is the plan's. Raises `PolicyError` for a known failure whose globs cover too much.
    """
    calendar = (calendar or policy.calendar()).as_of(as_of)
    check_width(policy.known_failures, (scope_of(result) for result in results if result.promised))
    whole = bool(selection["whole"]) and shard is None
    stale = stale_entries(results, policy.known_failures, as_of, whole=whole, quirks=policy.quirks)
    # A shard cannot tell what the others cover.
    asked = [name.partition(":")[0] for name in selection.get("platforms", ())]
    missing = [] if shard else uncovered(results, policy.required, asked)
    changes = judge_changes(results, policy.custom_call_changes, policy.window_lengths(), as_of)
    judgements = Counter(str(result.judgement) for result in results)
    different = {(result.golden, result.reader.jaxlib, result.reader.jax, result.platform) for result in results}
    exactly_once = planned > 0 and len(different) == len(results) == planned
    if not exactly_once or judgements[Judgement.INCOMPLETE] or missing:
        code = INCOMPLETE
    elif judgements[Judgement.BROKEN] or any(change.broken for change in changes):
        code = BROKEN
    else:
        code = STALE if stale else KEPT
    return Summary(
        planned=planned,
        results=len(results),
        verdicts=dict(sorted(Counter(str(result.verdict) for result in results).items())),
        judgements=dict(sorted(judgements.items())),
        stale=stale,
        as_of=as_of,
        selection=selection,
        policy=msgspec.to_builtins(policy),
        calendar={"newest_jaxlib": calendar.newest(), "releases": len(calendar.jaxlib)},
        seconds=round(seconds, 1),
        exit_code=code,
        custom_call_changes=changes,
        accepted=list(accepted),
        uncovered=[*_miscounted(planned, len(results), len(different)), *missing],
        plan=plan,
        shard=shard,
        flaky=sum(bool(result.flaky) for result in results),
        without_cells=without_cells,
    )


def _miscounted(planned: int, results: int, different: int) -> list[str]:
    if planned == 0:
        return ["Nothing was planned: expected at least one cell."]
    if different < results:
        return [f"{results - different} results are there twice: expected one for each of {planned} planned cells."]
    return [] if results == planned else [f"Expected one result for each of {planned} planned cells, found {results}."]


def in_order(results: Iterable[Result]) -> list[Result]:
    """The order of a finished results.jsonl: by reader, oldest build first, then case, writer and platform."""
    return sorted(
        results,
        key=lambda result: (
            *(result.reader.built, result.reader.jaxlib, result.reader.jax, result.case),
            *(result.writer.built, result.golden, result.platform),
        ),
    )
