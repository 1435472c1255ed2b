"""Tables that a program writes into a page, between `<!-- NAME -->` and `<!-- end -->`, and CSV files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def filled(text: str, tables: Mapping[str, str]) -> str:
    """Return a page with each table between the comments with its name.

    Raises:
        KeyError: the page has no such comments.
    """
    for name, new in tables.items():
        between = re.search(rf"(?<=<!-- {re.escape(name)} -->\n).*?(?=<!-- end -->)", text, re.DOTALL)
        if between is None:
            raise KeyError(f"expected <!-- {name} --> and <!-- end --> in the page")
        text = f"{text[: between.start()]}{new}\n{text[between.end() :]}"
    return text


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (head, ["-"] * len(head), *rows))


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return the text of a CSV file with these rows, which all have the same columns."""
    text = io.StringIO()
    lines = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue()


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
