"""The table of the benchmarks in a page of the docs, between two marker lines."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.line import Line
from export_core.base.atomic import write_whole

BEGIN, END = "<!-- nox -s bench: begin -->\n", "<!-- nox -s bench: end -->\n"


COLUMNS = ("what", "measured", "against", "result", "budget", "")


def columns(line: Line) -> tuple[str, ...]:
    """Return the texts of a line for `COLUMNS`, the columns of the table."""
    return line.what, line.measured, line.against, line.result, line.budget, mark(line)


def mark(line: Line) -> str:
    """Return ``ok`` if a line is within its budget, ``MISSED`` if it is not, and "" if it has no budget."""
    return "" if not line.budget else "ok" if line.ok else "MISSED"


@dataclass(frozen=True)
class PageTable:
    """A page that contains a table, with the page's text before and after that table."""

    page: Path
    before: str
    after: str

    @classmethod
    def of(cls, page: Path) -> PageTable:
        """Read a page, and find its table by the marker lines.

        Raises:
            OSError: the page cannot be read.
            ValueError: the page does not have the marker lines, or cannot be written.
        """
        before, begin, rest = page.read_text().partition(BEGIN)
        _, end, after = rest.partition(END)
        if not (begin and end):
            raise ValueError(f"{page}: expected the lines {BEGIN.strip()} and {END.strip()}, found none")
        if not (os.access(page, os.W_OK) and os.access(page.parent, os.W_OK)):
            raise ValueError(f"{page}: expected a page that can be written, found one that cannot")
        return cls(page, before, after)

    def write(self, lines: Sequence[Line], machine: str) -> None:
        """Replace the table by the lines that have a budget, and write all lines into a CSV file beside the page."""
        table, rows = io.StringIO(newline=""), [COLUMNS, *map(columns, lines)]
        csv.writer(table, lineterminator="\n").writerows(rows)
        write_whole(self.page.with_suffix(".csv"), [table.getvalue().encode()])
        measured, budget = COLUMNS.index("measured"), COLUMNS.index("budget")
        shown = [(*row[:measured], *row[measured + 1 :]) for row in rows if row[budget]]
        text = "".join(f"| {' | '.join(row)} |\n" for row in (shown[0], ("-",) * len(shown[0]), *shown[1:]))
        write_whole(self.page, [f"{self.before}{BEGIN}{text}\n{machine}\n{END}{self.after}".encode()])
