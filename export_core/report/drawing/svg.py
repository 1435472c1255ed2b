"""Elements of an SVG picture, whatever text they contain."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as Xml

from export_core.base.escaping import shown

STYLE = Path(__file__).parents[1] / "page" / "templates" / "map.css"
"""Colours, light and dark, of all pictures."""


def picture(kind: str, width: float, height: float, label: str, *, standalone: bool) -> Xml.Element:
    """An empty picture. One that stands alone has its style and its background in it, and is one image to a reader."""
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
    """An element of a kind, its class, with its attributes; ``_`` in their names is ``-``."""
    element = Xml.SubElement(parent, tag, {"class": kind} if kind else {})
    for name, value in attributes.items():
        element.set(name.replace("_", "-"), _number(value) if isinstance(value, float | int) else str(value))
    if text:
        element.text = text
    return element


def width_of(text: str, size: float) -> float:
    """About how wide a text is, in a font of this size: no font is loaded to draw a picture.

    The same with each Python: from 3.12 on, `sum` loses fewer digits.
    """
    widths = (0.33 if letter in "fijlrt ,.:;'|!()I" else 0.85 if letter in "mwMW" else 0.59 for letter in text)
    return size * math.fsum(widths)


def text_of(root: Xml.Element) -> str:
    """The picture as text, with nothing in it that is more than a letter."""
    for element in root.iter():
        element.text = shown(element.text) if element.text else None
        element.attrib.update({name: shown(value) for name, value in element.items()})
    return Xml.tostring(root, encoding="unicode")


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
