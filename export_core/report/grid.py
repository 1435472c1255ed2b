"""The table of a run: goldens by writer down, readers by build date across."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from export_core.judge import Result
from export_core.judge.result import ReaderOf, WriterOf


@dataclass(frozen=True)
class GridRow:
    """One golden on one platform; `name` is its case as the table shows it, `cells` are by reader."""

    name: str
    case: str
    platform: str
    cells: dict[ReaderOf, Result]


@dataclass(frozen=True)
class GridBlock:
    """The goldens of one writer; `head` names it and its build date."""

    head: str
    writer: WriterOf
    rows: list[GridRow]


@dataclass(frozen=True)
class Grid:
    """The table. `titles` are the lines above each reader: jaxlib, build date, and jax where one jaxlib has several."""

    readers: list[ReaderOf]
    titles: dict[ReaderOf, tuple[str, ...]]
    blocks: list[GridBlock]


def grid(results: Sequence[Result]) -> Grid:
    """Rows by writer, oldest build first, then by case and platform."""
    heads = {result.writer: _head(result.writer) for result in results}
    rows: dict[tuple[datetime.date, str, str, str, str], tuple[WriterOf, dict[ReaderOf, Result]]] = {}
    for result in results:
        place = (result.writer.built, heads[result.writer], result.case, result.platform, result.golden)
        rows.setdefault(place, (result.writer, {}))[1][result.reader] = result
    readers = sorted({result.reader for result in results}, key=lambda reader: reader.date_order)
    # Where one jaxlib is read with several jax, only the jax tells its columns apart.
    paired = {jaxlib for jaxlib, count in Counter(reader.jaxlib for reader in readers).items() if count > 1}
    names = _short_names([case for _, _, case, *_ in sorted(rows)])
    several_platforms = len({platform for *_, platform, _ in rows}) > 1
    blocks: list[GridBlock] = []
    for place in sorted(rows):
        _, head, case, platform, _ = place
        writer, cells = rows[place]
        if not blocks or blocks[-1].head != head:
            blocks.append(GridBlock(head, writer, []))
        name = f"{names[case]} {platform}" if several_platforms else names[case]
        blocks[-1].rows.append(GridRow(name, case, platform, cells))
    titles = {
        reader: (reader.jaxlib, f"{reader.built:%y-%m-%d}", *([f"jax {reader.jax}"] if reader.jaxlib in paired else ()))
        for reader in readers
    }
    return Grid(readers, titles, blocks)


def _head(writer: WriterOf) -> str:
    """The writer, as it is named in the line above its goldens."""
    jax = "" if writer.jax == writer.jaxlib else f" with jax {writer.jax}"
    return f"{writer.jaxlib}{jax}  built {writer.built}"


def _short_names(cases: Sequence[str]) -> dict[str, str]:
    """Case ids without the folders that all of them share."""
    parts = [case.split(".") for case in dict.fromkeys(cases)]
    shared = 0
    # At least the last part stays: a name is never empty.
    while len(parts) > 1 and all(len(part) > shared + 1 and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    return {case: ".".join(case.split(".")[shared:]) for case in cases}
