"""The badge of a run: its verdict in a few words, as a picture for a README or as what shields.io draws one from."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as Xml

from export_core.base.exit_code import ExitCode
from export_core.base.json_text import safe_json
from export_core.base.text import plural
from export_core.base.xml_text import text_of
from export_core.judge import Judgement, Summary
from export_core.report.svg import add, width_of
from export_core.report.wording import OUTDATED_RUN, doubts, headline, old_calendar, promised_nothing, shown_exit_code
from export_core.run.run import Run


def badge(summary: Summary, *, doubt: str = "") -> dict[str, Any]:
    """Return the badge of a run: the first numbers of its headline, such as ``broken: 67 of 1,350 promised cells``.

    The badge has the form that https://shields.io/badges/endpoint-badge reads. `doubt` says why the judgement
    may not be that of today, such as `outdated run`.
    """
    name, _, facts = headline(summary)[0].removesuffix(".").partition(": ")
    message = name.lower() if promised_nothing(summary) else f"{name.lower()}: {facts.split('; ')[0].split(', ')[0]}"
    if summary.exit_code == ExitCode.KEPT and (known := summary.judgements.get(Judgement.KNOWN)):
        message += f", {plural(known, 'known failure')}"
    if old_calendar(summary):
        message += f", releases until {summary.calendar['newest_built']}"
    # A badge has no room to name the selected part: it only shows that the run was a part.
    if summary.partial and not promised_nothing(summary):
        message = f"partial run, {message}"
    if doubt:
        message = f"{doubt}, {message}"
    is_green = summary.exit_code == ExitCode.KEPT
    shown = ExitCode.INCOMPLETE if (summary.partial or doubt) and is_green else shown_exit_code(summary)
    colour = shown.facts.colour
    return {"schemaVersion": 1, "label": "jax.export", "message": message, "color": colour}


def badge_file(run: Run, *, as_json: bool) -> bytes:
    """Return the badge of a run as a file: an SVG picture, or JSON data from which shields.io draws the badge."""
    kind = next(iter(doubts(run)), None)
    shown = badge(run.summary, doubt="outdated run" if kind is OUTDATED_RUN else kind.title.lower() if kind else "")
    return (safe_json(shown) if as_json else badge_svg(shown).encode()) + b"\n"


def badge_svg(shown: Mapping[str, Any]) -> str:
    """Return a badge as an SVG picture that looks like those of shields.io: a grey label and a coloured message."""
    label, message = shown["label"], shown["message"]
    left, right = (round(width_of(text, 11)) + 12 for text in (label, message))
    root = Xml.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "width": str(left + right), "height": "20"})
    root.attrib |= {"role": "img", "aria-label": f"{label}: {message}"}
    add(root, "title", "", f"{label}: {message}")
    add(root, "rect", width=left + right, height=20, rx=4, fill="#444d56")
    add(root, "rect", x=left, width=right, height=20, rx=4, fill=shown["color"])
    add(root, "rect", x=left, width=6, height=20, fill=shown["color"])
    font = {"font_family": "Verdana, DejaVu Sans, Geneva, sans-serif", "font_size": 11, "fill": "#fff"}
    for text, start, width in ((label, 0, left), (message, left, right)):
        # The width is estimated: whatever the font, the text has to fit.
        add(root, "text", "", text, x=start + 6, y=14, textLength=width - 12, **font)
    return text_of(root)
