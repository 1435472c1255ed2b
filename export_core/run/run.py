"""A run that has ended: its plan, its results, their summary, and its results grouped by whatever is asked of them.

Every report is a view of a `Run`; a matrix, a merge of shards, a judgement with another policy and a folder of results
each give one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from export_core.base.feature import hooks
from export_core.judge.causes import find_causes
from export_core.judge.gate import RunFacts, Summary, in_order, summarize
from export_core.judge.result import ReaderOf, Result, Series, grouped
from export_core.judge.verdicts import Judgement
from export_core.policy import Policy
from export_core.readers.cell import CellKey
from export_core.releases import load_calendar
from export_core.run.plan_record import PlanRecord


# Two are the same only if they are one object: comparing a hundred thousand results would take long.
@dataclass(frozen=True, eq=False)
class Cells:
    """Results, grouped by whatever is asked of them: each group is made when it is first asked for, once."""

    results: Sequence[Result]
    """The results. Those of a run are in order: by reader, oldest build first, then case, writer and platform."""

    @cached_property
    def readers(self) -> tuple[ReaderOf, ...]:
        """The releases that read, oldest build first."""
        return tuple(sorted({result.reader for result in self.results}, key=lambda reader: reader.date_order))

    @cached_property
    def writers(self) -> tuple[ReaderOf, ...]:
        """The releases that wrote, each on whichever platforms, oldest build first."""
        releases = {writer.release for writer in {result.writer for result in self.results}}
        return tuple(sorted(releases, key=lambda release: release.date_order))

    @cached_property
    def platforms(self) -> tuple[str, ...]:
        """The platforms of the cells, in the order of the alphabet."""
        return tuple(sorted({result.platform for result in self.results}))

    @cached_property
    def by_cell(self) -> Mapping[CellKey, Result]:
        """The result of each cell, by the name of the cell."""
        return {result.key: result for result in self.results}

    @cached_property
    def by_golden(self) -> Mapping[tuple[str, str], Sequence[Result]]:
        """The results of each golden on each platform: its id and the platform are the key."""
        return grouped(self.results, lambda result: (result.golden, result.platform))

    @cached_property
    def by_series(self) -> Mapping[Series, Sequence[Result]]:
        """Results that differ in the reader only: by golden, platform, kind of device and mode."""
        return grouped(self.results, lambda result: result.series)

    @cached_property
    def by_test(self) -> Mapping[str, Sequence[Result]]:
        """The results of each test, as pytest names it; of each case, where a golden says no test."""
        return grouped(self.results, lambda result: result.test or result.case)

    @cached_property
    def by_reader(self) -> Mapping[tuple[ReaderOf, str], Cells]:
        """The cells in each reader on each platform."""
        groups = grouped(self.results, lambda result: (result.reader, result.platform))
        return {key: Cells(results) for key, results in groups.items()}

    @cached_property
    def by_writer(self) -> Mapping[tuple[ReaderOf, str], Cells]:
        """The cells of each writer on each platform, by build date; where it wrote their goldens makes no difference.

        These are the rows of a map: `by_reader` of each are the squares.
        """
        groups = grouped(self.results, lambda result: (result.writer.release, result.platform))
        by_date = sorted(groups, key=lambda key: (key[0].date_order, key[1]))
        return {key: Cells(groups[key]) for key in by_date}

    @cached_property
    def by_cause(self) -> Mapping[tuple[Judgement, str], Sequence[Result]]:
        """The results of each cause, by judgement and id; those that work have the id ``""``."""
        return grouped(self.results, lambda result: (result.judgement, result.cause))

    @cached_property
    def by_judgement(self) -> Mapping[Judgement, Sequence[Result]]:
        """The results of each judgement that a cell has, the worst judgement first."""
        groups = grouped(self.results, lambda result: result.judgement)
        return {judgement: groups[judgement] for judgement in Judgement if judgement in groups}


@dataclass(frozen=True, eq=False)
class Run(Cells):
    """A run, or one shard of it."""

    summary: Summary  # The summary of its results.
    plan: PlanRecord | None = None  # What decided the results; None for a run that was not written.
    folder: Path | None = None  # Where its files are; None for a run that was not written.
    options: str = ""
    """The options with which `jaxexport report` judges the files of that folder as this run was judged."""

    @cached_property
    def policy(self) -> Policy:
        """The policy by which it was judged."""
        return msgspec.convert(self.summary.policy, Policy)

    @property
    def goldens(self) -> Mapping[str, str]:
        """The hash of each golden, by its id; none for a run that was not written."""
        return self.plan.goldens if self.plan else {}


def judge_run(
    results: Iterable[Result],
    policy: Policy,
    facts: RunFacts,
    *,
    baseline: Mapping[CellKey, Result] | None = None,
    plan: PlanRecord | None = None,
    folder: Path | None = None,
    options: str = "",
) -> Run:
    """Judge results, which were judged one by one, as a whole: the rules of features, then causes, then the summary.

    Each result was judged by `policy` before; `baseline` are those of an earlier run, with which a rule may compare
    them. `plan`, `folder` and `options` are those of the `Run`.

    Raises `PolicyError` for a known failure whose globs cover too much.
    """
    judged, causes = find_causes(by_rules(in_order(results), policy, baseline), load_calendar())
    return Run(judged, summarize(judged, policy, facts, causes), plan, folder, options)


def by_rules(
    results: Sequence[Result], policy: Policy, baseline: Mapping[CellKey, Result] | None = None
) -> Sequence[Result]:
    """The results of a run as the rules of all features judge them, each of which may have its key in the policy."""
    for rule in hooks("rule"):
        results = rule(results, policy, baseline)
    return results
