"""The command `jaxexport judge`: the results of a run, judged again."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli.options import as_of_option, console, day_of, policy_option
from export_core.runs.errors import RunError

if TYPE_CHECKING:
    from export_core.judge import Summary
    from export_core.policy import Policy

_REPLAYED = ("tolerances", "allow", "quirks")
"""Keys of a policy that say how cells run and compare: judging again does not run them again."""


@click.command()
@click.argument("folder", metavar="DIR", default=".jaxexport")
@policy_option
@as_of_option
@click.option(
    "--propose",
    is_flag=True,
    help="Print the known failures that would be needed, as YAML. Refused for a part of a run.",
)
@click.option("--baseline", metavar="OLD", help="The results of an earlier run: show what is different from it.")
@click.option("--json", "as_json", is_flag=True, help="The difference as JSON (schema/comparison.schema.json).")
def judge(
    folder: str, policy_file: str | None, as_of: str | None, propose: bool, baseline: str | None, as_json: bool
) -> None:
    """Judge the results of a matrix run again, with another policy or as of another day.

    The policy is the named one, else the project's here, else that of the run. Exit codes are those of `jaxexport matrix`, whatever a
    baseline says.
    """
    from export_core.cli.report import print_difference
    from export_core.judge import RunFacts, calendar_facts, judge_again, summarize
    from export_core.report import print_headline, print_report
    from export_core.report.proposal import proposal
    from export_core.runs.baseline import compare_with_baseline
    from export_core.runs.results import read_results, read_summary

    if as_json and not baseline:
        raise click.UsageError("--json prints the difference from a baseline: it needs --baseline OLD.")
    if propose and baseline:
        raise click.UsageError("--propose cannot be combined with --baseline.")
    before = read_summary(Path(folder))
    policy = _policy(policy_file, before)
    results = [judge_again(result, policy) for result in read_results(Path(folder))]
    day = day_of(as_of) if as_of else before.as_of
    facts = replace(RunFacts.from_summary(before), as_of=day, calendar=calendar_facts(policy.calendar(), day))
    summary = summarize(results, policy, facts)
    comparison = compare_with_baseline(Path(folder), Path(baseline), results, summary, policy) if baseline else None
    if propose:
        click.echo(proposal(results, summary), nl=False)
        print_headline(console(stderr=True), summary)
    elif not as_json:
        print_report(console(), results, summary)
    if comparison:
        print_difference(comparison, as_json=as_json)
    sys.exit(summary.exit_code)


def _policy(named: str | None, before: Summary) -> Policy:
    """What to judge by. Raises `RunError` for a policy under which the cells would have run or compared otherwise."""
    import msgspec

    from export_core.policy import Policy, load_policy, policy_file

    then = msgspec.convert(before.policy, Policy)
    file = policy_file(Path(), named)
    if file is None:
        return then
    now = load_policy(file)
    for name in _REPLAYED:
        if getattr(now.without_locations(), name) != getattr(then.without_locations(), name):
            raise RunError(
                f"{file}: {name}: expected what this run was made with, found something else. It says how cells run and compare: run "
                "`jaxexport matrix` again, or judge by a policy with the same."
            )
    return now
