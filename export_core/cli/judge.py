"""The command `jaxexport judge`: the results of a run, judged again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli.help import HelpfulCommand
from export_core.cli.options import PATH, console, day_of, full_option, policy_option, with_fail_on
from export_core.cli.output import echo
from export_core.runs.errors import RunError

if TYPE_CHECKING:
    from export_core.judge import Summary
    from export_core.policy import Policy

_REPLAYED = ("tolerances", "numbers", "allow", "quirks")
"""Keys of a policy that decide how cells run and are compared: judging again does neither."""


@click.command(cls=HelpfulCommand)
@click.argument("folder", metavar="DIR", default=".jaxexport", type=PATH)
@policy_option
@click.option("--as-of", metavar="DATE", help="Judge as of this day, such as 2026-10-25. [default: that of the run]")
@click.option(
    "--propose",
    is_flag=True,
    help="Print known failures for all broken cells, as YAML. Refused for a partial run.",
)
@click.option(
    "--baseline", metavar="OLD", type=PATH, help="Folder of an earlier run: also show what is different from it."
)
@click.option(
    "--fail-on",
    type=click.Choice(["outside", "bonus-lost"]),
    multiple=True,
    help="Also end with 1 where a cell outside its window fails other than by a refusal (outside), or was a bonus in "
    "--baseline and fails now (bonus-lost); may be given several times. [default: the policy's]",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the difference from --baseline as JSON (schema/comparison.schema.json).",
)
@full_option
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

    The policy is the named one, else that of the project in the working folder, else that of the run. Exit codes are
    those of `jaxexport matrix`; --baseline alone does not change them.
    """
    from export_core.cli.report import print_difference
    from export_core.judge import RunFacts, calendar_facts, judge_again, summarize
    from export_core.judge.causes import with_causes
    from export_core.report import print_headline, print_report
    from export_core.report.proposal import proposal
    from export_core.runs.baseline import compare_with_baseline
    from export_core.runs.results import read_run

    if as_json and not baseline:
        raise click.UsageError("--json prints the difference from a baseline: it needs --baseline OLD.")
    if propose and baseline:
        raise click.UsageError("--propose cannot be combined with --baseline.")
    if "bonus-lost" in fail_on and not baseline:
        raise click.UsageError("--fail-on bonus-lost compares with an earlier run: it needs --baseline OLD.")
    recorded, before, _ = read_run(Path(folder))
    policy = with_fail_on(_policy(policy_file, before), fail_on)
    results = with_causes(judge_again(result, policy) for result in recorded)
    # Not today: the same results and policy are to give the same judgement on any day.
    day = day_of(as_of) if as_of else before.as_of
    facts = replace(RunFacts.from_summary(before), as_of=day, calendar=calendar_facts(policy.calendar(), day))
    summary = summarize(results, policy, facts)
    comparison = compare_with_baseline(Path(folder), Path(baseline), results, summary, policy) if baseline else None
    summary = comparison.now if comparison else summary  # which a lost bonus may have failed
    if propose:
        echo(proposal(results, summary), nl=False)
        # On stderr: standard output is YAML, to be appended to a policy.
        print_headline(console(stderr=True), summary)
    elif not as_json:
        print_report(console(), results, summary, Path(folder), full=full)
    if comparison:
        print_difference(comparison, as_json=as_json)
    raise click.exceptions.Exit(summary.exit_code)


def _policy(named: str | None, before: Summary) -> Policy:
    """The policy to judge by.

    Raises `RunError` for one under which the cells would have run or compared differently.
    """
    from export_core.policy import load_policy, policy_file
    from export_core.runs.results import policy_of

    earlier = policy_of(before)
    file = policy_file(Path(), named)
    if file is None:
        return earlier
    now = load_policy(file)
    # Without locations: a quirk that only moved to another line is the same quirk.
    for name in _REPLAYED:
        if getattr(now.without_locations(), name) != getattr(earlier.without_locations(), name):
            raise RunError(
                f"{file}: {name}: expected the value that this run was made with, found another one. It decides how "
                "cells run and are compared: run `jaxexport matrix` again, or judge by a policy with the same value."
            )
    return now
