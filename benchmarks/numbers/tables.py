"""The findings as Markdown, and as lines for whoever looks for the reason."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from benchmarks.numbers.findings import Findings, Planted
from benchmarks.numbers.rules import FACTORS
from export_core.comparing.noise import FACTOR

WIDTH = 120
"""Characters in a line of the docs."""
KINDS = {
    "small-signs": "the sign of small elements",
    "one-element": "one element off by 1e-3 of itself",
    "bf16": "bfloat16 where float32 was",
    "dropped-term": "a dropped term",
    "off-by-one": "an index off by one",
    "swapped-axis": "a swapped axis",
    "lost-epsilon": "a lost epsilon",
    "another-seed": "another seed",
    "low-accumulation": "sums in a narrower type",
    "denormals": "denormal numbers flushed to zero",
    "constant": "a constant wrong in the sixth digit",
    "nan-to-zero": "zero in place of NaN",
}


def markdown(findings: Findings) -> str:
    """All that docs/explanation/comparing.md shows of a run."""
    parts = _what_ran(findings), _caught(findings), _curve(findings), _changes(findings)
    return "\n\n".join(part for part in parts if part)


def _what_ran(findings: Findings) -> str:
    programs = {cell.read.program for cell in findings.cells}
    writers = {cell.read.writer for cell in findings.cells}
    readers = {cell.read.reader for cell in findings.cells}
    rest = ", ".join(f"{count} {verdict}" for verdict, count in sorted(findings.not_compared.items()))
    numerics = sum(cell.read.verdict == "numerics" for cell in findings.cells)
    missing = f" Without a golden by each writer: {', '.join(findings.not_written)}." if findings.not_written else ""
    return _paragraph(
        f"{len(programs)} programs by jaxlib {_listed(writers)}, read by {_listed(readers)}: {len(findings.cells):,} "
        f"cells ran, of which the matrix calls {numerics} numerics{f' (others: {rest})' if rest else ''}. "
        f"{len(findings.planted):,} errors were planted.{missing}"
    )


def _caught(findings: Findings) -> str:
    """Errors that each rule catches, by kind, under its false alarms."""
    cells = [cell.judged for cell in findings.correct]
    alarms = (
        sum(judged.largest > FACTOR for judged in cells),
        sum(judged.fails_tolerance for judged in cells),
        sum(judged.fails_numpy for judged in cells),
    )
    rows = [
        ("**false alarms** in cells where nothing changed", f"{len(cells):,}", *(f"**{count:,}**" for count in alarms))
    ]
    for kind, words in KINDS.items():
        of_kind = [planted for planted in findings.planted if planted.kind == kind]
        programs = len({planted.program for planted in of_kind})
        rows.append((f"caught: {words}", f"{len(of_kind)} in {programs} programs", *_shares(of_kind)))
    rows.append(("caught: all", f"{len(findings.planted):,}", *_shares(findings.planted)))
    heading = "", "number", f"noise, {FACTOR:g} times", "fixed rtol and atol", "`assert_allclose`"
    return _table(heading, rows)


def _shares(planted: Sequence[Planted]) -> tuple[str, str, str]:
    """The share that each rule catches."""
    judged = [one.judged for one in planted]
    return (
        _percent([one.largest > FACTOR for one in judged]),
        _percent([one.fails_tolerance for one in judged]),
        _percent([one.fails_numpy for one in judged]),
    )


def _percent(caught: Sequence[bool]) -> str:
    """Rounded down: 100 % is all."""
    return f"{100 * sum(caught) // len(caught)} %" if caught else "–"


def _curve(findings: Findings) -> str:
    cells = [cell.judged for cell in findings.correct]
    rows = [
        (
            str(factor),
            str(sum(judged.beyond[factor] > 0 for judged in cells)),
            str(sum(judged.beyond[factor] for judged in cells)),
            str(sum(not planted.judged.beyond[factor] for planted in findings.planted)),
        )
        for factor in FACTORS
    ]
    return _table(("times the noise", "false alarms: cells", "elements", "errors missed"), rows)


def _changes(findings: Findings) -> str:
    """Real changes: how many cells show each, and what the rules say of them."""
    paragraphs = []
    for change in dict.fromkeys(cell.change for cell in findings.cells if cell.change):
        cells = [cell.judged for cell in findings.cells if cell.change is change]
        beyond = sum(judged.largest > FACTOR for judged in cells)
        most = max(judged.largest for judged in cells)
        fixed, numpy = (sum(fails) for fails in zip(*((c.fails_tolerance, c.fails_numpy) for c in cells), strict=True))
        paragraphs.append(
            f"Left out of the false alarms, a real change: {change.reason} ({', '.join(change.programs)}). Of "
            f"{len(cells)} cells {beyond} are beyond {FACTOR:g} times the noise (the most: {most:.2g} times), {fixed} "
            f"beyond the fixed tolerance, {numpy} beyond that of `assert_allclose`."
        )
    return "\n\n".join(map(_paragraph, paragraphs))


def details(findings: Findings, most: int) -> list[str]:
    """The cells farthest from their golden and the errors that were missed, a line each."""
    ranked = sorted(findings.cells, key=lambda cell: -cell.judged.largest)[:most]
    lines = [
        f"{cell.judged.largest:8.3g} times the noise: {cell.read.program} {cell.read.writer} -> {cell.read.reader} "
        f"({cell.read.verdict}){', a documented change' if cell.change else ''}"
        for cell in ranked
    ]
    missed = [planted for planted in findings.planted if planted.judged.largest <= FACTOR]
    return lines + [
        f"missed, {planted.judged.largest:.3g} times the noise: {planted.kind} in {planted.program} {planted.writer}"
        for planted in sorted(missed, key=lambda planted: (planted.kind, planted.program))
    ]


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _listed(releases: set[str]) -> str:
    return ", ".join(sorted(releases, key=lambda release: [int(part) for part in release.split(".")]))


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heading, ("-",) * len(heading), *rows))
