"""The layout of a terminal: aligned tables, and paragraphs with labels before them."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence

from export_core.base.text import plain_text

INDENT = 13  # Where the texts of a finding begin, behind their labels.
_COMMANDS = ("reproduce", "next")  # Labels of texts that are copied into a shell: each stays on one line.
_CUT = " ..."


def aligned(
    rows: Iterable[Sequence[str]],
    right: Collection[int] = (),
    *,
    least: Sequence[int] = (),
    gap: str = "  ",
    indent: str = "",
) -> Iterator[str]:
    """Return the lines of a table.

    Columns are at least as wide as `least`, and aligned left, but for those in `right`.
    """
    rows = list(rows)
    floor = (*least, *[0] * len(rows[0])) if rows else ()
    widths = [
        max(at_least, *map(len, column)) for at_least, column in zip(floor, zip(*rows, strict=True), strict=False)
    ]
    for row in rows:
        texts = (
            text.rjust(width) if number in right else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield f"{indent}{gap.join(texts)}".rstrip()


def wrapped(text: str, width: int, first: str = "", indent: int = INDENT, most: int = 0) -> list[str]:
    """Return the lines of a paragraph that begins with `first`; its other lines begin with spaces.

    `most` lines at most, 0 is all.
    """
    lines = textwrap.wrap(
        text, max(width, indent + 20), initial_indent=first, subsequent_indent=" " * indent,
        break_long_words=False, break_on_hyphens=False,
    ) or [first.rstrip()]  # fmt: skip
    if not most or len(lines) <= most:
        return lines
    last = lines[most - 1]
    if len(last) + len(_CUT) > width:
        last = last.rpartition(" ")[0]
    return [*lines[: most - 1], f"{last}{_CUT}"]


def labelled_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return texts with their labels as lines, each label before the first line of its text.

    Empty texts are left out.
    """
    return [
        f"  {label if number == 0 else '':<{INDENT - 3}} {line}".rstrip()
        for label, text in pairs
        for number, line in enumerate(plain_text(text).strip().splitlines())
    ]


def labelled_paragraphs(pairs: Iterable[tuple[str, str]], width: int, most: int = 0) -> list[str]:
    """Return texts with their labels as wrapped lines. Lines of a text stay lines, as deep as they were.

    With `most`, sentences at the end of a text are left out where it would need more lines.
    """
    lines: list[str] = []
    for label, text in pairs:
        for number, line in enumerate(plain_text(text).strip().splitlines()[: most or None]):
            first = f"  {'' if number else label:<{INDENT - 3}} "
            depth = len(line) - len(line.lstrip())
            if label in _COMMANDS:
                lines.append(f"{first}{line}")
            else:
                lines += _fitting(line.strip(), width, first + " " * depth, INDENT + depth, most)
    return lines


def _fitting(text: str, width: int, first: str, indent: int, most: int) -> list[str]:
    lines = wrapped(text, width, first, indent)
    while most and len(lines) > most and ". " in text:
        text = f"{text.rpartition('. ')[0]}."
        lines = wrapped(text, width, first, indent)
    return wrapped(text, width, first, indent, most)
