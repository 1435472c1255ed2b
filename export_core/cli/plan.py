"""The command `jaxexport plan`, and how cells are selected, which `jaxexport matrix` shares with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.cli.options import (
    as_of_option,
    console,
    day_of,
    goldens_option,
    index_option,
    listed,
    policy_of,
    policy_option,
    verified_goldens,
    wheels_option,
)

if TYPE_CHECKING:
    from export_core.matrix import Plan, Selection
    from export_core.policy import Policy

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
    click.option(
        "--platforms",
        metavar="P,P…",
        help="cpu, cuda, rocm, tpu: to run where the hardware is, else to compile; or cuda:run, cuda:compile. "
        "[default: the policy's, else cpu]",
    ),
    click.option(
        "--target",
        metavar="P=DEVICE",
        multiple=True,
        help="Another device to compile for, such as tpu=v6e, cuda=a100 or cuda=cuda13/b200. [default: v5e, cuda12/h100]",
    ),
    click.option(
        "--touching",
        metavar="READER",
        default="",
        help="Only cells in which this release writes or reads: a candidate.",
    ),
    wheels_option,
    index_option,
    click.option(
        "--shard", metavar="I/N", help="The I-th of N parts of the plan; `jaxexport merge` puts them together."
    ),
)


def selecting_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a command by which cells are selected."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@selecting_options
@click.option("--json", "as_json", is_flag=True, help="As JSON (schema/plan.schema.json).")
@click.option("--format", "form", type=click.Choice(["github"]), help="github: a job matrix of at most 256 jobs.")
def plan(as_json: bool, form: str | None, **selecting: Any) -> None:
    """Show which cells `jaxexport matrix` would run with these options, and how many, without running one."""
    import msgspec

    from export_core.matrix.shards import parse_shard, part_of
    from export_core.report.plan_report import github_jobs, plan_report, print_plan_report

    if form and selecting["shard"]:
        raise click.UsageError("--format github cuts the whole plan into shards: it goes without --shard.")
    policy, selection = selected(**selecting)
    made = planned_cells(policy, selection, selecting["goldens"], selecting["as_of"])
    windows = policy.window_lengths()
    if form == "github":
        every = {**selecting, "as_of": str(made.as_of)}  # jobs start on different days
        restricted = [("--readers", selection.readers), ("--platforms", ",".join(selection.platforms))]
        restricted += [("--cases", case) for case in selection.cases]
        restricted += [("--writers", ",".join(selection.writers))] if selection.writers else []
        restricted += [("--touching", selection.touching)] if selection.touching else []
        options = [word for pair in restricted for word in pair] + given(every)
        click.echo(msgspec.json.encode(github_jobs(made, options)))
        return
    if selecting["shard"]:
        made = part_of(made, parse_shard(selecting["shard"]))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(plan_report(made, windows)), indent=2))
    else:
        print_plan_report(console(), made, windows)


def selected(
    policy_file: str | None,
    readers: str | None,
    platforms: str | None,
    writers: str,
    cases: Sequence[str],
    touching: str,
    target: Sequence[str],
    wheels: Sequence[str],
    index: Sequence[str],
    **_: Any,
) -> tuple[Policy, Selection]:
    """The policy, and what of the goldens and readers is meant."""
    from export_core.matrix import Selection

    policy = policy_of(policy_file)
    selection = Selection(
        readers=policy.readers if readers is None else readers,
        platforms=listed(platforms) or policy.spelled_platforms(),
        cases=tuple(cases),
        writers=listed(writers),
        touching=touching,
        wheels=tuple(wheels),
        indexes=tuple(index),
        targets=tuple(target),
    )
    return policy, selection


def planned_cells(policy: Policy, selection: Selection, folder: str | None, as_of: str | None) -> Plan:
    """The cells of a selection, as of a day.

    Raises `GoldenError` where a golden is not whole, `PolicyError` for a known failure whose globs cover too much.
    """
    from export_core.goldens import GoldenStore
    from export_core.judge.known import check_width, promised_scopes
    from export_core.matrix import make_plan
    from export_core.matrix.quirks import relaxed

    goldens = relaxed(verified_goldens(GoldenStore(Path(folder or policy.goldens))), policy.quirks)
    windows = policy.window_lengths()
    made = make_plan(goldens, policy.calendar(), windows, selection, day_of(as_of))
    check_width(policy.known_failures, promised_scopes(made.cells, windows))
    return made


def given(selecting: dict[str, Any]) -> list[str]:
    """The options of this run that a run of one of its cells needs too."""
    from export_core.urls import without_credentials

    single = (("--goldens", "goldens"), ("--policy", "policy_file"), ("--as-of", "as_of"))
    words = [word for option, name in single if selecting[name] for word in (option, selecting[name])]
    words += [word for target in selecting["target"] for word in ("--target", target)]
    words += [word for folder in selecting["wheels"] for word in ("--wheels", folder)]
    return words + [word for url in selecting["index"] for word in ("--index", without_credentials(url))]
