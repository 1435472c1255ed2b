"""The table of all cells in a terminal: goldens by writer down, readers by build date across."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from export_core.judge import Result
from export_core.report.grid import grid
from export_core.report.terminal.paragraphs import wrapped
from export_core.report.wording import LEGEND, cell_mark

_LINES_AT_ONCE = 200
_NARROWEST_COLUMN = 9  # a date with two digits of the year, and a gap


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
    for line in LEGEND.splitlines():
        for part in wrapped(line, console.width, indent=2):
            console.print(Text(part, style="bright_black"), soft_wrap=True)


def _row(name: str, label: int, texts: Sequence[Text], width: int) -> Text:
    """A row: its name, then a column for each text."""
    line = Text(name.ljust(label))
    for text in texts:
        line.append_text(text).append(" " * (width - len(text)))
    return line


def _cell(result: Result | None) -> Text:
    return Text(cell_mark(result), style=result.judgement.facts.style) if result else Text("")
