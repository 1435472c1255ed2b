"""Text for a terminal: wrapped between words alone, with a hanging indent. A command stays on one line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from export_core.base.escaping import plain_text

INDENT = 13
"""Where the texts of a finding begin, behind their labels."""
_COMMANDS = ("reproduce", "next")
"""Labels of texts that are copied into a shell."""
_CUT = " ..."


def wrapped(text: str, width: int, first: str = "", indent: int = INDENT, most: int = 0) -> list[str]:
    """A paragraph that begins with `first`; its other lines begin with spaces. `most` lines at most, 0 is all."""
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


def labelled_paragraphs(pairs: Iterable[tuple[str, str]], width: int, most: int = 0) -> list[str]:
    """Texts with their labels, each label before its text. Lines of a text stay lines, as deep as they were.

    With `most`, sentences at the end of a text are left out where it would need more lines; of a message, one is shown.
    """
    lines: list[str] = []
    for label, text in pairs:
        for number, line in enumerate(plain_text(text).strip().splitlines()[: most or None]):
            first = f"  {'' if number else label:<{INDENT - 3}} "
            depth = len(line) - len(line.lstrip())
            if label in _COMMANDS:
                lines.append(f"{first}{line}")
            else:
                limit = min(most, 1) if label == "message" else most
                lines += _fitting(line.strip(), width, first + " " * depth, INDENT + depth, limit)
    return lines


def _fitting(text: str, width: int, first: str, indent: int, most: int) -> list[str]:
    lines = wrapped(text, width, first, indent)
    while most and len(lines) > most and ". " in text:
        text = f"{text.rpartition('. ')[0]}."
        lines = wrapped(text, width, first, indent)
    return wrapped(text, width, first, indent, most)
