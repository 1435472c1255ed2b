"""A run as a table of writers and readers with counts: neighbours with the same outcome are one range."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from export_core.judge import Judgement, Result
from export_core.judge.result import by_build_date
from export_core.phrases import few, plural
from export_core.report.terminal.paragraphs import wrapped
from export_core.report.wording import ranges

MOST_ROWS = 10
_BAD = (Judgement.BROKEN, Judgement.OWED, Judgement.INCOMPLETE, Judgement.COSTLY)
_ORDER = (*_BAD, Judgement.KNOWN)
_HEAD = ("writer", "goldens", "promised readers", "other readers")
_GAP = "  "
_STAYS = "\N{NO-BREAK SPACE}"
"""Until the table is wrapped: between a number and its noun no line ends."""


@dataclass(frozen=True)
class WriterRow:
    """The goldens of one writer on one platform.

    `promised` says how the promised cells ended, by reader; `outside` how many of the other cells work.
    """

    writer: str
    goldens: int
    promised: str
    outside: str
    is_bad: bool


def writer_rows(results: Sequence[Result]) -> list[WriterRow]:
    """A row for each writer and platform, oldest build first."""
    readers = by_build_date(result.reader for result in results)
    several = len({result.platform for result in results}) > 1
    jaxes = {(result.writer.jaxlib, result.writer.jax) for result in results}
    paired = {jaxlib for jaxlib, count in Counter(jaxlib for jaxlib, _ in jaxes).items() if count > 1}
    groups: dict[tuple[datetime.date, str], list[Result]] = defaultdict(list)
    for result in results:
        writer = result.writer
        jax = f" with jax {writer.jax}" if writer.jaxlib in paired else ""
        name = f"{writer.jaxlib}{jax}{f' {result.platform}' if several else ''}"
        groups[writer.built, name].append(result)
    return [_row(name, groups[built, name], readers) for built, name in sorted(groups)]


def table_lines(results: Sequence[Result], width: int) -> list[str]:
    """The table, wrapped in its third column; of many writers, those with a broken or a missing cell come first."""
    rows = writer_rows(results)
    shown = rows if len(rows) <= MOST_ROWS else sorted(rows, key=lambda row: not row.is_bad)[:MOST_ROWS]
    rest = [row for row in rows if row not in shown]
    cells = [_HEAD, *((row.writer, str(row.goldens), row.promised, row.outside) for row in rows if row in shown)]
    name, goldens, _, outside = (max(len(cell[column]) for cell in cells) for column in range(4))
    indent = name + goldens + 2 * len(_GAP)
    middle = max(24, width - indent - outside - len(_GAP))
    wrapped_cells = [[line.replace(_STAYS, " ") for line in wrapped(cell[2], middle, indent=0)] for cell in cells]
    longest = max(len(line) for lines in wrapped_cells for line in lines)
    lines = []
    for cell, parts in zip(cells, wrapped_cells, strict=True):
        lines.append(f"{cell[0]:<{name}}{_GAP}{cell[1]:>{goldens}}{_GAP}{parts[0]:<{longest}}{_GAP}{cell[3]}".rstrip())
        lines += [f"{' ' * indent}{part}" for part in parts[1:]]
    if rest:
        bad = sum(row.is_bad for row in rest)
        broken = f"{bad} with broken or missing cells" if bad else "none with a broken cell"
        lines.append(f"and {plural(len(rest), 'more writer')}, {broken}: {few([row.writer for row in rest])}")
    return lines


def _row(name: str, results: Sequence[Result], readers: Sequence[str]) -> WriterRow:
    judgements: dict[str, Counter[Judgement]] = defaultdict(Counter)
    outside: Counter[Judgement] = Counter()
    for result in results:
        if result.promised:
            judgements[result.reader.jaxlib][result.judgement] += 1
        else:
            outside[result.judgement] += 1
    in_order = [reader for reader in readers if reader in judgements]
    parts = []
    for kinds, run in itertools.groupby(in_order, lambda reader: [kind for kind in _ORDER if judgements[reader][kind]]):
        versions = list(run)
        counts = [_span([judgements[reader][kind] for reader in versions], kind) for kind in kinds]
        parts.append(f"{ranges(versions, readers)}:{_STAYS}{', '.join(counts) or 'ok'}")
    works, total = outside[Judgement.BONUS], sum(outside.values())
    others = [f"{works:,} of {total:,} ok"] if total else []
    others += [f"{outside[kind]:,} {kind}" for kind in _BAD if outside[kind]]
    is_bad = any(result.judgement in _BAD for result in results)
    goldens = len({result.golden for result in results})
    return WriterRow(name, goldens, "; ".join(parts) or "none", ", ".join(others), is_bad)


def _span(counts: Sequence[int], kind: Judgement) -> str:
    """``8 broken``; of several readers ``8 broken each``, ``8 to 13 known each``: not their sum."""
    least, most = min(counts), max(counts)
    span = f"{least:,} {kind}" if least == most else f"{least:,} to {most:,} {kind}"
    span += " each" if len(counts) > 1 else ""
    return span.replace(" ", _STAYS)
