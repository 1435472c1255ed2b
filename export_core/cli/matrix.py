"""The command `jaxexport matrix`: what is selected is run, kept, judged and told."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.cli.options import console
from export_core.cli.plan import given, planned_cells, selected, selecting_options

if TYPE_CHECKING:
    from rich.console import Console

    from export_core.judge import Result, Summary
    from export_core.matrix import Cell, Limits, Outcome, Plan
    from export_core.policy import Policy
    from export_core.remote.cluster import Cluster
    from export_core.report.progress import RunProgress
    from export_core.runs.journal import Journal


@click.command()
@selecting_options
@click.option(
    "--results",
    metavar="DIR",
    default=".jaxexport",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where results.jsonl and summary.json go.",
)
@click.option(
    "--executor",
    metavar="local|dask:ADDRESS",
    default="local",
    show_default=True,
    help="Where cells run: here, or on the Dask cluster of a scheduler such as dask:tcp://127.0.0.1:8786.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Cells at once, of each task on a cluster. [default: the number of cores; 1 on a cluster]",
)
@click.option(
    "--device-jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Cells at once on an accelerator."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=120.0, show_default=True, help="Seconds for one cell."
)
@click.option(
    "--memory", type=click.FloatRange(min=0), default=8.0, show_default=True, help="GiB for one cell; 0 is no limit."
)
@click.option("--resume", is_flag=True, help="Go on with the last run in --results, which was interrupted or killed.")
@click.option(
    "--cache/--no-cache",
    default=True,
    help="Take outcomes of earlier runs where the whole content of a cell is the same.",
)
@click.option(
    "--dump-ir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Put each module there as text, as exported and as compiled, by case.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def matrix(
    results: Path,
    executor: str,
    jobs: int | None,
    device_jobs: int,
    timeout: float,
    memory: float,
    resume: bool,
    cache: bool,
    dump_ir: Path | None,
    quiet: bool,
    **selecting: Any,
) -> None:
    """Replay goldens in other jaxlib releases and judge every cell.

    Exit codes: 0 kept, 1 broken, 2 bad input, 3 incomplete, 4 the list of known failures is stale. Ctrl-C ends a run cleanly: 130.
    """
    from export_core.cli.signals import Interrupted, interruptible
    from export_core.matrix import Limits
    from export_core.matrix.dump import dump_folder
    from export_core.matrix.limits import GIB
    from export_core.runs.errors import ResultsNotWritten

    if dump_ir and executor != "local":
        raise click.UsageError("--dump-ir writes where cells run: it goes with --executor local only.")
    dump = dump_folder(dump_ir) if dump_ir else None
    cores = 1 if executor != "local" else os.cpu_count() or 1
    limits = Limits(jobs=jobs or cores, timeout=timeout, memory=int(memory * GIB), device_jobs=device_jobs)
    run = _Run(console(), results, executor, limits, resume, cache, dump, quiet, selecting)
    try:
        with interruptible():
            summary = run.to_the_end()
    except Interrupted as stop:
        run.screen.print(f"Interrupted: {run.standing()}", soft_wrap=True, highlight=False)
        sys.exit(stop.exit_code)
    except ResultsNotWritten as error:
        raise ResultsNotWritten(f"{error} {run.standing()}") from error
    sys.exit(summary.exit_code)


@dataclass
class _Run:
    """A run as it was asked for, and how far it is. Without a plan no cell has begun."""

    screen: Console
    results: Path
    executor: str
    limits: Limits
    resume: bool
    cache: bool
    dump_ir: Path | None
    quiet: bool
    selecting: dict[str, Any]
    plan: Plan | None = None
    judged: list[Result] = field(default_factory=list)
    is_judged: bool = False

    def standing(self) -> str:
        """What is done, what is left, and how to go on."""
        if self.plan is None:
            return "No cell was run. Nothing was judged."
        if self.is_judged:
            return f"Every cell was judged: jaxexport report {self.results} tells the results."
        have, planned = len(self.judged), len(self.plan.cells)
        return (
            f"{have} of {planned} cells have a result, in {self.results}, and {planned - have} are left: "
            "the same command with --resume goes on. Nothing was judged."
        )

    def to_the_end(self) -> Summary:
        """Plan, run what is left, keep each result as it comes, judge, and tell."""
        from export_core.judge import ShardOf, accepted_in, in_order, summarize
        from export_core.matrix.shards import parse_shard, part_of
        from export_core.remote.dispatch import cluster_at
        from export_core.report import print_plan, print_report
        from export_core.runs.journal import Journal, record_of, recorded
        from export_core.runs.results import result_line, write_summary

        selecting = self.selecting
        policy, selection = selected(**selecting)
        part = parse_shard(selecting["shard"]) if selecting["shard"] else None
        before = recorded(self.results) if self.resume and not selecting["as_of"] else None
        # A run that goes on does so as of the day on which it began.
        whole = planned_cells(policy, selection, selecting["goldens"], before.as_of if before else selecting["as_of"])
        plan = part_of(whole, part) if part else whole
        print_plan(self.screen, plan)
        if part:
            self.screen.print(f"shard {part} of {len(whole.cells)} cells", highlight=False)
        started = time.monotonic()
        record = record_of(whole, policy.without_locations(), self.limits, shard=str(part or ""))
        with ExitStack() as opened:
            # In this order: who does not reach the cluster has lost no results.
            if cluster := cluster_at(self.executor):
                opened.callback(cluster.close)
            journal = Journal(self.results, record, resume=self.resume)
            opened.callback(journal.close)
            self.plan = plan
            self._run_cells(plan, policy, journal, cluster)
            self.judged = in_order(self.judged)
            journal.finish(result_line(result) for result in self.judged)
            summary = summarize(
                self.judged,
                planned=len(plan.cells),
                policy=policy,
                as_of=plan.as_of,
                selection=selection.described(),
                seconds=time.monotonic() - started,
                calendar=plan.calendar,
                accepted=accepted_in((golden.manifest for golden in plan.goldens), policy.quirks),
                plan=record.digest,
                shard=ShardOf(part.index, part.count) if part else None,
                without_cells=plan.without_cells,
            )
            write_summary(self.results, summary)
            self.is_judged = True
        print_report(self.screen, self.judged, summary)
        return summary

    def _run_cells(self, plan: Plan, policy: Policy, journal: Journal, cluster: Cluster | None) -> None:
        """Run every cell that has no result yet, and judge it."""
        from export_core.judge import judge, reproduce_command
        from export_core.report.progress import RunProgress
        from export_core.runs.results import result_line
        from export_core.runs.resume import cells_left, results_so_far

        options, windows = [*given(self.selecting), "--no-cache"], policy.window_lengths()
        with RunProgress(self.screen, plan, quiet=self.quiet) as progress:
            self.judged += results_so_far(journal, plan) if journal.resumed else []
            if self.resume:
                progress.note(f"{len(self.judged)} of {len(plan.cells)} cells have a result from before")
            for result in self.judged:
                progress.result(result)
            left = cells_left(plan, self.judged)
            with closing(self._outcomes(plan, left, policy, progress, cluster)) as outcomes:
                for outcome in outcomes:
                    reader = plan.spelled.get(outcome.cell.reader, "")
                    reproduce = partial(reproduce_command, options=options, reader=reader)
                    result = judge(outcome, windows, policy.known_failures, reproduce, policy.required)
                    journal.append(result_line(result))
                    self.judged.append(result)
                    progress.result(result)

    def _outcomes(
        self, plan: Plan, cells: Sequence[Cell], policy: Policy, progress: RunProgress, cluster: Cluster | None
    ) -> Generator[Outcome, None, None]:
        """One outcome for each cell: here, or where the cluster runs it."""
        from export_core.matrix.fingerprints import tool
        from export_core.matrix.local_replay import replay_here
        from export_core.remote.dispatch import replay_on
        from export_core.remote.job import How

        if cluster:
            how = How(plan.calendar, self.limits, policy.allow, policy.tolerances, tool(), plan.sources, self.cache)
            return replay_on(cluster, cells, how, notify=progress.note)
        return replay_here(
            cells,
            plan.calendar,
            plan.sources,
            limits=self.limits,
            allow=policy.allow,
            tolerances=policy.tolerances,
            cache=self.cache,
            dump=self.dump_ir,
            notify=progress.note,
            ready=progress.environment,
        )
