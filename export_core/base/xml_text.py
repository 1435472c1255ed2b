"""Pictures and other XML as text."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from export_core.base.text import shown


def text_of(root: Xml.Element) -> str:
    """Return a picture or other XML as text, with control characters removed from its texts and attributes."""
    for element in root.iter():
        element.text = shown(element.text) if element.text else None
        element.attrib.update({name: shown(value) for name, value in element.items()})
    return Xml.tostring(root, encoding="unicode")
