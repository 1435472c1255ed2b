"""The tests that findings are about, for formats that point at the line of a test."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from export_core.base.phrases import plural
from export_core.judge import Result
from export_core.report.ci.source_lines import SourceLine, source_line
from export_core.report.cost_wording import limits_line
from export_core.report.finding import Finding
from export_core.report.wording import first_line

_DETAILS = ("known as", "note", "since", "to do")


@dataclass(frozen=True)
class AffectedTest:
    """A finding with the cells of one test, the first of which is the example; no cells if it is about the run."""

    finding: Finding
    results: tuple[Result, ...] = ()

    @property
    def title(self) -> str:
        """The kind of the finding, and what its cells have in common."""
        cause = self.finding.cause
        return f"{self.finding.title}: {cause.verdict} in stage {cause.stage}" if cause else self.finding.title

    @property
    def message(self) -> str:
        """What happened, since when, what to do, and the command that runs one of these cells again."""
        lines = [self.finding.sentence]
        if len(self.results) < len(self.finding.results):
            lines.append(f"{plural(len(self.results), 'cell')} of them: {self.results[0].case}.")
        lines += [f"{label}: {text}" for label, text in self.finding.details if label in _DETAILS]
        if self.results:
            example = self.results[0]
            lines.insert(1, f"message: {limits_line(example) or first_line(example.message) or example.verdict}")
            lines[2:2] = [f"looks like: {example.looks_like}"] if example.looks_like else []
            lines.append(f"reproduce: {example.reproduce}")
        return "\n".join(lines)

    def place(self, folder: Path) -> SourceLine | None:
        """The line of the test in the project in `folder`, if it is there."""
        return source_line(self.results[0].test, folder) if self.results else None


def affected_tests(collected: Iterable[Finding]) -> list[AffectedTest]:
    """The tests of findings that somebody has to look at: the first of each, worst first, then the second of each.

    In this order a format can stop anywhere without leaving out a finding for many tests of another one.
    """
    by_finding = [_tests_of(finding) for finding in collected if finding.kind.level]
    return [test for tests in itertools.zip_longest(*by_finding) for test in tests if test]


def _tests_of(finding: Finding) -> Sequence[AffectedTest]:
    tests: dict[str, list[Result]] = defaultdict(list)
    for result in finding.results:
        tests[result.test or result.case].append(result)
    example = finding.cause and finding.cause.example
    for results in tests.values():
        results.sort(key=lambda result: result.key != example)
    ordered = sorted(tests.values(), key=lambda results: results[0].key != example)
    return [AffectedTest(finding, tuple(results)) for results in ordered] or [AffectedTest(finding)]
