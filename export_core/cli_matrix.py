"""The commands `jaxexport matrix` and `jaxexport plan`: what is selected, run, kept and told."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.cli_options import (
    as_of_option,
    console,
    day_of,
    goldens_option,
    listed,
    policy_of,
    policy_option,
    verified_goldens,
)

if TYPE_CHECKING:
    from export_core.judge import Result
    from export_core.matrix import Cell, Limits, Outcome, Plan, Selection
    from export_core.matrix.executors import Cluster
    from export_core.policy import Policy
    from export_core.report.progress import RunProgress

INTERRUPTED = 130

_OPTIONS = (
    goldens_option,
    policy_option,
    as_of_option,
    click.option(
        "--readers",
        metavar="READER,…",
        help="window, all, jaxlib releases (0.9.2), one with its jax (0.11.2-jax0.12.0.1), or a jaxlib wheel file. "
        "[default: the policy's, else window]",
    ),
    click.option("--writers", metavar="V,V…", default="", help="Only goldens by these jaxlib releases. [default: all]"),
    click.option(
        "--cases", metavar="CASE", multiple=True, help="Only these cases: ids or globs; may be given several times."
    ),
    click.option("--platforms", metavar="P,P…", help="Platforms to replay on. [default: the policy's, else cpu]"),
    click.option(
        "--touching",
        metavar="READER",
        default="",
        help="Only cells in which this release writes or reads: a candidate.",
    ),
    click.option(
        "--wheels", metavar="DIR", multiple=True, help="A folder with wheels of jax and jaxlib that are not published."
    ),
    click.option(
        "--index", metavar="URL", multiple=True, help="A package index of nightlies, asked before the default."
    ),
    click.option(
        "--shard", metavar="I/N", help="The I-th of N parts of the plan; `jaxexport merge` puts them together."
    ),
)


def _selecting(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@_selecting
@click.option("--json", "as_json", is_flag=True, help="As JSON (schema/plan.schema.json).")
@click.option("--format", "form", type=click.Choice(["github"]), help="github: a job matrix of at most 256 jobs.")
def plan(as_json: bool, form: str | None, **selecting: Any) -> None:
    """Show which cells `jaxexport matrix` would run with these options, and how many, without running one."""
    import msgspec

    from export_core.matrix.shards import parse_shard, part_of
    from export_core.report.planned import github_jobs, planned, print_planned

    if form and selecting["shard"]:
        raise click.UsageError("--format github cuts the whole plan into shards: it goes without --shard.")
    policy, selection = _selected(**selecting)
    made = _planned(policy, selection, selecting["goldens"], selecting["as_of"])
    windows = policy.window_lengths()
    if form == "github":
        every = {**selecting, "as_of": str(made.as_of)}  # jobs start on different days
        restricted = [("--readers", selection.readers), ("--platforms", ",".join(selection.platforms))]
        restricted += [("--cases", case) for case in selection.cases]
        restricted += [("--writers", ",".join(selection.writers))] if selection.writers else []
        restricted += [("--touching", selection.touching)] if selection.touching else []
        options = [word for pair in restricted for word in pair] + _given(every)
        click.echo(msgspec.json.encode(github_jobs(made, options)))
        return
    if selecting["shard"]:
        made = part_of(made, parse_shard(selecting["shard"]))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(planned(made, windows)), indent=2))
    else:
        print_planned(console(), made, windows)


@click.command()
@_selecting
@click.option(
    "--results", metavar="DIR", default=".jaxexport", show_default=True, help="Where results.jsonl and summary.json go."
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
    "--timeout", type=click.FloatRange(min=0.1), default=120.0, show_default=True, help="Seconds for one cell."
)
@click.option(
    "--memory", type=click.FloatRange(min=0), default=8.0, show_default=True, help="GiB for one cell; 0 is no limit."
)
@click.option("--resume", is_flag=True, help="Go on with the last run in --results, which was interrupted or killed.")
@click.option(
    "--cache/--no-cache", default=True, help="Use and keep outcomes of cells whose whole content is the same."
)
@click.option("--dump-ir", metavar="DIR", help="Put each module there as text, as exported and as compiled, by case.")
@click.option("--quiet", is_flag=True, help="No progress.")
def matrix(
    results: str,
    executor: str,
    jobs: int | None,
    timeout: float,
    memory: float,
    resume: bool,
    cache: bool,
    dump_ir: str | None,
    quiet: bool,
    **selecting: Any,
) -> None:
    """Replay goldens in other jaxlib releases and judge every cell.

    Exit codes: 0 kept, 1 broken, 2 bad input, 3 incomplete, 4 the list of known failures is stale.
    """
    from export_core.judge import (
        ShardOf,
        accepted_in,
        in_order,
        judge,
        reproduce_command,
        result_line,
        summarize,
        write_summary,
    )
    from export_core.matrix import Limits
    from export_core.matrix.dump import dump_folder
    from export_core.matrix.executors import cluster_at
    from export_core.matrix.journal import Journal, record_of, recorded
    from export_core.matrix.request import GIB
    from export_core.matrix.shards import parse_shard, part_of
    from export_core.report import print_plan, print_report
    from export_core.report.progress import RunProgress

    folder, screen = Path(results), console()
    policy, selection = _selected(**selecting)
    part = parse_shard(selecting["shard"]) if selecting["shard"] else None
    before = recorded(folder) if resume and not selecting["as_of"] else None
    # A run that goes on does so as of the day on which it began.
    whole = _planned(policy, selection, selecting["goldens"], before.as_of if before else selecting["as_of"])
    plan = part_of(whole, part) if part else whole
    windows = policy.window_lengths()
    cores = 1 if executor != "local" else os.cpu_count() or 1
    limits = Limits(jobs=jobs or cores, timeout=timeout, memory=int(memory * GIB))
    options = [*_given(selecting), "--no-cache"]
    if dump_ir and executor != "local":
        raise click.UsageError("--dump-ir writes where cells run: it goes with --executor local only.")
    dump = dump_folder(Path(dump_ir)) if dump_ir else None
    print_plan(screen, plan)
    if part:
        screen.print(f"shard {part} of {len(whole.cells)} cells", highlight=False)
    started = time.monotonic()
    record = record_of(whole, policy.unplaced(), limits, shard=str(part or ""))
    cluster = cluster_at(executor)
    journal = Journal(folder, record, resume=resume)
    judged: list[Result] = []
    try:
        with RunProgress(screen, plan, quiet=quiet) as progress:
            judged += _already(journal, plan) if journal.resumed else []
            if resume:
                progress.note(f"{len(judged)} of {len(plan.cells)} cells have a result from before")
            for result in judged:
                progress.result(result)
            done = {_cell_of(result) for result in judged}
            left = [cell for cell in plan.cells if _name(cell) not in done]
            running = _outcomes(plan, left, limits, policy, progress, cache=cache, dump=dump, cluster=cluster)
            with closing(running) as outcomes:
                for outcome in outcomes:
                    reader = plan.spelled.get(outcome.cell.reader, "")
                    result = judge(
                        outcome,
                        windows,
                        policy.known_failures,
                        partial(reproduce_command, options=options, reader=reader),
                        policy.required,
                    )
                    journal.append(result_line(result))
                    judged.append(result)
                    progress.result(result)
        judged = in_order(judged)
        journal.finish(result_line(result) for result in judged)
        summary = summarize(
            judged,
            planned=len(plan.cells),
            policy=policy,
            as_of=plan.as_of,
            selection=selection.described(),
            seconds=time.monotonic() - started,
            calendar=plan.calendar,
            accepted=accepted_in((golden.manifest for golden in plan.goldens), policy.quirks),
            plan=record.digest,
            shard=ShardOf(part.index, part.count) if part else None,
        )
        write_summary(folder, summary)
    except KeyboardInterrupt:
        screen.print(
            f"Interrupted: {len(judged)} of {len(plan.cells)} cells have a result, in {results}, and "
            f"{len(plan.cells) - len(judged)} are left: the same command with --resume goes on. Nothing was judged."
        )
        sys.exit(INTERRUPTED)
    finally:
        journal.close()
        if cluster:
            cluster.close()
    print_report(screen, judged, summary)
    sys.exit(summary.exit_code)


def _selected(
    policy_file: str | None,
    readers: str | None,
    platforms: str | None,
    writers: str,
    cases: Sequence[str],
    touching: str,
    wheels: Sequence[str],
    index: Sequence[str],
    **_: Any,
) -> tuple[Policy, Selection]:
    from export_core.matrix import Selection

    policy = policy_of(policy_file)
    selection = Selection(
        readers=policy.readers if readers is None else readers,
        platforms=listed(platforms) or tuple(policy.platforms or ("cpu",)),
        cases=tuple(cases),
        writers=listed(writers),
        touching=touching,
        wheels=tuple(wheels),
        indexes=tuple(index),
    )
    return policy, selection


def _planned(policy: Policy, selection: Selection, folder: str | None, as_of: str | None) -> Plan:
    from export_core.goldens import GoldenStore
    from export_core.judge.known import check_width, promised_scopes
    from export_core.matrix import make_plan
    from export_core.matrix.quirks import relaxed

    goldens = relaxed(verified_goldens(GoldenStore(Path(folder or policy.goldens))), policy.quirks)
    windows = policy.window_lengths()
    made = make_plan(goldens, policy.calendar(), windows, selection, day_of(as_of))
    check_width(policy.known_failures, promised_scopes(made.cells, windows))
    return made


def _given(selecting: dict[str, Any]) -> list[str]:
    """The options of this run that a run of one of its cells needs too."""
    from export_core.matrix.environments import without_credentials

    single = (("--goldens", "goldens"), ("--policy", "policy_file"), ("--as-of", "as_of"))
    words = [word for option, name in single if selecting[name] for word in (option, selecting[name])]
    words += [word for folder in selecting["wheels"] for word in ("--wheels", folder)]
    return words + [word for url in selecting["index"] for word in ("--index", without_credentials(url))]


def _outcomes(
    plan: Plan,
    cells: Sequence[Cell],
    limits: Limits,
    policy: Policy,
    progress: RunProgress,
    *,
    cache: bool,
    dump: Path | None,
    cluster: Cluster | None,
) -> Generator[Outcome, None, None]:
    """One outcome for each cell: here, or where the cluster runs it."""
    from export_core.matrix.executors import replay_on
    from export_core.matrix.job import How, tool
    from export_core.matrix.local import replay_here

    if cluster:
        how = How(plan.calendar, limits, policy.allow, policy.tolerances, tool(), plan.sources, cache)
        return replay_on(cluster, cells, how, notify=progress.note)
    return replay_here(
        cells,
        plan.calendar,
        plan.sources,
        limits=limits,
        allow=policy.allow,
        tolerances=policy.tolerances,
        cache=cache,
        dump=dump,
        notify=progress.note,
        ready=progress.environment,
    )


def _already(journal: Any, plan: Plan) -> list[Result]:
    """The results of a run that is resumed. A cell that was not run is run now."""
    import msgspec

    from export_core.judge import Result
    from export_core.matrix import Verdict

    planned = {_name(cell) for cell in plan.cells}
    found: dict[tuple[str, ...], Result] = {}

    def wanted(line: bytes) -> bool:
        try:
            result = msgspec.json.decode(line, type=Result)
        except msgspec.MsgspecError:
            return False
        name = _cell_of(result)
        if result.verdict is Verdict.NOT_RUN or name not in planned or name in found:
            return False
        found[name] = result
        return True

    journal.keep(wanted)
    return list(found.values())


def _name(cell: Cell) -> tuple[str, ...]:
    return cell.golden.id, cell.reader.jaxlib, cell.reader.jax, cell.platform


def _cell_of(result: Result) -> tuple[str, ...]:
    return result.golden, result.reader.jaxlib, result.reader.jax, result.platform
