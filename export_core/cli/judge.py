"""The command `jaxexport judge`: the results of a run, judged again."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from export_core.cli import click_options
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.cli.report import compared, judged_run


@command(
    "docs/how-to/compare-runs.md", "jaxexport judge --propose", "jaxexport judge new --baseline old", section="Matrix"
)
@click.argument("folder", metavar="[DIR]", default=".jaxexport", type=click_options.PATH)
@click_options.policy_option
@click_options.rejudge_day_option
@click.option(
    "--propose", is_flag=True, help="Print known failures for all broken cells, as YAML. Refused for a partial run."
)
@click.option(
    "--baseline",
    metavar="OLD",
    type=click_options.PATH,
    help="Folder of an earlier run: also show what is different from it.",
)
@click_options.fail_on_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the difference from --baseline as JSON (schema/comparison.schema.json).",
)
@click_options.full_option
def judge(
    folder: str,
    policy_file: str | None,
    as_of: str | None,
    propose: bool,
    baseline: str | None,
    fail_on: Sequence[str],
    as_json: bool,
    full: bool,
) -> None:
    """Judge the results of a matrix run again, with another policy or as of another day.

    Without DIR, it is the run in .jaxexport.

    The policy is the named one, else that of the project in the working folder, else that of the run. Exit codes are
    those of `jaxexport matrix`; --baseline alone does not change them.
    """
    from export_core.report.policy_text import proposal
    from export_core.report.terminal import print_headline, print_report
    from export_core.report.view import view

    if as_json and not baseline:
        raise click.UsageError("--json prints the difference from a baseline: it needs --baseline OLD.")
    if propose and baseline:
        raise click.UsageError("--propose cannot be combined with --baseline.")
    click_options.check_fail_on(fail_on, baseline)
    run = judged_run(Path(folder), policy_file, as_of, fail_on)
    comparison = None
    if baseline:
        comparison = compared(run, baseline)
        # A lost bonus, or a growth since then, may have failed the run.
        run = replace(comparison.run, options=f"{run.options} {shlex.join(['--baseline', baseline])}".strip())
    if comparison and as_json:
        echo_json(comparison.as_json())
    elif propose:
        echo(proposal(run.results, run.summary), nl=False)
        # On stderr: standard output is YAML, to be appended to a policy.
        print_headline(click_options.console(stderr=True), view(run))
    else:
        print_report(click_options.console(), view(run, comparison, Path(folder)), full=full)
    raise click.exceptions.Exit(run.summary.exit_code)
