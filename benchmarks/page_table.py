"""The table of the benchmarks in a page of the docs, between two marker lines."""

from __future__ import annotations

import csv
import datetime
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
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

    def write(self, lines: Mapping[str, Sequence[Line]], machine: str) -> None:
        """Replace the lines of some kinds in a CSV file beside the page, and make the page's table anew from that file.

        Of the lines of a kind with the same limit, the table has the one nearest to it. Lines of other kinds stay as
        they are, with the day of their measurement.

        Args:
            lines: The lines of each kind that was measured.
            machine: What they were measured on.
        """
        file, today = self.page.with_suffix(".csv"), datetime.date.today().isoformat()
        old = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))[1:] if file.exists() else []
        kept: dict[str, list[list[str]]] = {}
        for row in old:
            kept.setdefault(row[0], []).append(row)
        new = {kind: [[kind, today, *columns(line)] for line in own] for kind, own in lines.items()}
        rows = [["kind", "day", *COLUMNS], *(row for own in {**kept, **new}.values() for row in own)]
        table = io.StringIO(newline="")
        csv.writer(table, lineterminator="\n").writerows(rows)
        write_whole(file, [table.getvalue().encode()])
        chosen = [2 + COLUMNS.index(name) for name in ("what", "result", "budget", "")]
        shown = [[row[place] for place in chosen] for row in [rows[0], *_nearest_to_limits(rows[1:])]]
        text = "".join(f"| {' | '.join(row)} |\n" for row in (shown[0], ("-",) * len(shown[0]), *shown[1:]))
        write_whole(self.page, [f"{self.before}{BEGIN}{text}\n{machine}\n{END}{self.after}".encode()])


def _nearest_to_limits(rows: Iterable[list[str]]) -> list[list[str]]:
    """Return the row nearest to its limit of those with the same kind and budget, for each budget."""
    nearest: dict[tuple[str, str], list[str]] = {}
    result, budget = (2 + COLUMNS.index(name) for name in ("result", "budget"))
    for row in rows:
        key = row[0], row[budget]
        if row[budget] and (key not in nearest or _amount(row[result]) > _amount(nearest[key][result])):
            nearest[key] = row
    return list(nearest.values())


def _amount(result: str) -> float:
    """Return the number in a result, negative if more is better; 0 if there is none."""
    found = re.search(r"\d+(\.\d+)?", result.replace(",", ""))
    return 0.0 if found is None else -float(found[0]) if "faster" in result else float(found[0])
