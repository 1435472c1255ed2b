"""Markdown: tables, and text in the cells of a table."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; each cell is put on one line."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([cell(text) for text in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(text: str) -> str:
    """Return text as it may be in a cell: on one line, and with bars escaped, which would end the cell."""
    return " ".join(text.replace("``", "`").split()).replace("|", r"\|")


def code(text: str) -> str:
    """Return text as inline code; an empty one stays empty."""
    return f"`{text}`" if text else ""
