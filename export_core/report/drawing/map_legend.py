"""The legend of a map: what is on it, and what that means."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from export_core.judge import Judgement
from export_core.report.drawing.release_map import ReleaseMap
from export_core.report.drawing.svg import add, width_of

_OUTSIDE = Judgement.OUTSIDE
LOOKS: dict[str, str] = {
    **{name: name.facts.short for name in (Judgement.KEPT, *Judgement) if name is not _OUTSIDE},
    "partly": "fails in part, not promised",
    _OUTSIDE: _OUTSIDE.facts.short,
}
"""How a square may look, and what the legend says of it."""


def legend(drawn: ReleaseMap, width: float, narrow: bool) -> Iterator[tuple[str, float, float, str]]:
    """What there is on the map: how it looks, its place, and what it means; in as many lines as it takes."""
    looks = {square.look for row in drawn.rows for square in row.squares.values()}
    entries = [(look, meaning) for look, meaning in LOOKS.items() if look in looks]
    entries += [("band", "promised")]
    if any(reader.term == row.writer.term for row in drawn.rows for reader in row.squares):
        entries.append(("outside is-own", "read by its own writer"))
    if narrow:  # where the line has no room for its day
        entries.append(("today", f"as of {drawn.as_of}"))
    x, y = 20.0, 8.0
    for look, meaning in entries:
        needed = width_of(meaning, 10.5) + 33
        if x + needed > width and x > 20:
            x, y = 20.0, y + 20
        yield look, x, y, meaning
        x += needed


def add_entry(root: Xml.Element, look: str, x: float, y: float, text: str) -> None:
    """One entry of the legend."""
    if look == "today":
        add(root, "line", "today", x1=x, y1=y, x2=x + 11, y2=y)
    elif look == "band":
        add(root, "rect", "band", x=x - 2, y=y - 6, width=14, height=12, rx=3)
    else:
        add(add(root, "g", f"square is-{look}"), "rect", "", x=x, y=y - 5, width=10, height=10, rx=2.5)
    add(root, "text", "legend", text, x=x + 17, y=y + 4)
