"""A picture as PNG, where only pixels are taken: in a chat, on a slide. Drawn by resvg, an optional extra."""

from __future__ import annotations

import re

from export_core.report.errors import ReportError

_SCALE = 2
"""Twice the pixels of the SVG: sharp on the screens of today."""


def png(svg: str) -> bytes:
    """The light version of a picture that stands alone. Raises `ReportError` where resvg is not installed."""
    try:
        import font_roboto
        import resvg_py
    except ImportError:
        raise ReportError(
            "A PNG is drawn by resvg: expected it to be installed here, found none: pip install "
            "'pytest-jaxexport[png]'. An SVG needs nothing."
        ) from None
    # resvg knows neither variables nor themes. The first value of each colour is that of the light theme.
    colours: dict[str, str] = {}
    for name, colour in re.findall(r"(--[\w-]+): (#\w+);", svg):
        colours.setdefault(name, colour)
    plain = re.sub(r"var\((--[\w-]+)\)", lambda variable: colours.get(variable[1], variable[0]), svg)
    # Fonts of our own: a container of a CI system has none, and its picture would have no text.
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=plain,
            zoom=_SCALE,
            skip_system_fonts=True,
            font_files=list(font_roboto.font_files.values()),
            font_family="Roboto",
        )
    )
