"""The tables of the atlas as Markdown: a line for each release, as a reader and as a writer, and what ended goldens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from export_core.base.escaping import for_markdown
from export_core.base.phrases import first_line, plural
from studies.atlas.scores import Atlas, EndOfLife, Lifetimes, ReleaseScore

READER_HEAD = (
    *("reader", "built", "promised", "kept", "but for known"),
    *("outside", "work", "wrong", "new bits", "more memory"),
)
WRITER_HEAD = ("writer", "built", "goldens", "run by all", "days: least", "median", "the others ended with")
END_HEAD = ("ended", "goldens", "verdict", "message")
_MOST_ENDS = 3
_Row = tuple[str, ...]


def score_row(score: ReleaseScore) -> _Row:
    """A release as a reader, a cell of the table for each column of `READER_HEAD`."""
    shares = (_share(score.kept, whole) for whole in (score.promised, score.promised - score.known))
    numbers = (score.outside, score.working, score.wrong, score.moved, score.grown)
    return score.reader.jaxlib, str(score.reader.built), str(score.promised), *shares, *map(str, numbers)


def _share(part: int, whole: int) -> str:
    return f"{percent(part, whole)} %" if whole else "-"


def percent(part: int, whole: int) -> str:
    """A share with one digit after the point; 100.0 for nothing less than all."""
    tenths = part * 1000 // whole if part < whole else 1000
    return f"{tenths / 10:.1f}"


def lifetime_row(row: Lifetimes) -> _Row:
    """A release as a writer, a cell of the table for each column of `WRITER_HEAD`."""
    ended: Counter[tuple[str, str]] = Counter()
    for end in row.ends:
        ended[end.reader.jaxlib, end.verdict] += end.goldens
    shown = [f"{jaxlib} ({goldens} {verdict})" for (jaxlib, verdict), goldens in ended.most_common(_MOST_ENDS)]
    more = sum(ended.values()) - sum(goldens for _, goldens in ended.most_common(_MOST_ENDS))
    shown += [f"others ({more})"] if more else []
    numbers = str(row.goldens), str(row.alive), str(row.shortest), f"{row.median:g}"
    return row.writer.jaxlib, str(row.writer.built), *numbers, ", ".join(shown) or "-"


def end_row(end: EndOfLife) -> _Row:
    """What ended goldens, a cell of the table for each column of `END_HEAD`."""
    return end.reader.jaxlib, str(end.goldens), str(end.verdict), first_line(end.message) or "-"


def atlas_markdown(atlas: Atlas) -> Iterator[str]:
    """The tables, each as a line of heads, a line of dashes, and a line for each release or message."""
    yield title(atlas)
    for head, rows in _tables(atlas):
        yield ""
        yield f"| {' | '.join(head)} |"
        yield f"|{' - |' * len(head)}"
        yield from (f"| {' | '.join(map(for_markdown, row))} |" for row in rows)


def title(atlas: Atlas) -> str:
    """How much the atlas rests on."""
    return (
        f"{plural(atlas.cells, 'cell')} of {plural(atlas.goldens, 'golden')} of {plural(atlas.cases, 'case')}, in "
        f"{plural(len(atlas.readers), 'reader')}, as of {atlas.as_of}"
    )


def _tables(atlas: Atlas) -> Iterator[tuple[_Row, list[_Row]]]:
    yield READER_HEAD, [score_row(score) for score in atlas.readers]
    if atlas.writers:
        yield WRITER_HEAD, [lifetime_row(row) for row in atlas.writers]
    if atlas.ends:
        yield END_HEAD, [end_row(end) for end in atlas.ends]
