"""Are these shards of one plan, each once? Then they are judged as one run, which is incomplete while one is missing."""

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
from export_core.runs.journal import PLAN, SUMMARY, PlanRecord, recorded
from export_core.runs.results import read_results, read_summary


class NoShardError(RunError):
    """No shard has finished: nothing is known, not even what was planned."""

    exit_code = INCOMPLETE


@dataclass(frozen=True)
class Merged:
    """What an undivided run would have left: its plan, its results in order, its summary. `missing` are shards (``2/3``) to be run."""

    record: PlanRecord
    results: list[Result]
    summary: Summary
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Part:
    folder: Path
    record: PlanRecord
    summary: Summary
    shard: ShardOf


def merge_shards(folders: Sequence[Path]) -> Merged:
    """Put the results of all shards of a plan together.

    A shard that is not among them, or did not finish, makes the run incomplete. Raises `NoShardError` where none has finished, `RunError`
    for a folder that holds something else or a shard of another plan, for a shard that is given twice, and for results that are not
    those of the shard.
    """
    finished = [folder for folder in folders if (folder / SUMMARY).exists()]
    if not finished:
        raise NoShardError(
            f"{', '.join(map(str, folders))}: expected finished shards of a plan, each with its {SUMMARY}, found none. Run them."
        )
    parts = [_part(folder) for folder in finished]
    first = parts[0]
    for part in parts[1:]:
        _same_plan(first, part)
    missing = _missing(parts)
    results = [result for part in parts for result in _results(part)]
    cells = {result.key for result in results}
    planned = first.record.planned
    if len(cells) != len(results) or (len(cells) >= planned if missing else len(cells) != planned):
        raise RunError(
            f"{', '.join(str(part.folder) for part in parts)}: expected one result for each of {planned} planned cells, "
            f"found {len(results)} results of {len(cells)} cells. Run the shards again."
        )
    results = in_order(results)
    facts = RunFacts.from_summary(first.summary)
    facts = replace(
        facts,
        planned=planned,
        # With a shard missing not every golden met its window.
        selection={**facts.selection, "whole": facts.selection["whole"] and not missing},
        seconds=sum(part.summary.seconds for part in parts),
        accepted=merge_accepted(part.summary.accepted for part in parts),
        plan=first.record.digest,
        shard=None,
    )
    summary = summarize(results, msgspec.convert(first.summary.policy, Policy), facts)
    return Merged(msgspec.structs.replace(first.record, shard=""), results, summary, missing)


def _part(folder: Path) -> _Part:
    summary = read_summary(folder)
    record = recorded(folder)
    if record is None:
        raise RunError(f"{folder / PLAN}: expected the plan of a matrix run, found none that this version can read.")
    if summary.shard is None:
        raise RunError(f"{folder}: expected one shard of a plan, found a whole run: there is nothing to merge.")
    if summary.plan != record.digest or record.shard != f"{summary.shard.index}/{summary.shard.count}":
        raise RunError(f"{folder}: {PLAN} and the summary are of different runs. Run this shard again.")
    return _Part(folder, record, summary, summary.shard)


def _same_plan(first: _Part, part: _Part) -> None:
    what = first.record.differs_in(part.record)
    if not what and first.shard.count != part.shard.count:
        what = f"cut into {first.shard.count} shards, now {part.shard.count}"
    if what:
        raise RunError(
            f"{part.folder}: mixed plans: expected the plan of {first.folder}, found {what}. Run all shards with the same options on the "
            "same goldens, and --as-of where they may start on different days."
        )


def _missing(parts: Sequence[_Part]) -> tuple[str, ...]:
    """The shards of the plan that are not among these. Raises `RunError` for one that is given twice."""
    found: dict[int, Path] = {}
    for part in parts:
        index, count = part.shard.index, part.shard.count
        if index in found:
            raise RunError(
                f"{part.folder}: overlap: shard {index}/{count} is given twice, here and in {found[index]}. Give each once."
            )
        found[index] = part.folder
    count = parts[0].shard.count
    return tuple(f"{index}/{count}" for index in range(1, count + 1) if index not in found)


def _results(part: _Part) -> list[Result]:
    results = list(read_results(part.folder))
    if len(results) != part.summary.planned:
        raise RunError(
            f"{part.folder}: expected {part.summary.planned} results of shard {part.record.shard}, found {len(results)}. "
            "Run this shard again."
        )
    return results
