"""The layout of a terminal: aligned tables, and paragraphs with labels before them."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from export_core.base.text import plain_text

INDENT = 13  # Where the texts of a finding begin, behind their labels.
_COMMANDS = ("reproduce", "explain", "next")  # Labels of texts that are copied into a shell: each stays on one line.
_COMMAND = r"`(?:jaxexport|pytest|nox|git|pip) [^`\n]*`"  # A command in a sentence; compiled when it is first used.
_CUT = " ..."


def aligned(
    rows: Iterable[Sequence[str]],
    right: Collection[int] = (),
    *,
    least: Sequence[int] = (),
    gap: str = "  ",
    indent: str = "",
) -> Iterator[str]:
    """Yield the lines of a table with aligned columns.

    Args:
        rows: the texts of each row.
        right: the indexes of the columns that are aligned right; all other columns are aligned left.
        least: the minimum widths of the first columns.
        gap: the text between columns.
        indent: the text before each line.
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
    """Return a text as the lines of a paragraph that begins with `first`; its other lines begin with `indent` spaces.

    After `most` lines the text is cut and ends in dots; if `most` is 0, nothing is cut. A command in backticks stays on
    one line.
    """
    if len(first) + len(text) <= width and text.isprintable() and text == text.strip():
        return [f"{first}{text}"]  # it fits, and has no white space but single spaces
    # Lines end at ASCII spaces alone: those of a command are replaced by a character that the text lacks.
    unbroken = next(character for character in map(chr, range(0xE000, 0xF8FF)) if character not in text)
    if "`" in text:
        text = re.sub(_COMMAND, lambda command: command[0].replace(" ", unbroken), text)
    filled = _filled(text, max(width, indent + 20), first, " " * indent)
    lines = [line.replace(unbroken, " ") for line in filled] or [first.rstrip()]
    if not most or len(lines) <= most:
        return lines
    last = lines[most - 1]
    if len(last) + len(_CUT) > width:
        last = last.rpartition(" ")[0]
    return [*lines[: most - 1], f"{last}{_CUT}"]


def _filled(text: str, width: int, first: str, others: str) -> list[str]:
    """Return the words of a text in lines of at most `width` characters. A longer word has a line of its own.

    The first line begins with `first`, each other line with `others`.
    """
    words = text.split(" ")
    if words != text.split():  # There is other white space than single spaces.
        import textwrap  # It takes 2 ms to import.

        return textwrap.wrap(
            text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
        )
    lines: list[str] = []
    line = ""
    for word in words:
        if line and len(first) + len(line) + 1 + len(word) > width:
            lines.append(first + line)
            first, line = others, word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, first + line]


def labelled_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return labels with their texts as lines, each label before the first line of its text.

    Pairs with an empty text are left out.
    """
    return [
        f"  {label if number == 0 else '':<{INDENT - 3}} {line}".rstrip()
        for label, text in pairs
        for number, line in enumerate(plain_text(text).strip().splitlines())
    ]


def labelled_paragraphs(pairs: Iterable[tuple[str, str]], width: int, most: int = 0) -> list[str]:
    """Return labels with their texts as lines wrapped at `width` characters.

    Line breaks and indents in a text are preserved. If a text needs more than `most` lines, sentences at its end are
    left out; if `most` is 0, nothing is left out.
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
