"""A run in a terminal: the plan, the table, the findings, the last line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from export_core.judge import Judgement, Result, Summary
from export_core.matrix import Plan
from export_core.report.findings import Finding, findings
from export_core.report.grid import grid
from export_core.report.wording import LEGEND, cell_mark, headline, promised_nothing

_STYLE = {
    Judgement.KEPT: "green",
    Judgement.BONUS: "cyan",
    Judgement.OUTSIDE: "bright_black",
    Judgement.KNOWN: "yellow",
    Judgement.INCOMPLETE: "magenta",
    Judgement.BROKEN: "bold red",
}
_TITLE_STYLE = {
    "BROKEN PROMISE": "bold red",
    "NOT REPLAYABLE": "bold red",
    "REGRESSED": "bold red",
    "CAVEAT": "bold yellow",
    "fixed": "green",
    "INCOMPLETE": "bold magenta",
    "NOTHING PROMISED": "bold magenta",
    "STALE LIST": "bold yellow",
    "FLAKY": "bold yellow",
    "NOT COVERED": "bold yellow",
    "known failure": "yellow",
}
_HEADLINE_STYLE = {0: "bold green", 1: "bold red", 3: "bold magenta", 4: "bold yellow"}
_LINES_AT_ONCE = 200
_NARROWEST_COLUMN = 9  # a date with two digits of the year, and a gap


def print_plan(console: Console, plan: Plan) -> None:
    """What is going to be run, and which goldens have no cell."""
    cases = {golden.manifest.case for golden in plan.goldens}
    writers = dict.fromkeys(golden.manifest.writer.jaxlib for golden in plan.goldens)
    readers = [plan.spelled.get(release, release.jaxlib) for release in plan.readers]
    console.print(
        f"{len(plan.cells)} cells as of {plan.as_of}: {len(plan.goldens)} goldens of {len(cases)} cases "
        f"by jaxlib {', '.join(writers)}, in {len(readers)} readers",
        highlight=False,
        markup=False,
    )
    console.print(f"readers by build date: {', '.join(readers)}", highlight=False, markup=False)
    for platform, left_out in plan.unexported.items():
        if left_out and len(plan.unexported) > 1:
            planned = len({cell.golden.id for cell in plan.cells if cell.platform == platform})
            console.print(
                f"{platform}: {planned} goldens; {left_out} were not exported for it", highlight=False, markup=False
            )
    if plan.without_cells:
        console.print(plan.without_cells, highlight=False, markup=False, soft_wrap=True)
    for warning in plan.warnings:
        console.print(f"warning: {warning}", highlight=False, markup=False, soft_wrap=True)


def print_report(console: Console, results: Sequence[Result], summary: Summary) -> None:
    """The table, the findings, then the headline."""
    print_table(console, results)
    print_findings(console, findings(results, summary))
    console.print()
    print_headline(console, summary)


def print_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Each with its title, which is coloured."""
    for finding in findings:
        style = _TITLE_STYLE.get(finding.title, "bright_black")
        console.print()
        console.print(Text(finding.title, style=style), Text(finding.text), sep="  ", soft_wrap=True)


def print_headline(console: Console, summary: Summary) -> None:
    """The last line: the headline, the counts, the exit code."""
    # As Text: in a plain string rich takes square brackets for markup.
    line, counts = headline(summary)
    # Never in the colour of a promise that is kept, also where the policy says that such a run is meant.
    style = _TITLE_STYLE["NOTHING PROMISED"] if promised_nothing(summary) else _HEADLINE_STYLE[summary.exit_code]
    console.print(Text(line, style=style), soft_wrap=True)
    console.print(Text(counts), soft_wrap=True)


def print_table(console: Console, results: Sequence[Result]) -> None:
    """Goldens by writer down, readers by build date across; split into blocks where the terminal is too narrow."""
    table = grid(results)
    label = max((len(row.name) for block in table.blocks for row in block.rows), default=4) + 2
    label = max(label, *(len(block.head) for block in table.blocks), 0) + 1
    width = max((len(line) + 1 for title in table.titles.values() for line in title), default=_NARROWEST_COLUMN)
    # At least one column, also where the terminal is narrower than the names of the cases.
    per_block = max(1, (console.width - label) // width)
    for start in range(0, len(table.readers), per_block):
        readers = table.readers[start : start + per_block]
        height = max(len(table.titles[reader]) for reader in readers)
        lines = []
        for at in range(height):
            titles = [Text("".join(table.titles[reader][at : at + 1])) for reader in readers]
            lines.append(_row("writer, case" if at == height - 1 else "", label, titles, width))
        for block in table.blocks:
            lines.append(Text(block.head, style="bold"))
            for row in block.rows:
                cells = [_cell(row.cells.get(reader)) for reader in readers]
                lines.append(_row(f"  {row.name}", label, cells, width))
        console.print()
        # Not a table of rich: for 2,000 cells that takes longer than planning and judging them. In pieces, since a
        # large table as one Text costs memory.
        for piece in range(0, len(lines), _LINES_AT_ONCE):
            console.print(Text("\n").join(lines[piece : piece + _LINES_AT_ONCE]), no_wrap=True, overflow="crop")
    console.print(Text(LEGEND, style="bright_black"), soft_wrap=True)


def _row(name: str, label: int, texts: Sequence[Text], width: int) -> Text:
    """A row: its name, then a column for each text."""
    line = Text(name.ljust(label))
    for text in texts:
        line.append_text(text).append(" " * (width - len(text)))
    return line


def _cell(result: Result | None) -> Text:
    return Text(cell_mark(result), style=_STYLE[result.judgement]) if result else Text("")
