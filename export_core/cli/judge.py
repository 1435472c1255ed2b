"""The command `jaxexport judge`: the results of a run, judged again; or of all its shards, joined first."""

from __future__ import annotations

import functools
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli import click_options
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.cli.report import compared, judged_run, judging_policy
from export_core.policy.run_options import RESULTS
from export_core.run.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from export_core.run.run import Run


@command(
    "docs/how-to/compare-runs.md",
    "jaxexport judge --propose",
    "jaxexport judge new --baseline old",
    "jaxexport judge shard-1 shard-2 --results merged",
    section="Matrix",
)
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=click_options.PATH)
@click_options.results_option(
    "Join the shards DIR, also a single one, into this folder; required for several. Without it, one DIR is judged, "
    "and stays as it is. Without DIR: the folder to judge. [default: .jaxexport]",
)
@click_options.policy_option
@click_options.rejudge_day_option
@click.option(
    "--propose",
    is_flag=True,
    help="Print known failures for all broken and owed cells, as YAML. Refused for a partial run.",
)
@click_options.baseline_option
@click_options.fail_on_option
@click_options.json_option("Print the difference from --baseline as JSON (schema/comparison.schema.json).")
@click_options.full_option
def judge(
    folders: Sequence[str],
    results: str | None,
    policy_file: str | None,
    as_of: str | None,
    propose: bool,
    baselines: Sequence[str],
    fail_on: Sequence[str],
    as_json: bool,
    full: bool,
) -> None:
    """Judge the results of a matrix run again, with another policy or as of another day; or join its shards first.

    One DIR without --results is judged and stays as it is; `jaxexport report --policy` shows the new judgement.
    Otherwise each DIR is a shard of one plan, and their results are written into --results, which several DIR need. A
    shard that is missing or did not finish makes the run incomplete, also where only one is given. One that is given
    twice is refused, and so are shards of different plans, or of two commits.

    Results count only with all that decided their verdicts: a run by another version of this program, or by other
    tolerances, `numbers`, comparators, packages of readers or variables, is refused.

    What is promised on the day of the judgement and was never run makes it incomplete too.

    The policy is the named one, else that of the project in the working folder, else that of the run. Exit codes are
    those of `jaxexport matrix`; --baseline alone does not change them.
    """
    from export_core.report.policy_text import proposal
    from export_core.report.terminal import print_headline, print_report
    from export_core.report.view import view
    from export_core.run.merge import merge_shards
    from export_core.run.outdated import own_policy
    from export_core.run.results import read_run

    if as_json and not baselines:
        raise click.UsageError("--json prints the difference from a baseline: it needs --baseline OLD.")
    if propose and baselines:
        raise click.UsageError("--propose cannot be combined with --baseline.")
    click_options.check_fail_on(fail_on, baselines)
    shards = [*map(Path, folders)]
    # Not the usual folder, which has the last run: joining writes over what is there.
    if len(shards) > 1 and not results:
        raise click.UsageError(
            "Several DIR are shards of one plan: expected --results DIR, the folder for the joined run, found none."
        )
    if shards and results:
        recorded = _joined(shards, folder := Path(results), policy_file)
    else:
        recorded = read_run(folder := Path(*folders or (results or RESULTS,)))
        # A pattern such as `shards/*` matches one folder where the others are missing: it is the joining of shards.
        if recorded.summary.shard and not propose:
            recorded = merge_shards([folder])
    run = judged_run(recorded, folder, policy_file, as_of, fail_on, functools.partial(echo, err=True))
    comparison = None
    if baselines:
        comparison = compared(run, baselines)
        # A lost bonus, or a growth since then, may have failed the run.
        words = [word for baseline in baselines for word in ("--baseline", baseline)]
        run = replace(comparison.run, options=f"{run.options} {shlex.join(words)}".strip())
    proposed = proposal(run.results, run.summary, recorded.summary, own_policy(recorded)) if propose else ""
    with click_options.keeping_exit_code(run.summary.exit_code):
        if comparison and as_json:
            echo_json(comparison.as_json())
            for text in run.summary.uncovered:
                echo(text, err=True)
        elif propose:
            echo(proposed, nl=False)
            if not proposed:
                echo("nothing to propose: no failure of this run needs an entry in known_failures", err=True)
            # On stderr: standard output is YAML, to be appended to a policy.
            print_headline(click_options.console(stderr=True), view(run))
        else:
            print_report(click_options.console(), view(run, comparison), full=full)
    raise click.exceptions.Exit(run.summary.exit_code)


def _joined(shards: Sequence[Path], folder: Path, policy_file: str | None) -> Run:
    """Join shards into one run, write its results into `folder`, and return the run.

    Raises `RunError` if `folder` is one of the shards, or if the shards do not fit together.
    """
    from export_core.run.merge import merge_shards
    from export_core.run.plan_record import PLAN
    from export_core.run.results import SUMMARY, Journal, finish_run

    # `.jaxexport` is the default of every --results: a shard is easily named by mistake.
    if folder.resolve() in {shard.resolve() for shard in shards}:
        raise RunError(
            f"--results {folder}: this is one of the shards, which are never overwritten. Choose another folder."
        )
    for shard in shards:
        # The folder of a job that ended early has at least its plan: nothing at all is more likely a wrong name.
        if not any((shard / name).exists() for name in (PLAN, SUMMARY)):
            found = "an empty one or other files" if shard.is_dir() else "a file" if shard.exists() else "none"
            echo(f"warning: {shard}: expected the results folder of a shard, found {found}.", err=True)
    run = merge_shards(shards)
    assert run.plan
    judging_policy(run, shards[0], policy_file)  # raises for shards whose verdicts have to be found again
    with Journal(folder, run.plan) as journal:
        finish_run(journal, folder, run)
    return run
