"""The map of a run as SVG: a row for each writer; readers from left to right, on an axis of time, by build date.

Only jaxlib's readers are on the axis. The readers of each other runtime are a group of columns to the right of it.
"""

import math
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as Xml

from export_core.base.text import plural
from export_core.base.xml_text import text_of
from export_core.judge import Judgement
from export_core.matrix.result import grouped
from export_core.report.document import Document, ReportError
from export_core.report.page_data import filter_link
from export_core.report.run_tables import PARTLY, MapRelease, MapRow, ReleaseMap, Square, release_map
from export_core.report.svg import add, add_months, make_axis, picture, width_of

_WIDTH, _LEFT, _RIGHT = 900.0, 96.0, 18.0  # The left edge is further right if the names of writers are long.
_DIAGONAL = math.sin(math.radians(45))
_SLOT, _END = 27.0, 26.0  # The width of a column, and the least room after the last one for its turned name.


def map_svg(
    drawn: ReleaseMap, *, standalone: bool = False, links: bool = False, heading: tuple[str, str] | None = None
) -> str:
    """Return the map of a run as an SVG element, in text.

    Args:
        drawn: The rows and readers of the map.
        standalone: Whether the map is a file of its own, not a part of a page.
        links: Whether it is the map of the HTML page. Then each square is a link to its cells in the table, the page
            itself has the legend, and the names of writers are a group that stays when the map is scrolled.
        heading: Two lines above the map, the first in large letters.

    Raises:
        ReportError: The run has no cell.
    """
    if not drawn.rows:
        raise ReportError("The map of a run shows its cells: expected at least one result, found none.")
    plane = _Plane(drawn, top=74.0 if heading else 24.0)
    legend = [] if links else list(_legend(drawn))
    bottom = plane.bottom + (46 if plane.axis.length else 16)  # Below jaxlib's readers are months and the day.
    label = (
        f"Map of the run: {plural(len(drawn.rows), 'writer')} (rows) and "
        f"{plural(len(drawn.readers), 'reader')} by build date"
    )
    kind = "release-map" if plane.width == _WIDTH else "release-map wide"
    root = picture(kind, plane.width, bottom + (legend[-1][2] + 12 if legend else 0), label, standalone=standalone)
    names = Xml.Element("g", {"class": "names"}) if links else root
    if links:
        add(names, "rect", "paper", width=plane.left - 6, y=plane.top - 32, height=plane.bottom - plane.top + 32)
    if heading:
        add(root, "text", "headline", heading[0], x=20, y=36)
        add(root, "text", "legend", heading[1], x=20, y=54)
    for text, above in (("read by jaxlib →" if plane.axis.length else "read by →", 21), ("written by jaxlib ↓", 9)):
        add(names, "text", "date", text, x=plane.left - 2, y=plane.top - above, text_anchor="end")
    _time(root, drawn, plane)
    named = _labelled(plane.rows)
    for row, middle in zip(drawn.rows, plane.rows, strict=True):
        _band(root, row, plane, middle)
        if middle in named:
            _name(names, row, plane, middle)
    if plane.axis.length:
        today = plane.left + plane.axis.end(drawn.as_of)
        add(root, "line", "today", x1=today, y1=plane.top - 6, x2=today, y2=plane.bottom + 6)
        add(root, "text", "today", f"as of {drawn.as_of}", x=today, y=plane.bottom + 34, text_anchor="end")
    _squares(root, drawn, plane, links=links)
    firsts = {row.platform: middle for row, middle in zip(drawn.rows[::-1], plane.rows[::-1], strict=True)}
    for platform, first in firsts.items() if len(firsts) > 1 else ():
        y = first - plane.pitch / 2 - 7
        add(names, "text", "platform", f"on {platform}", x=plane.left - 12, y=y, text_anchor="end")
    for look, x, below, text in legend:
        y = bottom + below
        if look == "band":
            add(root, "rect", "band", x=x - 2, y=y - 6, width=14, height=12, rx=3)
        else:
            add(add(root, "g", f"square is-{look}"), "rect", "", x=x, y=y - 5, width=10, height=10, rx=2.5)
        add(root, "text", "legend", text, x=x + 17, y=y + 4)
    if links:
        root.append(names)
    return text_of(root)


def map_picture(document: Document) -> str:
    """Return the map of a run as the text of an SVG file, with the run's headline above the map.

    Raises `ReportError` if the run has no cell.
    """
    summary = document.run.summary
    first, rest, _ = document.headline_parts
    always = [summary.identity.project, f"{rest[:1].lower()}{rest[1:]}"]
    counted = "a number counts the cells that fail"
    # The least useful details are left out where the line has no room for them.
    lines = [
        " · ".join(filter(None, [*always, *more]))
        for more in ([plural(summary.results, "cell"), counted], [counted], [])
    ]
    heading = first, next((line for line in lines if width_of(line, 10.5) <= _WIDTH - 40), lines[-1])
    return map_svg(release_map(document.run), standalone=True, heading=heading)


def _labelled(places: Sequence[float]) -> set[float]:
    """Return the coordinates that get a label, chosen from the newest release on so that labels do not overlap."""
    labelled: list[float] = []
    for place in places:
        if not labelled or abs(place - labelled[-1]) >= 12:
            labelled.append(place)
    return set(labelled)


class _Plane:
    """The layout of a map: the time axis, the positions of columns and rows, and the height of a row."""

    def __init__(self, drawn: ReleaseMap, top: float) -> None:
        self.left = max([_LEFT, *(width_of(row.writer.name, 11.5) + 24 for row in drawn.rows)])
        runtimes = grouped(drawn.readers, lambda reader: reader.release.family)
        jaxlibs = runtimes.pop("", [])
        built = [reader.release.built for reader in jaxlibs]
        # A turned name is as wide as it is high.
        end = max([_END, *(width_of(reader.column, 11.5) * _DIAGONAL - _RIGHT + 8 for reader in jaxlibs[-1:])])
        room = {name: max(_SLOT * len(own), width_of(name, 11)) + _END for name, own in runtimes.items()}
        # The axis gives up its free room first, then the picture gets wider.
        whole = _WIDTH - self.left - _RIGHT
        length = max(whole - sum(room.values()), min(_SLOT * len(built) + end, whole))
        self.axis = make_axis(built, drawn.as_of, length, slot=_SLOT, end=end)
        self.slots = [*self.axis.slots]
        self.groups: dict[str, float] = {}  # The left edges of the columns of runtimes that are not jaxlib.
        edge = self.axis.length
        for name, own in runtimes.items():
            self.groups[name] = edge + _END / 2
            self.slots += [self.groups[name] + self.axis.slot * (number + 0.5) for number in range(len(own))]
            edge += room[name]
        self.width = max(_WIDTH, round(self.left + edge + _RIGHT))
        # Names above the columns are steeper where these are close to each other.
        self.angle = 45 if self.axis.slot >= 18 else 75
        self.head = top  # Where the names of the runtimes are.
        names = max(width_of(reader.column, 11.5) for reader in drawn.readers) * math.sin(math.radians(self.angle))
        self.top = self.bottom = top + names + (18 if self.groups else 0)
        # Each platform has a line of its own, if there are several.
        self.pitch, gap = 30.0 if len(drawn.rows) <= 24 else 22.0, 26.0 if len(drawn.platforms) > 1 else 0.0
        self.rows, platform = list[float](), ""
        for row in drawn.rows:
            self.bottom += gap if row.platform != platform else 0
            platform = row.platform
            self.rows.append(self.bottom + self.pitch / 2)
            self.bottom += self.pitch


def _time(root: Xml.Element, drawn: ReleaseMap, plane: _Plane) -> None:
    """Draw the time axis of a map: months below the map, names of readers and runtimes above it."""
    if plane.axis.length:
        add_months(root, plane.axis, plane.left, plane.top, plane.bottom, plane.bottom + 18)
    for name, edge in plane.groups.items():
        add(root, "text", "platform", name, x=plane.left + edge, y=plane.head)
    named = _labelled(plane.slots[::-1])
    for reader, slot in zip(drawn.readers, plane.slots, strict=True):
        if slot in named:
            label = add(root, "text", "reader", reader.column)
            label.set("transform", f"translate({plane.left + slot + 3:.1f} {plane.top - 9:.1f}) rotate(-{plane.angle})")
            add(label, "title", "", f"reader {reader.name}, built {reader.release.built}")


def _band(root: Xml.Element, row: MapRow, plane: _Plane, middle: float) -> None:
    """Draw a band over the days of a writer's window. `middle` is the height of the middle of the writer's row."""
    half = plane.pitch / 2 - 1.5
    begin, end = plane.axis.start(row.since), plane.axis.end(row.until)
    if end <= begin:
        return
    high, parent = 2 * half, root
    left, right, top = plane.left + begin, plane.left + end, middle - half
    # Beyond the map, an edge would say that the promise begins or ends where the map does: it is clipped.
    since_before = row.since.toordinal() < plane.axis.days[0]
    until_after = row.until.toordinal() > plane.axis.days[-1]
    if since_before or until_after:
        x, y = left - (not since_before), top - 1  # Room for the line around the band, which is 1 wide.
        parent = add(root, "svg", x=x, y=y, width=right + (not until_after) - x, height=high + 2)
        left, right, top = left - x - 9 * since_before, right - x + 9 * until_after, 1
    add(parent, "rect", "band", rx=5, x=left, y=top, width=right - left, height=high)


def _name(parent: Xml.Element, row: MapRow, plane: _Plane, middle: float) -> None:
    """Draw a writer's name, with its build date if there is room. `middle` is the height of the middle of the row."""
    writer, built = row.writer.name, row.writer.release.built
    dated = plane.pitch > 24
    name = add(parent, "text", "writer", writer)
    below = middle - 1 if dated else middle + 4
    name.attrib.update(x=f"{plane.left - 12:.1f}", y=f"{below:.1f}", **{"text-anchor": "end"})
    if dated:
        add(parent, "text", "date", str(built), x=plane.left - 12, y=middle + 11, text_anchor="end")
    add(name, "title", "", f"writer {writer}, built {built}: {plural(row.goldens, 'golden')}")


def _squares(root: Xml.Element, drawn: ReleaseMap, plane: _Plane, *, links: bool) -> None:
    tab_stop = 0
    for index, (row, middle) in enumerate(zip(drawn.rows, plane.rows, strict=True)):
        for number, (reader, slot) in enumerate(zip(drawn.readers, plane.slots, strict=True)):
            if reader in row.squares:
                parent = add(root, "g")
                if links:
                    parent.tag = "a"
                    # For arrow keys: one square is a tab stop, and each knows its row and its column.
                    place = {"writer": row.writer.term, "reader": reader.term, "platform": row.platform}
                    address = filter_link(**place, **_counted(row.squares[reader]))
                    parent.attrib |= {"href": address, "tabindex": str(tab_stop)}
                    parent.attrib |= {"data-row": str(index), "data-column": str(number)}
                    # Where these are scrolled out of sight, the page says so.
                    worst = row.squares[reader].worst
                    if worst.fails_run or worst is Judgement.KNOWN:
                        parent.set("data-fails" if worst.fails_run else "data-known", "")
                _square(parent, row, reader, plane, (plane.left + slot, middle))
                tab_stop = -1


def _square(parent: Xml.Element, row: MapRow, reader: MapRelease, plane: _Plane, middle: tuple[float, float]) -> None:
    """Draw a square of the map around the point `middle`, with a number if cells fail, and all counts as its tooltip.

    `parent` is the square's own element. If it is a link, its label has the counts too.
    """
    square, (x, y) = row.squares[reader], middle
    size = min(24.0, plane.axis.slot - 2, plane.pitch - 3)
    counts = ", ".join(f"{count:,} {judgement}" for judgement, count in square.counts.items())
    promised = "promised" if square.promised else "not promised"
    text = f"written by {row.writer.name}, read by {reader.name} on {row.platform}: {counts} ({promised})"
    own = " is-own" if reader.term == row.writer.term else ""
    parent.set("class", f"square is-{square.look}{own}")
    if parent.tag == "a":
        parent.set("aria-label", text)
    add(parent, "title", "", text)
    add(parent, "rect", rx=min(5.0, size / 4), x=x - size / 2, y=y - size / 2, width=size, height=size)
    if (count := square.counted) is not None and size >= 10:
        # At most four letters.
        short = str(count) if count < 1000 else f"{count / 1000:.{1 if count < 9950 else 0}f}k"
        letters = min(size * 0.48, size * 1.45 / len(short))
        add(parent, "text", "", short, x=x, y=y + letters * 0.36, text_anchor="middle", font_size=letters)


def _counted(square: Square) -> dict[str, Sequence[str]]:
    """Return the terms of the table's filter that select the cells counted in a square; empty without a number."""
    return {"judgement": square.counted_judgements} if square.counted_judgements else {}


_OUTSIDE = Judgement.OUTSIDE
LOOKS: dict[str, str] = {
    **{name: name.facts.short for name in (Judgement.KEPT, *Judgement) if name is not _OUTSIDE},
    PARTLY: "fails in part, not promised",
    _OUTSIDE: _OUTSIDE.facts.short,
}
"""For each look of a square, its meaning in the words of the legend."""


def legend_of(drawn: ReleaseMap) -> list[tuple[str, str]]:
    """Return the legend of a map: pairs of a look that squares or bands have, and its meaning in words."""
    looks = {square.look for row in drawn.rows for square in row.squares.values()}
    entries = [(look, meaning) for look, meaning in LOOKS.items() if look in looks]
    entries += [("band", "promised")] if any(not reader.release.runtime for reader in drawn.readers) else []
    if any(reader.term == row.writer.term for row in drawn.rows for reader in row.squares):
        entries.append(("outside is-own", "read by its own writer"))
    return entries


def _legend(drawn: ReleaseMap) -> Iterator[tuple[str, float, float, str]]:
    """Yield the entries of a map's legend as (look, x, y, meaning), in as many lines as they need."""
    x, y = 20.0, 8.0
    for look, meaning in legend_of(drawn):
        needed = width_of(meaning, 10.5) + 33
        if x + needed > _WIDTH and x > 20:
            x, y = 20.0, y + 20
        yield look, x, y, meaning
        x += needed
