"""The merge of shards: the results of all shards of one plan, judged as one run."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from export_core.base.exit_code import ExitCode
from export_core.base.text import plural
from export_core.judge.accepted import merge_accepted
from export_core.matrix import Verdict
from export_core.policy.run_options import Shard
from export_core.run.errors import RunError
from export_core.run.plan_record import both_values, cells_by_place, hash_of, plan_of
from export_core.run.results import SUMMARY, read_run, read_summary
from export_core.run.run import Run, judge_run


class NoShardError(RunError):
    """An error for a merge in which no shard has finished, so that not even the planned cells are known."""

    exit_code = ExitCode.INCOMPLETE


def merge_shards(folders: Sequence[Path]) -> Run:
    """Join the results of all shards of a plan, and judge them as the run of an undivided matrix.

    Shards that are missing or did not finish make the run incomplete, and its summary names them.

    Raises:
        NoShardError: No shard has finished.
        RunError: A folder is not a shard or has a shard of a different plan, a shard is given twice, or a shard has
            results that `read_run` refuses.
    """
    finished, missing = _finished(folders)
    # After their plans are checked: a shard of another plan gets a clearer error than a differing hash.
    runs = [read_run(folder) for folder in finished]
    results = [result for run in runs for result in run.results]
    plan = plan_of(finished[0])
    own_cells = cells_by_place((result.key for result in results), plan.goldens)
    # Each shard has the cells of its own plan.json: together they are those of the plan, unless one was changed.
    if len(results) >= plan.planned if missing else hash_of(own_cells) != plan.cells:
        raise RunError(
            f"{', '.join(map(str, finished))}: expected a result for each of the "
            f"{plural(plan.planned, 'cell')} of their plan, found {plural(len(results), 'result')} that do not "
            "match these cells. Run the shards again."
        )
    summaries = [run.summary for run in runs]
    first = summaries[0]
    started = min((made.identity.started for made in summaries if made.identity.started), default=None)
    ended = max((made.identity.ended for made in summaries if made.identity.ended), default=None)
    facts = replace(
        first,
        identity=replace(first.identity, started=started, ended=ended),
        planned=plan.planned,
        # If a shard is missing, not every golden was in every reader.
        selection={**first.selection, "whole": first.selection["whole"] and not missing},
        seconds=sum(made.seconds for made in summaries),
        resumed=sum(made.resumed for made in summaries),
        accepted=merge_accepted(made.accepted for made in summaries),
        undecided=sorted({text for made in summaries for text in made.undecided}),
        unmeasured=sorted({golden for made in summaries for golden in made.unmeasured}),
        inputs_only=sorted({golden for made in summaries for golden in made.inputs_only}),
        other_generations=sorted({text for made in summaries for text in made.other_generations}),
        plan=plan.digest,
        shard=None,
        missing_shards=missing,
        not_run_shards=[made.shard for made in summaries if made.shard and made.verdicts.get(Verdict.NOT_RUN)],
    )
    # The policies of all shards have the hash that is in the plan, so any of them will do. Causes are found again for
    # all results: the cell of a golden's own writer may be in another shard than the cells that fail.
    return judge_run(results, runs[0].policy, facts, plan=replace(plan, shard="", own_cells=own_cells))


def _finished(folders: Sequence[Path]) -> tuple[list[Path], list[Shard]]:
    """Return the folders of the finished shards, and the shards of their plan that are missing.

    Raises `NoShardError` if no shard has finished, and `RunError` if the shards are not of the same plan.
    """
    finished = [folder for folder in folders if (folder / SUMMARY).exists()]
    if not finished:
        there = any(folder.exists() for folder in folders)
        # A shell passes on a pattern that matches nothing as it is.
        found, to_do = (
            ("none", "Run them") if there else ("no such folder", "Run them, or correct the name or the pattern")
        )
        raise NoShardError(
            f"{', '.join(map(str, folders))}: expected finished shards of a plan, each with its {SUMMARY}, found "
            f"{found}. {to_do}."
        )
    first_plan = plan_of(finished[0])
    shards: dict[Shard, Path] = {}
    for folder in finished:
        plan, shard = plan_of(folder), read_summary(folder).shard
        if shard is None and (lacks := read_summary(folder).missing_shards):
            raise RunError(
                f"{folder}: expected one shard of a plan, found joined ones without {', '.join(map(str, lacks))}. Join "
                "all shards anew, from their own folders: `jaxexport judge DIR… --results JOINED`."
            )
        if shard is None:
            command = f"`jaxexport judge {shlex.quote(str(folder))}`"
            alone = f"Judge it without --results, which leaves its files as they are: {command}."
            raise RunError(
                f"{folder}: expected one shard of a plan, found a whole run, which needs no joining. {alone}"
            )
        first = next(iter(shards), shard)
        both = (finished[0], folder)
        difference = first_plan.differs_in(plan, both)
        if not difference and first.count != shard.count:
            difference = f"another number of shards: {both_values(first.count, shard.count, both)}"
        if difference:
            raise RunError(
                f"{folder}: mixed plans: expected the plan of {finished[0]}, found {difference}. Run all shards with "
                "the same options on the same commit, and with --as-of if they may start on different days."
            )
        if shard in shards:
            raise RunError(
                f"{folder}: overlap: shard {shard} is given twice, here and in {shards[shard]}. Give each once."
            )
        shards[shard] = folder
    every = (Shard(number, first.count) for number in range(1, first.count + 1))
    return finished, [shard for shard in every if shard not in shards]
