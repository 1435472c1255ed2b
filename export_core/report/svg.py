"""Elements of an SVG picture, whatever text they contain, and a time scale with room for every release."""

import bisect
import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

STYLE = Path(__file__).parent / "templates" / "map.css"  # Colours, light and dark, of all pictures.


def picture(kind: str, width: float, height: float, label: str, *, standalone: bool) -> Xml.Element:
    """Return the root element of an empty picture. `label` describes the picture to screen readers.

    A `standalone` picture contains its own style and background, and is a single image to screen readers.
    """
    root = Xml.Element("svg", {"class": f"drawing {kind}", "viewBox": f"0 0 {_number(width)} {_number(height)}"})
    root.set("role", "img" if standalone else "group")
    root.set("aria-label", label)
    if standalone:
        root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "width": _number(width), "height": _number(height)}
        add(root, "title", "", label)
        add(root, "style").text = STYLE.read_text("utf-8")
        add(root, "rect", "paper", width=width, height=height)
    return root


def add(parent: Xml.Element, tag: str, kind: str = "", text: str = "", /, **attributes: object) -> Xml.Element:
    """Add an SVG element of the class `kind` to `parent`, and return it. ``_`` in an attribute's name becomes ``-``."""
    element = Xml.SubElement(parent, tag, {"class": kind} if kind else {})
    for name, value in attributes.items():
        element.set(name.replace("_", "-"), _number(value) if isinstance(value, float | int) else str(value))
    if text:
        element.text = text
    return element


def width_of(text: str, size: float) -> float:
    """Return the approximate width of a text in a font of this size, without loading a font.

    `math.fsum` gives the same width in every Python: from 3.12 on, `sum` loses fewer digits than before.
    """
    widths = (0.33 if letter in "fijlrt ,.:;'|!()I" else 0.85 if letter in "mwMW" else 0.59 for letter in text)
    return size * math.fsum(widths)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@dataclass(frozen=True)
class Axis:
    """A time scale that gives days positions from 0 to `length`, with a slot of width `slot` for each release.

    `slots` are the middles of the releases' slots. `days` and `places` are the days and the positions of the scale's
    corners, between which it is linear.
    """

    length: float
    slot: float
    slots: tuple[float, ...]
    days: tuple[int, ...]
    places: tuple[float, ...]

    def start(self, day: datetime.date) -> float:
        """Return the position where a day begins: before the slots of releases built on that day."""
        return self._place(day, bisect.bisect_left(self.days, day.toordinal()))

    def end(self, day: datetime.date) -> float:
        """Return the position where a day ends: after the slots of releases built on that day."""
        ordinal = day.toordinal()
        after = bisect.bisect_right(self.days, ordinal)
        if after and self.days[after - 1] == ordinal:
            return self.places[after - 1]
        return self._place(day, after)

    def months(self, room: float) -> Iterator[tuple[datetime.date, float]]:
        """Yield the first days of the months to label, with their positions, which are at least `room` apart."""
        first, last = (datetime.date.fromordinal(day) for day in (self.days[0], self.days[-1]))
        # January, then July, and so on: the least useful months are left out.
        taken: list[tuple[datetime.date, float]] = []
        for month in (1, 7, 4, 10, 3, 5, 9, 11, 2, 6, 8, 12):
            for year in range(first.year, last.year + 1):
                day = datetime.date(year, month, 1)
                if first <= day <= last and all(abs(self.start(day) - place) >= room for _, place in taken):
                    taken.append((day, self.start(day)))
        yield from sorted(taken)

    def _place(self, day: datetime.date, after: int) -> float:
        """Return the position of a day between the corners `after - 1` and `after`; an end of the scale if beyond."""
        if after == 0:
            return self.places[0]
        if after == len(self.days):
            return self.places[-1]
        (low, high), (left, right) = self.days[after - 1 : after + 1], self.places[after - 1 : after + 1]
        return left + (right - left) * (day.toordinal() - low) / (high - low)


def add_months(root: Xml.Element, axis: Axis, left: float, top: float, bottom: float, label: float) -> None:
    """Draw a vertical line for each month from `top` to `bottom`, with the month's name at the height `label`."""
    for day, place in axis.months(36):
        add(root, "line", "grid", x1=left + place, y1=top, x2=left + place, y2=bottom)
        kind, text = ("month year", f"{day:%Y}") if day.month == 1 else ("month", f"{day:%b}")
        add(root, "text", kind, text, x=left + place, y=label, text_anchor="middle")


def make_axis(built: Sequence[datetime.date], until: datetime.date, length: float, slot: float, end: float) -> Axis:
    """Return a time scale for releases built on these days, which ends after `until`.

    Args:
        built: The build dates, in order; without any, the scale has length 0.
        until: A day that the scale includes.
        length: The length of the scale.
        slot: The greatest width of a release's slot.
        end: The least room after the last slot.
    """
    if not built:
        return Axis(0, slot, (), (until.toordinal(),), (0.0,))
    slot = min(slot, (length - end) / max(1, len(built)))
    ordinals = [day.toordinal() for day in built]
    last = max(until.toordinal(), ordinals[-1])
    margin = max(10, (last - ordinals[0]) // 30)
    low, high = ordinals[0] - margin, last + margin
    wanted = [(day - low) / (high - low) * length for day in ordinals]
    slots = [
        min(max(place, slot * (index + 0.5)), length - end - slot * (len(wanted) - index - 0.5))
        for index, place in enumerate(_apart(wanted, slot))
    ]
    days, places = [low], [0.0]
    for day, place in zip(ordinals, slots, strict=True):
        days += [day, day]
        places += [place - slot / 2, place + slot / 2]
    return Axis(length, slot, tuple(slots), (*days, high), (*places, length))


def _apart(wanted: Sequence[float], least: float) -> list[float]:
    """Return positions that are at least `least` apart and as close as possible to those wanted, by least squares."""
    # With the least distances subtracted, positions must only not decrease: neighbours that decrease are pooled.
    pools: list[tuple[float, int]] = []
    for index, place in enumerate(wanted):
        pools.append((place - index * least, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (high, many), (low, few) = pools[-2:]
            pools[-2:] = [((high * many + low * few) / (many + few), many + few)]
    means = [mean for mean, count in pools for _ in range(count)]
    return [mean + index * least for index, mean in enumerate(means)]
