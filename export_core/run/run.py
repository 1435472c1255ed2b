"""A run that has ended: its plan, its results and their summary.

Every report is a view of a `Run`; a matrix, a merge of shards, a judgement with another policy and a folder of results
each give one.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import msgspec

from export_core.base.feature import hooks
from export_core.judge.causes import find_causes
from export_core.judge.gate import RunFacts, Summary, in_order, summarize
from export_core.judge.judgement import with_controls
from export_core.matrix.result import Cells, Result
from export_core.policy import Policy
from export_core.policy.run_options import RESULTS
from export_core.readers.cell import CellKey
from export_core.releases import load_calendar
from export_core.run.plan_record import PlanRecord


@dataclass(frozen=True, eq=False)
class Run(Cells):
    """A run that has ended, or one shard of it."""

    summary: Summary  # The summary of its results.
    plan: PlanRecord | None = None  # What decided the results; None for a run that was not written.
    folder: Path | None = None  # Where its files are; None for a run that was not written.
    options: str = ""
    """The options with which `jaxexport report` judges the files of that folder as this run was judged."""
    changed: str = ""
    """A text that names what decided the verdicts and has changed since the run; empty if nothing has, or nobody asked.
    """
    unread_policy: str = ""
    """A sentence on why the policy here cannot be read now; else empty."""
    judged_otherwise: str = ""
    """A sentence that names the policy here now, if it is not that of the run; else empty."""

    @cached_property
    def policy(self) -> Policy:
        """The policy by which the run was judged."""
        return msgspec.convert(self.summary.policy, Policy)

    def changed_since(self, policy: Policy | None = None) -> str:
        """Return a text that names what decided the verdicts and has changed since the run; empty if nothing has.

        Args:
            policy: The policy that holds now; None stands for the policy of the run.
        """
        policy = policy or self.policy
        changes = self.plan.changes_since(policy) if self.plan else []
        if name := policy.replays_otherwise(self.policy):
            changes.append(f"another value of `{name}` in the policy")
        return "; ".join(changes)

    @property
    def moment(self) -> tuple[str, str]:
        """The key that sorts runs: the day as of which the run was judged, then when it began."""
        return str(self.summary.as_of), str(self.summary.identity.started or "")

    @property
    def goldens(self) -> Mapping[str, str]:
        """The hash of each golden, by the golden's id; empty for a run that was not written."""
        return self.plan.goldens if self.plan else {}


def command_again(run: Run, policy: Path | None = None) -> str:
    """Return the shell command that makes a run again: with its options, if a command made it.

    `policy` is a policy file that the command names in place of the run's own; None for that of the run.

    The command writes into another folder than a run whose folder was named, so that it replaces no results.
    """
    plan = run.plan.under_policy(policy) if run.plan and policy else run.plan
    command = plan.command(_beside(run.folder), resume=False) if plan and run.folder else ""
    return command or shlex.join(["jaxexport", "matrix", *(["--policy", str(policy)] if policy else [])])


def _beside(folder: Path) -> Path:
    """Return a folder beside a folder of results; the folder itself if it is the usual one, which has the last run."""
    if RESULTS in (folder, *folder.parents):
        return folder
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.with_name(f"{named.name}-again") if named.name else named


def command_to_continue(run: Run) -> str:
    """Return the shell command that runs the cells that a run left out; "" if none is known, as for joined shards."""
    is_joined = bool(run.summary.not_run_shards)
    return run.plan.command(run.folder) if run.plan and run.folder and not is_joined else ""


class JudgeByRule(Protocol):
    """The hook `rule`: a rule of a feature that judges all results of a run together, once the run has ended."""

    def __call__(
        self, results: Sequence[Result], policy: Policy, baseline: Mapping[CellKey, Result] | None
    ) -> Sequence[Result]:
        """Return the results as the rule judges them; `baseline` has the results of an earlier run, by cell."""


def judge_run(
    results: Iterable[Result],
    policy: Policy,
    facts: RunFacts,
    *,
    plan: PlanRecord | None = None,
    folder: Path | None = None,
    options: str = "",
) -> Run:
    """Judge a run as a whole, with control cells and the rules of features, and return it with causes and summary.

    Each result must already have been judged alone by `policy`. `plan`, `folder` and `options` become fields of the
    returned `Run`.

    Raises `PolicyError` for a known failure whose globs cover too much.
    """
    controlled = with_controls(in_order(results), policy, facts.as_of)
    judged, causes = find_causes(by_rules(controlled, policy), load_calendar())
    return Run(judged, summarize(judged, policy, facts, causes), plan, folder, options)


def by_rules(
    results: Sequence[Result], policy: Policy, baseline: Mapping[CellKey, Result] | None = None
) -> Sequence[Result]:
    """Return the results of a run as the rules of all features judge them.

    `baseline` has the results of an earlier run, by cell, with which a rule may compare `results`.
    """
    asked = *policy.set_keys, *Cells(results).fact_names
    for judge_by_rule in hooks("rule", JudgeByRule, asked):
        results = judge_by_rule(results, policy, baseline)
    return results


def names_of_runs(runs: Sequence[Run]) -> list[str]:
    """Return a name for each run, such as ``as of 2026-11-20``; runs of one day also get their start times, in UTC."""
    days = Counter(run.summary.as_of for run in runs)
    names = []
    for run in runs:
        day, began = run.summary.as_of, run.summary.identity.started
        time = f"{'' if began.date() == day else f'{began:%Y-%m-%d} '}{began:%H:%M:%S}" if began else ""
        names.append(f"as of {day}{f', begun {time}' if time and days[day] > 1 else ''}")
    return names
