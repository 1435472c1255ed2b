"""A picture of the costs that change most from release to release: a line for each golden, with its largest step."""

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from markupsafe import Markup

from export_core.base.text import plural
from export_core.base.xml_text import text_of
from export_core.features.costs.findings import largest_step, step_in_words
from export_core.judge import Result
from export_core.judge.cost import cost_of
from export_core.releases import Release
from export_core.report.document import Picture
from export_core.report.svg import add, picture
from export_core.report.wording import amount, named_folder
from export_core.run.run import Run

MOST = 12  # Goldens in the picture.
_ROW, _HEAD, _LEFT, _WIDTH = 86.0, 8.0, 12.0, 640.0
_LONGEST_NAME = 90
_HINT = (
    "The goldens whose memory or work changes most, each from 0 up, in the releases that compiled it. "
    "`jaxexport report{} --trend cost` lists every step."
)


def costs_picture(run: Run) -> Picture | None:
    """Return a picture of the goldens with the largest steps of costs in a run; None if no costs change."""
    rows = [
        (*step, cells)
        for group in run.by_golden.values()
        if (step := largest_step(cells := sorted(group, key=lambda result: result.reader.date_order)))
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: row[0].size, reverse=True)
    shown = rows[:MOST]
    readers = sorted(
        {cell.reader for *_, cells in shown for cell in cells if cell.cost}, key=lambda reader: reader.date_order
    )
    height = _HEAD + _ROW * len(shown) + 20
    label = f"Costs of {plural(len(shown), 'golden')} from {readers[0].label} to {readers[-1].label}"
    root = picture("costs", _WIDTH, height, label, standalone=False)
    names = Xml.Element("g", {"class": "names"})  # They stay where a narrow screen scrolls the picture.
    for number, (change, after, cells) in enumerate(shown):
        top = _HEAD + _ROW * number
        name = cells[0].golden
        name = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
        add(names, "text", "", name, x=8, y=top + 12)
        add(names, "text", "date", step_in_words(change, after), x=8, y=top + 25)
        _line(root, change.figure, cells, readers, top)
    room = (_WIDTH - 16 - _LEFT) / max(1, len(readers) - 1)
    for place in sorted({0, len(readers) - 1}):
        anchor = "end" if place else "start"
        text = readers[place].label
        add(root, "text", "month", text, x=_LEFT + room * place, y=height - 6, text_anchor=anchor)
    root.append(names)
    return Picture(
        "What calls cost, from release to release", _HINT.format(named_folder(run.folder)), Markup(text_of(root))
    )


def _line(root: Xml.Element, figure: str, cells: Sequence[Result], readers: Sequence[Release], top: float) -> None:
    """Draw one figure of a golden over its readers: a dot for each reader, and the number where it changes."""
    room, places = (_WIDTH - 16 - _LEFT) / max(1, len(readers) - 1), {reader: at for at, reader in enumerate(readers)}
    values = [(places[cell.reader], value) for cell in cells if (value := cost_of(cell, figure)) is not None]
    most = max(value for _, value in values) or 1
    points = [(_LEFT + room * place, top + 74 - 26 * value / most) for place, value in values]
    add(root, "line", "grid", x1=_LEFT, y1=top + 76, x2=_WIDTH - 16, y2=top + 76)
    add(root, "polyline", "costs", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))
    before = None
    for (x, y), (place, value) in zip(points, values, strict=True):
        dot = add(root, "circle", "dot", cx=x, cy=y, r=2)
        add(dot, "title", "", f"{readers[place].title}: {figure} {amount(figure, value)}")
        if before is None or abs(value - before) > 0.01 * max(value, before):
            anchor = "end" if place == len(readers) - 1 else "start" if place == 0 else "middle"
            add(root, "text", "date", amount(figure, value), x=x, y=y - 5, text_anchor=anchor)
        before = value
