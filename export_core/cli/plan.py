"""The command `jaxexport plan`, and the options by which cells are selected, which `jaxexport matrix` has too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.cli.help import HelpfulCommand
from export_core.cli.options import (
    as_of_option,
    comma_separated,
    console,
    day_of,
    goldens_option,
    index_option,
    policy_of,
    policy_option,
    target_option,
    wheels_option,
)
from export_core.cli.output import echo_json

if TYPE_CHECKING:
    from export_core.matrix import Selection
    from export_core.policy import Policy
    from export_core.run_options import RunOptions

_OPTIONS = (
    goldens_option,
    policy_option,
    as_of_option,
    click.option(
        "--readers",
        metavar="READER,…",
        help="window, all, newest, deployed (the policy's places), jaxlib releases (0.9.2), one with its jax "
        "(0.11.2-jax0.12.0.1), or a jaxlib wheel file. [default: the policy's, else window, with deployed]",
    ),
    click.option("--writers", metavar="V,V…", default="", help="Only goldens by these jaxlib releases. [default: all]"),
    click.option(
        "--cases", metavar="CASE", multiple=True, help="Only these cases: ids or globs; may be given several times."
    ),
    click.option(
        "--platforms",
        metavar="P,P…",
        help="cpu, cuda, rocm, tpu: run where this machine has the hardware, else compile only; cuda:run or "
        "cuda:compile for one of the two. "
        "[default: the policy's, else cpu]",
    ),
    target_option,
    click.option(
        "--touching",
        metavar="READER",
        default="",
        help="Only cells whose writer or reader is this release, such as a release candidate.",
    ),
    click.option(
        "--only",
        type=click.Choice(["promised", "backward"]),
        help="promised: only cells inside their window, and those of the policy's places (`deployed`). backward: "
        "these, and all whose reader is younger than the writer. [default: all selected cells]",
    ),
    wheels_option,
    index_option,
    click.option(
        "--shard", metavar="I/N", help="The I-th of N parts of the plan; `jaxexport merge` joins their results."
    ),
)


def selecting_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a command by which cells are selected."""
    # Reversed: as with decorators, the one applied last is shown first in --help.
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(cls=HelpfulCommand)
@selecting_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema/plan.schema.json).")
@click.option("--format", "form", type=click.Choice(["github"]), help="github: print a job matrix for GitHub Actions.")
def plan(as_json: bool, form: str | None, **values: Any) -> None:
    """Show which cells `jaxexport matrix` would run with these options, and how many, without running them."""
    from export_core.matrix.shards import part_of
    from export_core.report.terminal.plan_report import github_jobs, plan_report, print_plan_report
    from export_core.session import environments_cost, plan_matrix

    if form and values["shard"]:
        raise click.UsageError(
            "--format github divides the whole plan into shards: it cannot be combined with --shard."
        )
    policy = policy_of(values["policy_file"])
    selection, options = selection_of(policy, values), run_options(values)
    cells = plan_matrix(policy, selection, options)
    windows = policy.window_lengths()
    if form == "github":
        # Jobs start on different days, and must all judge for the same one.
        echo_json(github_jobs(cells, _job_options(selection, replace(options, as_of=cells.as_of))), indent=-1)
        return
    if options.shard:
        cells = part_of(cells, options.shard)
    cost = environments_cost(cells, policy)
    if as_json:
        echo_json(plan_report(cells, windows, cost))
    else:
        print_plan_report(console(), cells, windows, cost)


for _parameter in plan.params:
    # What is printed does not depend on it, except for the jobs of --format github.
    if isinstance(_parameter, click.Option) and _parameter.name == "target":
        _parameter.hidden = True


def selection_of(policy: Policy, values: Mapping[str, Any]) -> Selection:
    """What is selected by these values of `selecting_options`, and else by the policy."""
    from export_core.matrix import Selection

    return Selection(
        readers=_own_readers(policy) if values["readers"] is None else values["readers"],
        platforms=comma_separated(values["platforms"]) or policy.spelled_platforms(),
        cases=tuple(values["cases"]),
        writers=comma_separated(values["writers"]),
        touching=values["touching"],
        wheels=tuple(values["wheels"]),
        indexes=tuple(values["index"]),
        targets=tuple(values["target"]),
        only=values["only"] or "",
    )


def _own_readers(policy: Policy) -> str:
    """The readers of the policy, with those of its places, which a group has anyway."""
    from export_core.matrix.selection import DEPLOYED, GROUPS, Selection

    has_places = {*GROUPS, DEPLOYED} & {*Selection(readers=policy.readers).named}
    return policy.readers if has_places or not policy.deployed else f"{policy.readers},{DEPLOYED}"


def run_options(values: Mapping[str, Any]) -> RunOptions:
    """How cells are run by these values of options, which may be those of `jaxexport matrix` or of fewer."""
    from export_core.matrix.dump import make_dump_folder
    from export_core.matrix.limits import GIB
    from export_core.matrix.shards import parse_shard
    from export_core.run_options import RunOptions

    defaults = RunOptions()
    dump, executor = values.get("dump_ir"), values.get("executor", defaults.executor)
    if dump and executor != "local":
        raise click.UsageError("--dump-ir writes on the machine that runs the cells: it needs --executor local.")
    return RunOptions(
        # get: `jaxexport plan` has only the options that select cells.
        results=values.get("results", defaults.results),
        goldens=Path(values["goldens"]) if values["goldens"] else None,
        policy_file=values["policy_file"],
        as_of=day_of(values["as_of"]) if values["as_of"] else None,
        shard=parse_shard(values["shard"]) if values["shard"] else None,
        executor=executor,
        jobs=values.get("jobs"),
        device_jobs=values.get("device_jobs", defaults.device_jobs),
        timeout=values.get("timeout", defaults.timeout),
        memory=int(values["memory"] * GIB) if "memory" in values else defaults.memory,
        repeat=values.get("repeat", defaults.repeat),
        resume=values.get("resume", False),
        cache=values.get("cache", True),
        dump_ir=make_dump_folder(dump) if dump else None,
        convert=values.get("convert", False),
    )


def _job_options(selection: Selection, options: RunOptions) -> list[str]:
    """The options by which each job of a CI system makes the same plan."""
    from export_core.run_options import command_options

    words = ["--readers", selection.readers, "--platforms", ",".join(selection.platforms)]
    words += [word for case in selection.cases for word in ("--cases", case)]
    words += ["--writers", ",".join(selection.writers)] if selection.writers else []
    words += ["--touching", selection.touching] if selection.touching else []
    words += ["--only", selection.only] if selection.only else []
    return words + command_options(selection, options)
