"""How it is told: findings in sentences, and the terminal drawn from them."""

from export_core.report.findings import Finding, arithmetic, broken, findings, happened
from export_core.report.source import source_difference
from export_core.report.terminal import print_headline, print_plan, print_report, print_table

__all__ = [
    "Finding",
    "arithmetic",
    "broken",
    "findings",
    "happened",
    "print_headline",
    "print_plan",
    "print_report",
    "print_table",
    "source_difference",
]
