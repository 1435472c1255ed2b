"""The merge of shards: the results of all shards of one plan, judged as one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from export_core.judge.accepted import merge_accepted
from export_core.judge.gate import INCOMPLETE, RunFacts, ShardOf, Summary, in_order, summarize
from export_core.judge.result import Result
from export_core.policy import Policy
from export_core.runs.errors import RunError
from export_core.runs.journal import PLAN, SUMMARY, PlanRecord, recorded_plan
from export_core.runs.results import read_results, read_summary


class NoShardError(RunError):
    """No shard has finished: nothing is known, not even what was planned."""

    exit_code = INCOMPLETE


@dataclass(frozen=True)
class MergedRun:
    """What an undivided run would have left: its plan, its results in order, its summary.

    `missing` are the shards, such as ``2/3``, that are still to be run.
    """

    record: PlanRecord
    results: list[Result]
    summary: Summary
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class _FinishedShard:
    folder: Path
    record: PlanRecord
    summary: Summary
    shard: ShardOf


def merge_shards(folders: Sequence[Path]) -> MergedRun:
    """Join the results of all shards of a plan.

    A shard that is not among them, or did not finish, makes the run incomplete. Raises `NoShardError` if none has
    finished, and `RunError` for a folder with something else or with a shard of another plan, for a shard that is given
    twice, and for results that are not those of the shard.
    """
    finished = [folder for folder in folders if (folder / SUMMARY).exists()]
    if not finished:
        raise NoShardError(
            f"{', '.join(map(str, folders))}: expected finished shards of a plan, each with its {SUMMARY}, found none. "
            "Run them."
        )
    parts = [_read_shard(folder) for folder in finished]
    first = parts[0]
    for part in parts[1:]:
        _check_same_plan(first, part)
    missing = _missing_shards(parts)
    results = [result for part in parts for result in _results(part)]
    cells = {result.key for result in results}
    planned = first.record.planned
    # A missing shard has a cell at least: without it the others cannot have all.
    if len(cells) != len(results) or (len(cells) >= planned if missing else len(cells) != planned):
        raise RunError(
            f"{', '.join(str(part.folder) for part in parts)}: expected one result for each of {planned} planned "
            f"cells, found {len(results)} results of {len(cells)} cells. Run the shards again."
        )
    results = in_order(results)
    facts = RunFacts.from_summary(first.summary)
    facts = replace(
        facts,
        planned=planned,
        # If a shard is missing, not every golden has been in every reader of its window.
        selection={**facts.selection, "whole": facts.selection["whole"] and not missing},
        seconds=sum(part.summary.seconds for part in parts),
        accepted=merge_accepted(part.summary.accepted for part in parts),
        plan=first.record.digest,
        shard=None,
    )
    summary = summarize(results, msgspec.convert(first.summary.policy, Policy), facts)
    return MergedRun(msgspec.structs.replace(first.record, shard=""), results, summary, missing)


def _read_shard(folder: Path) -> _FinishedShard:
    summary = read_summary(folder)
    record = recorded_plan(folder)
    if record is None:
        raise RunError(f"{folder / PLAN}: expected the plan of a matrix run, found none that this version can read.")
    if summary.shard is None:
        raise RunError(f"{folder}: expected one shard of a plan, found a whole run: there is nothing to merge.")
    # A run that is killed leaves no summary; but a folder that was copied may have files of two runs.
    if summary.plan != record.digest or record.shard != f"{summary.shard.index}/{summary.shard.count}":
        raise RunError(f"{folder}: {PLAN} and the summary are of different runs. Run this shard again.")
    return _FinishedShard(folder, record, summary, summary.shard)


def _check_same_plan(first: _FinishedShard, part: _FinishedShard) -> None:
    difference = first.record.differs_in(part.record)
    if not difference and first.shard.count != part.shard.count:
        difference = f"divided into {first.shard.count} shards, now {part.shard.count}"
    if difference:
        raise RunError(
            f"{part.folder}: mixed plans: expected the plan of {first.folder}, found {difference}. Run all shards with "
            "the same options on the same goldens, and with --as-of if they may start on different days."
        )


def _missing_shards(parts: Sequence[_FinishedShard]) -> tuple[str, ...]:
    """The shards of the plan that are not among these. Raises `RunError` for one that is given twice."""
    folders: dict[int, Path] = {}
    for part in parts:
        index, count = part.shard.index, part.shard.count
        if index in folders:
            raise RunError(
                f"{part.folder}: overlap: shard {index}/{count} is given twice, here and in {folders[index]}. "
                "Give each once."
            )
        folders[index] = part.folder
    count = parts[0].shard.count
    return tuple(f"{index}/{count}" for index in range(1, count + 1) if index not in folders)


def _results(part: _FinishedShard) -> list[Result]:
    results = list(read_results(part.folder))
    if len(results) != part.summary.planned:
        raise RunError(
            f"{part.folder}: expected {part.summary.planned} results of shard {part.record.shard}, found "
            f"{len(results)}. Run this shard again."
        )
    return results
