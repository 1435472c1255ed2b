"""A finished run judged again, with another policy or as of another day: for `judge`, and `report` if asked to."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from export_core.cli.options import day_of, with_fail_on
from export_core.run.errors import RunError

if TYPE_CHECKING:
    from export_core.policy import Policy
    from export_core.run import Run


def judged_run(folder: Path, policy_file: str | None, as_of: str | None, fail_on: Sequence[str] = ()) -> Run:
    """Judge the results in a folder by the named policy, else that of the project here, else that of the run."""
    from export_core.judge import RunFacts, calendar_facts, judge_again
    from export_core.policy import policy_file as policy_path
    from export_core.run.results import read_run
    from export_core.run.run import judge_run

    recorded = read_run(folder)
    before, earlier = recorded.summary, recorded.policy
    file = policy_path(Path(), policy_file)
    policy = _policy(file, earlier) if file else earlier
    options = ["--policy", str(file)] if policy.without_locations() != earlier.without_locations() else []
    # Not today: the same results and policy are to give the same judgement on any day.
    day = day_of(as_of) if as_of else before.as_of
    options += ["--as-of", str(day)] if day != before.as_of else []
    options += [word for kind in fail_on for word in ("--fail-on", kind)]
    policy = with_fail_on(policy, fail_on)
    facts = replace(RunFacts.from_summary(before), as_of=day, calendar=calendar_facts(policy.calendar(), day))
    results = (judge_again(result, policy, day) for result in recorded.results)
    return judge_run(results, policy, facts, plan=recorded.plan, folder=folder, options=shlex.join(options))


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
