"""How a run is reported: findings in sentences, and the terminal output drawn from them."""

from export_core.report.finding import Finding
from export_core.report.findings import broken_cell, findings
from export_core.report.terminal.cells_table import print_table
from export_core.report.terminal.run_report import print_findings, print_headline, print_plan, print_report
from export_core.report.wording import outcome_line
from export_core.run.first_replay import FirstReplay, first_replay

__all__ = [
    "Finding",
    "FirstReplay",
    "broken_cell",
    "findings",
    "first_replay",
    "outcome_line",
    "print_findings",
    "print_headline",
    "print_plan",
    "print_report",
    "print_table",
]
