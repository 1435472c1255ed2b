"""A picture of the windows of all writers' goldens, as bars over time."""

import datetime
from xml.etree import ElementTree as Xml

from markupsafe import Markup

from export_core.base.text import plural
from export_core.base.xml_text import text_of
from export_core.features.forecast.forecast import Generation
from export_core.judge.retention import leaves_window_on
from export_core.releases import Release
from export_core.report.document import Picture
from export_core.report.run_tables import map_releases
from export_core.report.svg import Axis, add, add_months, picture, width_of
from export_core.run.run import Run

_ROW, _HEAD = 38.0, 28.0

_HALF_A_YEAR = datetime.timedelta(days=183)
_HINT = (
    "A bar is the time in which new readers are promised to run the goldens of a writer; the past is pale. "
    "`jaxexport forecast` has all that happens on the days ahead."
)


def windows_picture(run: Run) -> Picture | None:
    """Return a timeline picture that shows, for each writer of a run, the window in which its goldens are promised.

    The timeline ends half a year after the run's day. Return None for a run without cells.
    """
    if not (generations := generations_of(run)):
        return None
    as_of = run.summary.as_of
    words = [days_left(generation, as_of) for generation in generations]
    names = [generation.writer for generation in generations]
    left = 24 + max([*(width_of(text, 9.5) for text in words), *(width_of(name, 11.5) for name in names)])
    width = 900.0
    open_since = [generation.built for generation in generations if generation.leaves > as_of]
    start = min([*open_since, as_of - datetime.timedelta(days=30)])
    length = width - left - 16
    axis = Axis(length, 0, (), (start.toordinal(), (as_of + _HALF_A_YEAR).toordinal() + 1), (0.0, length))
    bottom = _HEAD + _ROW * len(generations)
    label = f"Windows of {plural(len(generations), 'writer')} over time, as of {as_of}"
    root = picture("windows", width, bottom + 26, label, standalone=False)
    add_months(root, axis, left, _HEAD - 6, bottom, bottom + 16)
    today = left + axis.start(as_of)
    add(root, "line", "today", x1=today, y1=_HEAD - 10, x2=today, y2=bottom + 2)
    add(root, "text", "today", f"as of {as_of}", x=today, y=_HEAD - 15, text_anchor="middle")
    newest_first = sorted(generations, key=lambda generation: (generation.built, generation.writer), reverse=True)
    labels = Xml.Element("g", {"class": "names"})
    add(labels, "rect", "paper", width=left - 6, y=_HEAD, height=bottom - _HEAD)
    for number, generation in enumerate(newest_first):
        _bar(root, generation, as_of, axis, left, _HEAD + _ROW * number)
        _label(labels, generation, as_of, left - 12, _HEAD + _ROW * number)
    root.append(labels)
    return Picture("When goldens leave the promise", _HINT, Markup(text_of(root)))


def generations_of(run: Run) -> list[Generation]:
    """Return the writers of a run, each with its window and its number of goldens.

    A golden that is replayed on several platforms counts once.
    """
    windows, names = run.policy.window_lengths(), map_releases(run.writers)
    goldens: dict[Release, set[str]] = {writer: set() for writer in run.writers}
    for (writer, _), cells in run.by_writer.items():
        goldens[writer] |= {golden for golden, _ in cells.by_golden}
    return [
        Generation(names[writer].name, writer.built, leaves_window_on(writer.built, windows), len(own))
        for writer, own in goldens.items()
    ]


def days_left(generation: Generation, as_of: datetime.date) -> str:
    """Return when a generation leaves its window, such as ``leaves on 2027-01-13, in 53 days``."""
    days = (generation.leaves - as_of).days
    return f"left on {generation.leaves}" if days <= 0 else f"leaves on {generation.leaves}, in {plural(days, 'day')}"


def _bar(root: Xml.Element, generation: Generation, as_of: datetime.date, axis: Axis, left: float, top: float) -> None:
    """Draw a window as a bar, with the part that is over paler than the rest."""
    begin, end = (left + axis.start(day) for day in (generation.built, generation.leaves))
    today = left + axis.start(as_of)
    group = add(root, "g", "square is-kept" if generation.leaves > as_of else "square is-outside")
    text = f"writer {generation.writer}, built {generation.built}: {days_left(generation, as_of)}"
    add(group, "title", "", text)
    if end > begin:
        add(group, "rect", x=begin, y=top + 12, width=end - begin, height=12, rx=4)
    if begin < today < end:
        add(root, "rect", "spent", x=begin, y=top + 12, width=today - begin, height=12, rx=4)


def _label(parent: Xml.Element, generation: Generation, as_of: datetime.date, right: float, top: float) -> None:
    """Draw a writer's name, the number of its goldens and the days left, left of its bar, where a phone shows them."""
    add(parent, "text", "writer", generation.writer, x=right, y=top + 10, text_anchor="end")
    for below, text in ((21, plural(generation.goldens, "golden")), (31, days_left(generation, as_of))):
        add(parent, "text", "date", text, x=right, y=top + below, text_anchor="end")
