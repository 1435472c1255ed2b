"""Tables that a program writes into a page, between `<!-- NAME -->` and `<!-- end -->`, and CSV files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def filled(text: str, tables: Mapping[str, str]) -> str:
    """Return a page's text in which the tables of these names are replaced.

    Each table is put between the comments `<!-- NAME -->` and `<!-- end -->`.

    Raises:
        KeyError: the page does not have these comments.
    """
    for name, new in tables.items():
        between = re.search(rf"(?<=<!-- {re.escape(name)} -->\n).*?(?=<!-- end -->)", text, re.DOTALL)
        if between is None:
            raise KeyError(f"expected <!-- {name} --> and <!-- end --> in the page")
        text = f"{text[: between.start()]}{new}\n{text[between.end() :]}"
    return text


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; its last line has no newline."""
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (head, ["-"] * len(head), *rows))


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return the text of a CSV file with these rows, at least one, which all have the same columns."""
    text = io.StringIO()
    lines = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue()


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, each as a dict by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
