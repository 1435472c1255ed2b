"""The finding about deployment targets: how many of their cells a run has, and how they ended."""

from __future__ import annotations

from collections.abc import Iterator

from export_core.base.phrases import plural
from export_core.judge.gate import DeploymentTargetSummary
from export_core.judge.verdicts import Kind
from export_core.report.document import Finding
from export_core.run.run import Run

TARGETS = Kind("deployment targets", 7)


def target_findings(run: Run) -> Iterator[Finding]:
    """One finding with a sentence for each deployment target in force, where there is one."""
    if targets := run.summary.deployed:
        yield Finding(TARGETS, 1_000_000, " ".join(map(_ended, targets)))


def _ended(target: DeploymentTargetSummary) -> str:
    """How the cells of a deployment target ended."""
    until = f", until {target.until}" if target.until else ""
    where = f"{target.name} (jaxlib {target.jaxlib}, {target.platform}{until})"
    works = f"{target.works:,} of {plural(target.cells, 'cell')} {'works' if target.cells == 1 else 'work'}"
    others = [f"{count:,} {name}" for name, count in target.failing.items()]
    return f"{where}: {works}{'; ' if others else ''}{', '.join(others)}."
