"""The merge of shards: the results of all shards of one plan, judged as one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from export_core.judge.accepted import merge_accepted
from export_core.judge.gate import RunFacts, ShardOf, Summary
from export_core.judge.verdicts import ExitCode
from export_core.run.errors import RunError
from export_core.run.journal import SUMMARY
from export_core.run.plan_record import PlanRecord, cells_by_place, hash_of, plan_of
from export_core.run.results import read_run, read_summary
from export_core.run.run import Run, judge_run


class NoShardError(RunError):
    """No shard has finished: nothing is known, not even what was planned."""

    exit_code = ExitCode.INCOMPLETE


@dataclass(frozen=True)
class _FinishedShard:
    folder: Path
    record: PlanRecord
    shard: ShardOf


def missing_shards(folders: Sequence[Path]) -> tuple[str, ...]:
    """The shards of a plan, such as ``2/3``, that did not finish in any of these folders. Raises as `merge_shards`."""
    return _missing(_finished(folders))


def merge_shards(folders: Sequence[Path]) -> Run:
    """Join the results of all shards of a plan, and judge them: the run that an undivided matrix would have left.

    A shard that is not among them, or did not finish, makes the run incomplete. Raises `NoShardError` if none has
    finished, and `RunError` for a folder with something else or with a shard of another plan, for a shard that is given
    twice, and for results that are not those of the shard: see `read_run`.
    """
    parts = _finished(folders)
    first, missing = parts[0].record, _missing(parts)
    # After their plans: that a shard is of another plan says more than which of its hashes differs.
    runs = [read_run(part.folder) for part in parts]
    results = [result for run in runs for result in run.results]
    own_cells = cells_by_place((result.key for result in results), first.goldens)
    # Each shard has the cells of its own plan.json: together they are those of the plan, unless one was changed.
    if len(results) >= first.planned if missing else hash_of(own_cells) != first.cells:
        raise RunError(
            f"{', '.join(str(part.folder) for part in parts)}: expected the {first.planned} cells of their plan, found "
            f"{len(results)} results, and not of these cells. Run the shards again."
        )
    facts = _merged_facts([run.summary for run in runs], first, whole=not missing)
    plan = msgspec.structs.replace(first, shard="", own_cells=own_cells)
    # By the policy of any of them: all have the hash that is in the plan. The causes of a shard are those of its own
    # cells, and the cell of a golden's own writer may be in another one.
    return judge_run(results, runs[0].policy, facts, plan=plan)


def _merged_facts(summaries: Sequence[Summary], plan: PlanRecord, *, whole: bool) -> RunFacts:
    """The facts of a run from those of its shards. If one is missing, not every golden was in every reader."""
    facts = RunFacts.from_summary(summaries[0])
    started = min((summary.identity.started for summary in summaries if summary.identity.started), default=None)
    ended = max((summary.identity.ended for summary in summaries if summary.identity.ended), default=None)
    return replace(
        facts,
        identity=msgspec.structs.replace(facts.identity, started=started, ended=ended),
        planned=plan.planned,
        selection={**facts.selection, "whole": facts.selection["whole"] and whole},
        seconds=sum(summary.seconds for summary in summaries),
        accepted=merge_accepted(summary.accepted for summary in summaries),
        undecided=sorted({text for summary in summaries for text in summary.undecided}),
        unmeasured=sorted({golden for summary in summaries for golden in summary.unmeasured}),
        inputs_only=sorted({golden for summary in summaries for golden in summary.inputs_only}),
        plan=plan.digest,
        shard=None,
    )


def _finished(folders: Sequence[Path]) -> list[_FinishedShard]:
    """The shards that have finished, all of one plan."""
    finished = [folder for folder in folders if (folder / SUMMARY).exists()]
    if not finished:
        raise NoShardError(
            f"{', '.join(map(str, folders))}: expected finished shards of a plan, each with its {SUMMARY}, found none. "
            "Run them."
        )
    parts = [_shard_in(folder) for folder in finished]
    for part in parts:
        _check_same_plan(parts[0], part)
    return parts


def _shard_in(folder: Path) -> _FinishedShard:
    record = plan_of(folder)
    shard = read_summary(folder).shard
    if shard is None:
        raise RunError(f"{folder}: expected one shard of a plan, found a whole run: there is nothing to merge.")
    return _FinishedShard(folder, record, shard)


def _check_same_plan(first: _FinishedShard, part: _FinishedShard) -> None:
    difference = first.record.differs_in(part.record)
    if not difference and first.shard.count != part.shard.count:
        difference = f"divided into {first.shard.count} shards, now {part.shard.count}"
    if difference:
        raise RunError(
            f"{part.folder}: mixed plans: expected the plan of {first.folder}, found {difference}. Run all shards with "
            "the same options on the same goldens, and with --as-of if they may start on different days."
        )


def _missing(parts: Sequence[_FinishedShard]) -> tuple[str, ...]:
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
