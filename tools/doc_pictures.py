"""The drawings of the docs: `python -m tools.doc_pictures` writes `PICTURES` into docs/images.

Tests make the screenshots: `PAGE_IMAGES=docs/images nox -s browser -- -k picture`.
"""

from __future__ import annotations

import datetime
import io
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from export_core.artifact import read
from export_core.artifact.bytecode.sections import SECTION_NAMES, Tables
from export_core.base.text import plural
from export_core.base.xml_text import text_of
from export_core.releases import Windows, load_calendar
from export_core.releases.windows import promise
from export_core.report.svg import add, picture
from tools import renew

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
ARTIFACT = ROOT / "golden" / "tests.compat.test_linear_algebra.test_cholesky" / "0.12.0.1-cpu" / "artifact.jaxexport"
WRITER = "0.9.2"
FIRST, LAST = datetime.date(2026, 1, 10), datetime.date(2026, 11, 1)
_LEFT, _WIDTH, _LINE = 24.0, 860.0, 112.0


def windows_picture() -> str:
    """Draw the two windows of a writer, and each jaxlib release from `FIRST` to `LAST` as a square, as SVG."""
    calendar, windows = load_calendar(), Windows()
    writer = calendar.release(WRITER)
    root = picture("windows", _WIDTH, 184, f"The windows of what jaxlib {WRITER} exports", standalone=True)
    begin, end = (writer.built + datetime.timedelta(days) for days in (-windows.forward_days, windows.backward_days))
    _window(root, begin, writer.built, f"forward: {windows.forward_days} days", _LINE + 42, f"{begin}")
    _window(root, writer.built, end, f"backward: {windows.backward_days} days", _LINE + 42, f"{end}")
    add(root, "line", "grid", x1=_LEFT, y1=_LINE, x2=_WIDTH - _LEFT, y2=_LINE)
    shown = [release for release in map(calendar.release, calendar.versions()) if FIRST <= release.built <= LAST]
    for number, release in enumerate(sorted(shown, key=lambda one: one.built)):
        place, inside = _place(release.built), promise(writer.built, release.built, windows).promised
        dot = add(root, "g", f"square is-{'kept' if inside else 'outside is-own'}")
        add(dot, "title", "", f"jaxlib {release.jaxlib}, built {release.built}")
        radius = 7 if release.jaxlib == WRITER else 5
        add(dot, "rect", x=place - radius, y=_LINE - radius, width=2 * radius, height=2 * radius, rx=radius)
        height = _LINE - (22 if number % 2 else 44)
        add(root, "line", "grid", x1=place, y1=height + 4, x2=place, y2=_LINE - 7)
        name = f"{release.jaxlib}, the writer" if release.jaxlib == WRITER else release.jaxlib
        add(
            root,
            "text",
            "writer" if release.jaxlib == WRITER else "date",
            name,
            x=place,
            y=height,
            text_anchor="middle",
        )
    add(root, "text", "date", "releases of jaxlib, by the day on which they were built", x=_LEFT, y=22)
    return f"{text_of(root)}\n"


def _window(root: Xml.Element, begin: datetime.date, end: datetime.date, name: str, y: float, edge: str) -> None:
    left, right = _place(begin), _place(end)
    group = add(root, "g", "square is-kept")
    add(group, "rect", x=left, y=_LINE + 16, width=right - left - 2, height=12, rx=3)
    add(root, "text", "date", name, x=(left + right) / 2, y=y, text_anchor="middle")
    forward = edge < str(end)
    add(root, "text", "date", edge, x=left if forward else right, y=y + 14, text_anchor="middle")


def _place(day: datetime.date) -> float:
    return _LEFT + (day - FIRST).days / (LAST - FIRST).days * (_WIDTH - 2 * _LEFT)


def bytes_picture() -> str:
    """Draw the bytes of a real artifact as SVG: the envelope around the module, and the sections of the module."""
    data = ARTIFACT.read_bytes()
    envelope = read(ARTIFACT).envelope
    assert envelope is not None
    module = envelope.mlir_module_serialized
    start = data.index(module)
    tables = Tables(module, 0, len(module), ARTIFACT.name)
    ends = [(SECTION_NAMES[number], section.end) for number, section in tables.sections.items()]
    root = picture("windows", _WIDTH, 330, f"The {len(data)} bytes of an exported Cholesky", standalone=True)
    add(root, "text", "writer", f"the file: a flatbuffer of {plural(len(data), 'byte')}", x=_LEFT, y=22)
    scale = (_WIDTH - 2 * _LEFT) / len(data)
    parts = (
        ("known", 0, start, "envelope"),
        ("kept", start, start + len(module), "module"),
        ("known", start + len(module), len(data), "envelope"),
    )
    for kind, begin, end, name in parts:
        _part(root, f"is-{kind}", _LEFT + begin * scale, 32, (end - begin) * scale)
        words = f"{name}: {end - begin}"
        add(root, "text", "date", words, x=_LEFT + (begin + end) / 2 * scale, y=76, text_anchor="middle")
    for corner, wide in ((start, _LEFT), (start + len(module), _WIDTH - _LEFT)):
        add(root, "line", "grid", x1=_LEFT + corner * scale, y1=82, x2=wide, y2=112)
    add(root, "text", "writer", f"the module: MLIR bytecode {tables.version} by {tables.producer}", x=_LEFT, y=130)
    scale, begin = (_WIDTH - 2 * _LEFT) / len(module), 0
    for number, (name, end) in enumerate([("header", min(s.at for s in tables.sections.values())), *ends]):
        _part(root, "is-kept" if number % 2 else "is-bonus", _LEFT + begin * scale, 140, (end - begin) * scale)
        middle, low = _LEFT + (begin + end) / 2 * scale, 190 + 14 * number
        add(root, "line", "grid", x1=middle, y1=166, x2=middle, y2=low - 9)
        inside = middle < _WIDTH / 2
        add(root, "text", "date", f"{name}: {end - begin}", x=middle, y=low, text_anchor="start" if inside else "end")
        begin = end
    return f"{text_of(root)}\n"


def _part(root: Xml.Element, kind: str, left: float, top: float, width: float) -> None:
    group = add(root, "g", f"square {kind}")
    add(group, "rect", x=left, y=top, width=max(width - 1.5, 1), height=26, rx=3)


def terminal_picture(width: int) -> str:
    """Draw the report of the tests' example run as SVG, as it is printed in a terminal of `width` columns."""
    sys.path.insert(0, str(ROOT / "tests"))
    from example_runs import broken_run

    from export_core.report.terminal import print_report
    from export_core.report.view import view
    from export_core.run.run import Run

    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    print_report(console, view(Run(*broken_run())))
    # A page that shows the picture must load nothing from elsewhere, so no font either.
    plain = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="jaxexport matrix", code_format=plain, unique_id="terminal")


PICTURES = {
    "windows.svg": windows_picture,
    "bytes.svg": bytes_picture,
    "terminal-80.svg": lambda: terminal_picture(80),
    "terminal-120.svg": lambda: terminal_picture(120),
}


def main() -> None:
    """Write all pictures into docs/images."""
    for name, make in PICTURES.items():
        renew(IMAGES / name, make())


if __name__ == "__main__":
    main()
