"""The tables of the atlas as Markdown: all releases as readers, and all as writers, each with the newest first."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from export_core.base.text import plural
from studies.atlas.scores import Atlas, Lifetimes, ReleaseScore
from tools.marked import table

READER_HEAD = ("release", "promised cells", "kept, %", "but for known issues, %")
WRITER_HEAD = ("writer", "goldens", "run by all later releases", "days (median)")
_Row = tuple[str, ...]


def score_row(score: ReleaseScore) -> _Row:
    """Return the row of a release as a reader, with the columns of `READER_HEAD`."""
    shares = (percent(score.kept, whole) for whole in (score.promised, score.promised - score.known))
    return score.reader.jaxlib, str(score.promised), *shares


def percent(part: int, whole: int) -> str:
    """Return `part` of `whole` in percent, rounded down, so that it is 100.0 only if nothing is missing.

    Return "-" if `whole` is 0.
    """
    if not whole:
        return "-"
    tenths = part * 1000 // whole if part < whole else 1000
    return f"{tenths / 10:.1f}"


def lifetime_row(row: Lifetimes) -> _Row:
    """Return the row of a release as a writer, with the columns of `WRITER_HEAD`."""
    return row.writer.jaxlib, *(f"{number:g}" for number in (row.goldens, row.alive, row.median))


def atlas_markdown(atlas: Atlas) -> str:
    """Return the atlas as Markdown: its counts, and its tables of readers and writers."""
    readers, writers = (map(score_row, atlas.readers), map(lifetime_row, atlas.writers))
    return "\n\n".join(
        (title(atlas), table(READER_HEAD, newest_first(readers)), table(WRITER_HEAD, newest_first(writers)))
    )


def newest_first(rows: Iterable[_Row]) -> list[_Row]:
    """Return the rows of releases, which are given oldest first, with the newest first.

    Consecutive releases with the same numbers share a row.
    """
    alike = [list(group) for _, group in groupby(rows, lambda row: row[1:])]
    return [
        (f"{oldest[0]} to {others[-1][0]}" if others else oldest[0], *oldest[1:]) for oldest, *others in reversed(alike)
    ]


def title(atlas: Atlas) -> str:
    """Return how many cells, goldens, cases and readers the atlas has, as a sentence."""
    return (
        f"{plural(atlas.cells, 'cell')} of {plural(atlas.goldens, 'golden')} of {plural(atlas.cases, 'case')}, in "
        f"{plural(len(atlas.readers), 'reader')}, as of {atlas.as_of}"
    )
