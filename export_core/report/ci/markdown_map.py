"""The map of a run in Markdown: writers down, readers across, the worst judgement of their cells as a symbol."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from export_core.base.escaping import for_markdown
from export_core.judge import Judgement, Result
from export_core.judge.result import ReaderOf, WriterOf
from export_core.report.wording import ranges

_Row = tuple[WriterOf, str]
_Counts = dict[_Row, dict[ReaderOf, Counter[Judgement]]]


@dataclass(frozen=True)
class MarkdownMap:
    """The table with its legend, and how many rows and columns it has."""

    text: str
    rows: int
    columns: int


def markdown_map(results: Sequence[Result], before: Iterable[Result] = ()) -> MarkdownMap:
    """The map of a run; with the results of an earlier one, a square that changed shows both judgements or counts.

    Readers next to each other whose columns are equal are one column; counts are those of the worst judgement, in each
    of these readers.
    """
    now, then = _counts(results), _counts(before)
    rows = sorted(now, key=lambda row: (row[0].built, row[0].jaxlib, row[0].jax, row[1]))
    readers = sorted({reader for cells in now.values() for reader in cells}, key=lambda reader: reader.date_order)
    columns = [
        list(run)
        for _, run in itertools.groupby(readers, lambda reader: [_square(now, then, row, reader) for row in rows])
    ]
    names, writers = _names(readers), _names([writer for writer, _ in rows])
    ordered = [names[reader] for reader in readers]
    titles = [for_markdown(ranges([names[reader] for reader in run], ordered)) for run in columns]
    several_platforms = len({platform for _, platform in rows}) > 1
    lines = ["Goldens by writer (down), in readers by build date (across):", ""]
    lines += [f"| | {' | '.join(titles)} |", f"|---|{':-:|' * len(titles)}"]
    for row in rows:
        name = writers[row[0]] + (f" on {row[1]}" if several_platforms else "")
        squares = [_square(now, then, row, run[0], several=len(run) > 1) for run in columns]
        lines.append(f"| {for_markdown(name)} | {' | '.join(squares)} |")
    lines += ["", _legend(now, then)]
    return MarkdownMap("\n".join(lines) + "\n", len(rows), len(columns))


def _counts(results: Iterable[Result]) -> _Counts:
    counts: _Counts = defaultdict(lambda: defaultdict(Counter))
    for result in results:
        counts[result.writer, result.platform][result.reader][result.judgement] += 1
    return counts


def _square(now: _Counts, then: _Counts, row: _Row, reader: ReaderOf, *, several: bool = False) -> str:
    counts, earlier = (run[row][reader] if reader in run.get(row, {}) else Counter() for run in (now, then))
    if not counts:
        return ""
    worst, then_worst = _worst(counts), _worst(earlier) if earlier else None
    before = f"{then_worst.facts.symbol}→" if then_worst and then_worst is not worst else ""
    number = ""
    if worst.fails_run:
        changed = then_worst is worst and earlier[worst] != counts[worst]
        number = f" {earlier[worst]:,}→{counts[worst]:,}" if changed else f" {counts[worst]:,}"
        number += " each" if several else ""
    return f"{before}{worst.facts.symbol}{number}"


def _worst(counts: Counter[Judgement]) -> Judgement:
    return next(judgement for judgement in Judgement if counts[judgement])


def _names(releases: Sequence[WriterOf | ReaderOf]) -> dict[WriterOf | ReaderOf, str]:
    """Releases by jaxlib, with jax where one jaxlib is there with several."""
    jax: dict[str, set[str]] = defaultdict(set)
    for release in releases:
        jax[release.jaxlib].add(release.jax)
    return {
        release: f"{release.jaxlib} with jax {release.jax}" if len(jax[release.jaxlib]) > 1 else release.jaxlib
        for release in releases
    }


def _legend(*runs: _Counts) -> str:
    """What each symbol means that is there."""
    seen = {_worst(counts) for run in runs for cells in run.values() for counts in cells.values()}
    return " · ".join(f"{name.facts.symbol} {name}: {name.facts.meaning}" for name in Judgement if name in seen)
