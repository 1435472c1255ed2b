"""The tables of the atlas as Markdown: a line for each release, as a reader and as a writer, the newest first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from export_core.base.phrases import plural
from studies.atlas.scores import Atlas, Lifetimes, ReleaseScore

READER_HEAD = ("release", "promised cells", "kept, %", "but for known issues, %")
WRITER_HEAD = ("writer", "goldens", "run by all later releases", "days (median)")
_Row = tuple[str, ...]


def score_row(score: ReleaseScore) -> _Row:
    """A release as a reader, a cell of the table for each column of `READER_HEAD`."""
    shares = (percent(score.kept, whole) for whole in (score.promised, score.promised - score.known))
    return score.reader.jaxlib, str(score.promised), *shares


def percent(part: int, whole: int) -> str:
    """A share with one digit after the point, 100.0 for nothing less than all; a dash for a share of nothing."""
    if not whole:
        return "-"
    tenths = part * 1000 // whole if part < whole else 1000
    return f"{tenths / 10:.1f}"


def lifetime_row(row: Lifetimes) -> _Row:
    """A release as a writer, a cell of the table for each column of `WRITER_HEAD`."""
    return row.writer.jaxlib, *(f"{number:g}" for number in (row.goldens, row.alive, row.median))


def atlas_markdown(atlas: Atlas) -> Iterator[str]:
    """The tables: a line for each release, newest first. Neighbours with the same numbers share a line."""
    yield title(atlas)
    tables = (READER_HEAD, map(score_row, atlas.readers)), (WRITER_HEAD, map(lifetime_row, atlas.writers))
    for head, rows in tables:
        yield ""
        yield f"| {' | '.join(head)} |"
        yield f"|{' - |' * len(head)}"
        alike = [list(group) for _, group in groupby(rows, lambda row: row[1:])]
        for oldest, *others in reversed(alike):
            named = f"{oldest[0]} to {others[-1][0]}" if others else oldest[0]
            yield f"| {' | '.join((named, *oldest[1:]))} |"


def title(atlas: Atlas) -> str:
    """How much the atlas rests on."""
    return (
        f"{plural(atlas.cells, 'cell')} of {plural(atlas.goldens, 'golden')} of {plural(atlas.cases, 'case')}, in "
        f"{plural(len(atlas.readers), 'reader')}, as of {atlas.as_of}"
    )
