"""Tables that a program writes into a page, between `<!-- NAME: begin -->` and `<!-- NAME: end -->`, and CSV files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

MARKED = re.compile(r"(<!-- ([^:\n]+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)


def filled(text: str, tables: Mapping[str, str]) -> str:
    """A page with these tables in the places of their names. Raises `KeyError` for a name without a place."""
    if missing := tables.keys() - {found[2] for found in MARKED.finditer(text)}:
        raise KeyError(f"expected <!-- {min(missing)}: begin --> in the page")
    return MARKED.sub(
        lambda found: f"{found[1]}{tables[found[2]]}\n{found[3]}" if found[2] in tables else found[0], text
    )


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (head, ["-"] * len(head), *rows))


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows with the same columns as the text of a CSV file."""
    text = io.StringIO()
    lines = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue()


def csv_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
