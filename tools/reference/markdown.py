"""Functions that write Markdown: a table, text in the cell of a table, inline code."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; the text of each cell is put on one line and escaped."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([cell(text) for text in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(text: str) -> str:
    """Return a text in the form that the cell of a table needs: on one line, and with bars escaped."""
    return " ".join(text.replace("``", "`").split()).replace("|", r"\|")


def code(text: str) -> str:
    """Return a text as inline code, or "" if the text is empty."""
    return f"`{text}`" if text else ""
