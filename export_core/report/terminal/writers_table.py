"""A run as a table of writers and readers with counts: neighbours with the same outcome are one range."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from export_core.base.phrases import few, plural
from export_core.judge import Judgement, Result
from export_core.judge.result import by_build_date
from export_core.report.terminal.paragraphs import wrapped
from export_core.report.wording import ranges

MOST_ROWS = 10
_HEAD = ("writer", "goldens", "promised readers", "other readers")
_GAP = "  "
_STAYS = "\N{NO-BREAK SPACE}"
"""Until the table is wrapped: between a number and its noun no line ends."""
_SPACES = str.maketrans(dict.fromkeys("\t\n\v\f\r", " "))
"""What wrapping turns into spaces, and would move the colours."""


@dataclass(frozen=True)
class WriterRow:
    """The goldens of one writer on one platform.

    `promised` says how the promised cells ended, by reader; `outside` how many of the other cells work.
    """

    writer: str
    goldens: int
    promised: Text
    outside: Text
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


def table_lines(results: Sequence[Result], width: int) -> list[Text]:
    """The table in colours, wrapped in its third column; of many writers, those with a bad cell come first."""
    rows = writer_rows(results)
    shown = rows if len(rows) <= MOST_ROWS else sorted(rows, key=lambda row: not row.is_bad)[:MOST_ROWS]
    rest = [row for row in rows if row not in shown]
    head = (*_HEAD[:2], Text(_HEAD[2]), Text(_HEAD[3]))
    cells = [head, *((row.writer, str(row.goldens), row.promised, row.outside) for row in rows if row in shown)]
    name, goldens, _, outside = (max(len(cell[column]) for cell in cells) for column in range(4))
    indent = name + goldens + 2 * len(_GAP)
    middle = max(24, width - indent - outside - len(_GAP))
    wrapped_cells = [_wrapped(cell[2], middle) for cell in cells]
    longest = max(len(line) for lines in wrapped_cells for line in lines)
    lines = []
    for cell, parts in zip(cells, wrapped_cells, strict=True):
        start, pad = f"{cell[0]:<{name}}{_GAP}{cell[1]:>{goldens}}{_GAP}", " " * (longest - len(parts[0]))
        lines.append(Text.assemble(start, parts[0], pad, _GAP, cell[3]))
        lines[-1].rstrip()
        lines += [Text.assemble(" " * indent, part) for part in parts[1:]]
    if rest:
        bad = sum(row.is_bad for row in rest)
        broken = f"{bad} with broken or missing cells" if bad else "none with a broken cell"
        lines.append(Text(f"and {plural(len(rest), 'more writer')}, {broken}: {few([row.writer for row in rest])}"))
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
    bad = [judgement for judgement in Judgement if judgement.facts.badness]
    for kinds, run in itertools.groupby(in_order, lambda reader: [kind for kind in bad if judgements[reader][kind]]):
        versions = list(run)
        counts = [_span([judgements[reader][kind] for reader in versions], kind) for kind in kinds]
        ended = Text(", ").join(counts or [Text("ok", Judgement.KEPT.facts.style)])
        parts.append(Text.assemble(f"{ranges(versions, readers).translate(_SPACES)}:{_STAYS}", ended))
    works, total = outside[Judgement.BONUS], sum(outside.values())
    others = [Text(f"{works:,} of {total:,} ok")] if total else []
    others += [Text(f"{outside[kind]:,} {kind}", kind.facts.style) for kind in bad if kind.fails_run and outside[kind]]
    is_bad = any(result.judgement.fails_run for result in results)
    goldens = len({result.golden for result in results})
    return WriterRow(name, goldens, Text("; ").join(parts or [Text("none")]), Text(", ").join(others), is_bad)


def _wrapped(text: Text, width: int) -> list[Text]:
    """The lines of a text, each with its colours."""
    lines, start = [], 0
    for plain in wrapped(text.plain, width, indent=0):
        start = text.plain.index(plain, start)
        lines.append(text[start : start + len(plain)])
        lines[-1].plain = plain.replace(_STAYS, " ")
        start += len(plain)
    return lines


def _span(counts: Sequence[int], kind: Judgement) -> Text:
    """``8 broken``; of several readers ``8 broken each``, ``8 to 13 known each``: not their sum."""
    least, most = min(counts), max(counts)
    span = f"{least:,} {kind}" if least == most else f"{least:,} to {most:,} {kind}"
    span += " each" if len(counts) > 1 else ""
    return Text(span.replace(" ", _STAYS), kind.facts.style)
