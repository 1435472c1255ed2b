"""How it is told: findings in sentences, and the terminal drawn from them."""

from export_core.inspection.source_difference import source_difference
from export_core.report.changes import changes, counted, told
from export_core.report.findings import Finding, broken, findings
from export_core.report.terminal import print_findings, print_headline, print_plan, print_report, print_table
from export_core.report.words import arithmetic, happened

__all__ = [
    "Finding",
    "arithmetic",
    "broken",
    "changes",
    "counted",
    "findings",
    "happened",
    "print_findings",
    "print_headline",
    "print_plan",
    "print_report",
    "print_table",
    "source_difference",
    "told",
]
