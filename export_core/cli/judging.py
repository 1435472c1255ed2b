"""A finished run judged again, with another policy or as of another day: for `judge`, and `report` if asked to."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from export_core.cli.options import day_of, with_fail_on
from export_core.run.errors import RunError

if TYPE_CHECKING:
    from export_core.judge import Result, Summary
    from export_core.policy import Policy


@dataclass(frozen=True)
class JudgedRun:
    """A run after it was judged again. `options` are those with which `jaxexport report` judges it in the same way."""

    results: list[Result]
    summary: Summary
    policy: Policy
    options: str


def judged_run(folder: Path, policy_file: str | None, as_of: str | None, fail_on: Sequence[str] = ()) -> JudgedRun:
    """Judge the results in a folder by the named policy, else that of the project here, else that of the run."""
    from export_core.features.costs.over_budget import with_budgets
    from export_core.judge import RunFacts, calendar_facts, judge_again, summarize
    from export_core.judge.causes import with_causes
    from export_core.policy import policy_file as policy_path
    from export_core.run.results import policy_of, read_run

    recorded, before, _ = read_run(folder)
    file = policy_path(Path(), policy_file)
    earlier = policy_of(before)
    policy = _policy(file, earlier) if file else earlier
    options = ["--policy", str(file)] if policy.without_locations() != earlier.without_locations() else []
    # Not today: the same results and policy are to give the same judgement on any day.
    day = day_of(as_of) if as_of else before.as_of
    options += ["--as-of", str(day)] if day != before.as_of else []
    options += [word for kind in fail_on for word in ("--fail-on", kind)]
    policy = with_fail_on(policy, fail_on)
    results = with_causes(with_budgets((judge_again(result, policy, day) for result in recorded), policy))
    facts = replace(RunFacts.from_summary(before), as_of=day, calendar=calendar_facts(policy.calendar(), day))
    return JudgedRun(results, summarize(results, policy, facts), policy, shlex.join(options))


def _policy(file: Path, earlier: Policy) -> Policy:
    """The policy of a file. Raises `RunError` for one under which the cells would have run or compared differently."""
    from export_core.policy import load_policy

    now = load_policy(file)
    if name := now.replays_otherwise(earlier):
        raise RunError(
            f"{file}: {name}: expected the value that this run was made with, found another one. It decides how "
            "cells run and are compared: run `jaxexport matrix` again, or judge by a policy with the same value."
        )
    return now
