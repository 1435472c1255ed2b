"""Markdown: tables, and text in the cells of a table."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; a cell is one line."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([cell(text) for text in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(text: str) -> str:
    """Text as it may stand in a cell: on one line, and with no bar that would end it."""
    return " ".join(text.replace("``", "`").split()).replace("|", r"\|")


def code(text: str) -> str:
    """Text as it is typed; nothing for none."""
    return f"`{text}`" if text else ""
