"""The command `jaxexport plan`, and the options by which cells are selected, which `jaxexport matrix` has too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from export_core.cli.click_options import console, policy_of, with_options
from export_core.cli.help import command
from export_core.cli.output import echo_json
from export_core.policy.run_options import (
    GROUPS,
    LOCAL,
    OPTIONS,
    ProjectOptions,
    RunOptions,
    Selection,
    comma_separated,
    option_words,
    options_of,
    read_options,
)

if TYPE_CHECKING:
    from export_core.policy import Policy

PLANNING = (*options_of(ProjectOptions), *options_of(Selection), "shard")
"""The options that decide which cells there are."""
RUNNING = tuple(name for name in OPTIONS if name not in PLANNING)  # The options that say how cells run.


@command("docs/reference/matrix.md", "jaxexport plan --readers all", "jaxexport plan --format github", section="Matrix")
@with_options(*PLANNING)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema/plan.schema.json).")
@click.option("--format", "form", type=click.Choice(["github"]), help="github: print a job matrix for GitHub Actions.")
def plan(as_json: bool, form: str | None, **values: Any) -> None:
    """Show which cells `jaxexport matrix` would run with these options, and how many, without running them."""
    from export_core.matrix.plan import part_of
    from export_core.report.plan_report import github_jobs, plan_report, print_plan_report
    from export_core.run.session import environments_cost, plan_matrix

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
        words = option_words(selection, replace(options, as_of=cells.as_of), plan=True)
        echo_json(github_jobs(cells, words), indent=-1)
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
    if isinstance(_parameter, click.Option) and _parameter.name == "targets":
        _parameter.hidden = True


def selection_of(policy: Policy, values: Mapping[str, Any]) -> Selection:
    """What is selected by these values of options, and else by the policy."""
    from export_core.matrix.selection import DEPLOYED

    selection = read_options(Selection, values)
    platforms = comma_separated(values["platforms"]) or policy.spelled_platforms()
    if values["readers"] is not None:
        return replace(selection, platforms=platforms)
    # With those of its deployment targets, which a group has anyway.
    has_targets = {*GROUPS, DEPLOYED} & {*Selection(readers=policy.readers).named}
    readers = policy.readers if has_targets or not policy.deployed else f"{policy.readers},{DEPLOYED}"
    return replace(selection, readers=readers, platforms=platforms)


def run_options(values: Mapping[str, Any]) -> RunOptions:
    """How cells are run by these values of options, which may be those of `jaxexport matrix` or of fewer."""
    from export_core.matrix.plan import make_dump_folder

    options = read_options(RunOptions, values)
    if not options.dump_ir:
        return options
    if options.executor != LOCAL:
        raise click.UsageError("--dump-ir writes on the machine that runs the cells: it needs --executor local.")
    return replace(options, dump_ir=make_dump_folder(options.dump_ir))
