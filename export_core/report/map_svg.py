"""The map of a run as SVG: wide, with time from left to right, or for a phone, with time upwards.

The narrow picture is the wide one mirrored on its diagonal: releases go down the long side of a phone, and every square
is large enough for a finger. `_Plane` is all that knows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree as Xml

from export_core.base.phrases import plural
from export_core.judge import Judgement
from export_core.report.document import Document, ReportError
from export_core.report.links import filter_link
from export_core.report.run_tables import MapRelease, MapRow, ReleaseMap, Square, release_map
from export_core.report.svg import Axis, add, make_axis, picture, text_of, width_of


@dataclass(frozen=True)
class _Plane:
    """Where things are: `along` the time, from the oldest day, and `across` it, from the first row."""

    narrow: bool
    axis: Axis
    pitch: float
    breadth: float
    left: float
    top: float
    angle: int

    def point(self, along: float, across: float) -> tuple[float, float]:
        if self.narrow:
            return self.left + self.breadth - across, self.top + self.axis.length - along
        return self.left + along, self.top + across

    def box(self, along: tuple[float, float], across: tuple[float, float]) -> dict[str, float]:
        """A rectangle between two days and two rows."""
        (x1, y1), (x2, y2) = self.point(along[0], across[0]), self.point(along[1], across[1])
        return {"x": min(x1, x2), "y": min(y1, y2), "width": abs(x2 - x1), "height": abs(y2 - y1)}

    def line(self, along: float, across: tuple[float, float]) -> dict[str, float]:
        """A line through all rows, or some, on one day."""
        (x1, y1), (x2, y2) = self.point(along, across[0]), self.point(along, across[1])
        return {"x1": x1, "y1": y1, "x2": x2, "y2": y2}


def map_svg(
    drawn: ReleaseMap,
    *,
    standalone: bool = False,
    links: bool = False,
    narrow: bool = False,
    heading: tuple[str, str] | None = None,
) -> str:
    """The map. With `links`, each square leads to its cells in the table of the page.

    The two lines of a `heading` are above it, the first in large letters. Raises `ReportError` where there is no cell.
    """
    if not drawn.rows:
        raise ReportError("The map of a run shows its cells: expected at least one result, found none.")
    # Time goes up in the narrow picture, and rows from right to left: the platforms are still to be in order.
    rows = sorted(drawn.rows, key=lambda row: row.platform, reverse=True) if narrow else drawn.rows
    drawn = replace(drawn, rows=tuple(rows))
    offsets, breadth = _rows_across(drawn, narrow)
    plane = _plane(drawn, breadth, narrow, bool(heading))
    width = 350.0 if narrow else 900.0
    entries = list(legend(drawn, width, narrow))
    bottom = plane.point(0, breadth)[1] + (30 if narrow else 46)
    label = f"Map of the run: {len(drawn.rows)} writers (rows) and {len(drawn.readers)} readers by build date"
    root = picture("release-map", width, bottom + entries[-1][2] + 12, label, standalone=standalone)
    if heading:
        add(root, "text", "headline", heading[0], x=20, y=36)
        add(root, "text", "legend", heading[1], x=20, y=54)
    _titles(root, plane)
    _time(root, drawn, plane)
    named = _with_room(offsets)
    for row, across in zip(drawn.rows, offsets, strict=True):
        _row(root, row, plane, across, named=across in named)
    _today(root, drawn, plane)
    first = True
    for index, (row, across) in enumerate(zip(drawn.rows, offsets, strict=True)):
        for number, reader in enumerate(drawn.readers):
            if reader in row.squares:
                parent = _link(root, row, reader, (index, number), plane, first) if links else add(root, "g")
                _square(parent, row, reader, plane, number, across)
                first = False
    _platforms(root, drawn, plane, offsets)
    for look, x, y, text in entries:
        add_entry(root, look, x, bottom + y, text)
    return text_of(root)


def map_picture(document: Document) -> str:
    """The map of a run as a picture that stands alone, with the run's headline. Raises `ReportError` without cells."""
    summary = document.run.summary
    first, _, rest = document.headline[0].partition("; ")
    details = (
        summary.identity.project,
        rest.removesuffix("."),
        f"{summary.results:,} cells",
        "a number counts the cells that fail",
    )
    heading = first.removesuffix("."), " · ".join(filter(None, details))
    return map_svg(release_map(document.run), standalone=True, heading=heading)


def map_figure(drawn: ReleaseMap) -> str:
    """The map for a page, with links: both pictures, of which the style shows one. Empty without cells."""
    if not drawn.rows:
        return ""
    wide, narrow = (map_svg(drawn, links=True, narrow=narrow) for narrow in (False, True))
    return f'<div class="map-wide">{wide}</div><div class="map-narrow">{narrow}</div>'


def _rows_across(drawn: ReleaseMap, narrow: bool) -> tuple[list[float], float]:
    """The middle of each row, and how much room all take. Each platform has some room of its own, if there are many."""
    several, count = len(drawn.platforms) > 1, len(drawn.rows)
    head = (8.0 if narrow else 26.0) if several else 0.0
    room = 258.0 - head * len(drawn.platforms)
    pitch = min(44.0, room / count) if narrow else 30.0 if count <= 24 else 22.0
    offsets, place, platform = [], 0.0, None
    for row in drawn.rows:
        place += head if row.platform != platform else 0
        platform = row.platform
        offsets.append(place + pitch / 2)
        place += pitch
    return offsets, place


def _with_room(places: Sequence[float]) -> set[float]:
    """The places that can have a label, seen from the newest release."""
    labelled: list[float] = []
    for place in places:
        if not labelled or abs(place - labelled[-1]) >= 12:
            labelled.append(place)
    return set(labelled)


def _plane(drawn: ReleaseMap, breadth: float, narrow: bool, heading: bool) -> _Plane:
    built = [reader.built for reader in drawn.readers]
    if narrow:
        axis = make_axis(built, drawn.as_of, 27.0 * len(built) + 90, slot=24, end=20)
        names, pitch = [row.writer.name for row in drawn.rows], min(44.0, breadth / len(drawn.rows))
    else:
        axis = make_axis(built, drawn.as_of, 786, slot=27, end=26)
        names, pitch = [reader.name for reader in drawn.readers], 30.0 if len(drawn.rows) <= 24 else 22.0
    # Names above the columns are steeper where these are close to each other.
    angle = 45 if (pitch if narrow else axis.slot) >= 18 else 75
    longest = max(width_of(name, 11.5) for name in names)
    top = 24 + longest * math.sin(math.radians(angle)) + (50 if heading else 0)
    return _Plane(narrow, axis, pitch, breadth, 56 if narrow else 96, top, angle)


def _titles(root: Xml.Element, plane: _Plane) -> None:
    """What the two sides are, in the corner between them."""
    if plane.narrow:
        lines = [("written by jaxlib →", 0.0, 9.0), ("read by", 0.0, plane.top - 17), ("jaxlib ↓", 0.0, plane.top - 6)]
    else:
        end = plane.left - 2
        lines = [("read by jaxlib →", end, plane.top - 21), ("written by jaxlib ↓", end, plane.top - 9)]
    for text, x, y in lines:
        add(root, "text", "date", text, x=x, y=y, text_anchor="start" if plane.narrow else "end")


def _time(root: Xml.Element, drawn: ReleaseMap, plane: _Plane) -> None:
    """The months and the readers."""
    across = (0.0, plane.breadth)
    for day, place in plane.axis.months(30 if plane.narrow else 52):
        add(root, "line", "grid", **plane.line(place, across))
        x, y = plane.point(place, plane.breadth if not plane.narrow else 0)
        text = f"{day:%Y}" if day.month == 1 else f"{day:%b}"
        where = {"x": x + 5, "y": y + 3} if plane.narrow else {"x": x, "y": y + 18, "text_anchor": "middle"}
        add(root, "text", "month year" if day.month == 1 else "month", text, **where)
    named = _with_room(plane.axis.slots[::-1])
    for reader, slot in zip(drawn.readers, plane.axis.slots, strict=True):
        if slot not in named:
            continue
        x, y = plane.point(slot, plane.breadth if plane.narrow else 0)
        label = add(root, "text", "reader", reader.name)
        if plane.narrow:
            label.attrib.update(x=f"{x - 7:.1f}", y=f"{y + 3.5:.1f}", **{"text-anchor": "end"})
        else:
            label.set("transform", f"translate({x + 3:.1f} {y - 9:.1f}) rotate(-{plane.angle})")
        add(label, "title", "", f"reader {reader.name}, built {reader.built}")


def _today(root: Xml.Element, drawn: ReleaseMap, plane: _Plane) -> None:
    """The line at the day as of which the run was judged."""
    today = plane.axis.end(drawn.as_of)
    add(root, "line", "today", **plane.line(today, (-6.0, plane.breadth + 6)))
    x, y = plane.point(today, plane.breadth)
    if plane.narrow:
        for text, below in (("as of", -2.0), (f"{drawn.as_of:%b} {drawn.as_of.day}", 9.0)):
            add(root, "text", "today", text, x=x - 7, y=y + below, text_anchor="end")
    else:
        add(root, "text", "today", f"as of {drawn.as_of}", x=x, y=y + 34, text_anchor="end")


def _row(root: Xml.Element, row: MapRow, plane: _Plane, across: float, *, named: bool) -> None:
    """The name of a writer, and its window as a band."""
    half = plane.pitch / 2 - 1.5
    begin, end = plane.axis.start(row.since), plane.axis.end(row.until)
    if end > begin:
        add(root, "rect", "band", rx=5, **plane.box((begin, end), (across - half, across + half)))
    if not named:
        return
    x, y = plane.point(0, across)
    name = add(root, "text", "writer", row.writer.name)
    if plane.narrow:
        name.set("transform", f"translate({x + 3:.1f} {plane.top - 10:.1f}) rotate(-{plane.angle})")
    else:
        dated = plane.pitch > 24
        name.attrib.update(x=f"{x - 12:.1f}", y=f"{y - 1 if dated else y + 4:.1f}", **{"text-anchor": "end"})
        if dated:
            add(root, "text", "date", f"{row.writer.built}", x=x - 12, y=y + 11, text_anchor="end")
    add(name, "title", "", f"writer {row.writer.name}, built {row.writer.built}: {plural(row.goldens, 'golden')}")


def _link(
    root: Xml.Element, row: MapRow, reader: MapRelease, place: tuple[int, int], plane: _Plane, first: bool
) -> Xml.Element:
    """The link to the cells of a square. `data-row` and `data-column` are for arrow keys: one square is a tab stop."""
    down, right = (-place[1], -place[0]) if plane.narrow else place
    address = filter_link(writer=row.writer.term, reader=reader.term, platform=row.platform)
    link = add(root, "a", href=address, tabindex=0 if first else -1)
    link.set("data-row", str(down))
    link.set("data-column", str(right))
    return link


def _square(parent: Xml.Element, row: MapRow, reader: MapRelease, plane: _Plane, number: int, across: float) -> None:
    square = row.squares[reader]
    size = min(24.0, plane.axis.slot - 2, plane.pitch - 3)
    along = plane.axis.slots[number]
    text = _words(row, reader, square)
    own = " is-own" if reader.term == row.writer.term else ""
    parent.set("class", f"square is-{square.look}{own}{' is-pale' if square.pale else ''}")
    if parent.tag == "a":
        parent.set("aria-label", text)
    add(parent, "title", "", text)
    half = size / 2
    box = plane.box((along - half, along + half), (across - half, across + half))
    add(parent, "rect", rx=min(5.0, size / 4), **box)
    if square.look not in (Judgement.KEPT, Judgement.BONUS, Judgement.OUTSIDE) and size >= 10:
        x, y = plane.point(along, across)
        count = _short(square.counts[square.worst])
        letters = min(size * 0.48, size * 1.45 / len(count))
        add(parent, "text", "", count, x=x, y=y + letters * 0.36, text_anchor="middle", font_size=letters)


def _words(row: MapRow, reader: MapRelease, square: Square) -> str:
    counts = ", ".join(f"{count:,} {judgement}" for judgement, count in square.counts.items())
    promised = "promised" if square.promised else "not promised"
    return f"written by {row.writer.name}, read by {reader.name} on {row.platform}: {counts} ({promised})"


def _short(count: int) -> str:
    """A number of at most four letters: ``1.2k``."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"


def _platforms(root: Xml.Element, drawn: ReleaseMap, plane: _Plane, offsets: list[float]) -> None:
    """The name of each platform at its rows, where there are several."""
    if len(drawn.platforms) < 2:
        return
    for platform in drawn.platforms:
        places = [place for row, place in zip(drawn.rows, offsets, strict=True) if row.platform == platform]
        if plane.narrow:
            x, y = plane.point(0, (places[0] + places[-1]) / 2)
            add(root, "text", "platform", f"on {platform}", x=x, y=y + 16, text_anchor="middle")
        else:
            x, y = plane.point(0, places[0] - plane.pitch / 2)
            add(root, "text", "platform", f"on {platform}", x=x - 12, y=y - 7, text_anchor="end")


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
