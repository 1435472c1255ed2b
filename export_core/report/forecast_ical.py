"""How does a calendar program read the forecast? As an iCalendar file of whole days (RFC 5545)."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterator

from export_core.judge.forecast import Event, Forecast, ForecastDay, Kind

WIDEST = 75
"""Octets of a line without its end, which RFC 5545 (3.1) asks not to exceed."""

_TITLES = {
    Kind.LEAVES: "goldens leave the window",
    Kind.CLOSES: "forward window closed",
    Kind.RETIRES: "reader may be retired",
    Kind.PRUNABLE: "goldens may be pruned",
    Kind.EXPIRES: "known failure expires",
    Kind.CUSTOM_CALL: "custom call",
}


def calendar_file(told: Forecast) -> bytes:
    """The bytes of an .ics file.

    An event keeps its UID from one forecast to the next, also where its day has moved; the time stamp is the day of the forecast, so
    that the same forecast makes the same bytes.
    """
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//pytest-jaxexport//jaxexport forecast//EN",
        "CALSCALE:GREGORIAN",
    ]
    for day in told.days:
        for event in day.events:
            lines += _event(told, day, event)
    lines.append("END:VCALENDAR")
    return b"".join(_folded(line) for line in lines)


def _event(told: Forecast, day: ForecastDay, event: Event) -> Iterator[str]:
    # Goldens may be pruned on several days; all else happens to its subject once.
    which = f"{event.subject} {day.day}" if event.kind is Kind.PRUNABLE else event.subject
    uid = hashlib.sha256(f"{event.kind}\0{which}".encode()).hexdigest()[:32]
    description = "\n".join([event.text, *event.goldens])
    yield "BEGIN:VEVENT"
    yield f"UID:{uid}@pytest-jaxexport"
    yield f"DTSTAMP:{told.as_of:%Y%m%d}T000000Z"
    yield f"DTSTART;VALUE=DATE:{day.day:%Y%m%d}"
    yield f"DTEND;VALUE=DATE:{day.day + datetime.timedelta(days=1):%Y%m%d}"
    yield f"SUMMARY:{_text(f'jaxexport: {_TITLES[event.kind]}: {event.subject}')}"
    yield f"DESCRIPTION:{_text(description)}"
    yield "TRANSP:TRANSPARENT"
    yield "END:VEVENT"


def _text(value: str) -> str:
    """A TEXT value (3.3.11): no control character may stand in it."""
    for plain, escaped in (("\\", "\\\\"), (";", "\\;"), (",", "\\,"), ("\n", "\\n")):
        value = value.replace(plain, escaped)
    return "".join(letter if letter.isprintable() else " " for letter in value)


def _folded(line: str) -> bytes:
    """A content line, folded before the octet that is too many, never inside a character."""
    found, width = [b""], 0
    for letter in line:
        octets = letter.encode()
        if width + len(octets) > WIDEST:
            found.append(b" ")
            width = 1
        found[-1] += octets
        width += len(octets)
    return b"\r\n".join(found) + b"\r\n"
