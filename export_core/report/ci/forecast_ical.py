"""The forecast as an iCalendar file of whole days (RFC 5545), for calendar programs."""

from __future__ import annotations

import datetime
import hashlib
from typing import TYPE_CHECKING

from export_core.judge.forecast_types import Event, Forecast, Kind

if TYPE_CHECKING:
    import icalendar

_TITLES = {
    Kind.LEAVES: "goldens leave the window",
    Kind.CLOSES: "forward window closed",
    Kind.RETIRES: "reader may be retired",
    Kind.PRUNABLE: "goldens may be pruned",
    Kind.EXPIRES: "known failure expires",
    Kind.CUSTOM_CALL: "custom call",
}


def calendar_file(forecast: Forecast) -> bytes:
    """The bytes of an .ics file.

    An event has the same UID in every forecast, also where its day has moved; the time stamp is the day of the
    forecast, so that the same forecast makes the same bytes.
    """
    import icalendar  # takes 0.15 s, and `jaxexport forecast` needs it only for --ics

    calendar = icalendar.Calendar()
    calendar.add("version", "2.0")
    calendar.add("prodid", "-//pytest-jaxexport//jaxexport forecast//EN")
    calendar.add("calscale", "GREGORIAN")
    for forecast_day in forecast.days:
        for event in forecast_day.events:
            calendar.add_component(_calendar_event(event, forecast_day.day, forecast.as_of))
    data: bytes = calendar.to_ical(sorted=False)
    return data


def _calendar_event(event: Event, day: datetime.date, as_of: datetime.date) -> icalendar.Event:
    import icalendar

    # Goldens may be pruned on several days; all else happens to its subject once.
    identity = f"{event.subject} {day}" if event.kind is Kind.PRUNABLE else event.subject
    digest = hashlib.sha256(f"{event.kind}\0{identity}".encode()).hexdigest()
    entry = icalendar.Event()
    entry.add("uid", f"{digest[:32]}@pytest-jaxexport")
    entry.add("dtstamp", datetime.datetime.combine(as_of, datetime.time(), datetime.UTC))
    entry.add("dtstart", day)
    # The end of an event of whole days is exclusive (RFC 5545, 3.6.1).
    entry.add("dtend", day + datetime.timedelta(days=1))
    entry.add("summary", _text(f"jaxexport: {_TITLES[event.kind]}: {event.subject}"))
    entry.add("description", _text("\n".join([event.text, *event.goldens])))
    # A deadline does not make its reader busy.
    entry.add("transp", "TRANSPARENT")
    return entry


def _text(value: str) -> str:
    """Text without control characters, which no TEXT value may hold (3.3.11) and the library writes as they are."""
    text = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in value)
    # The library folds lines at 75 bytes, so that any of these may begin one, where a log takes it for a command.
    return text.replace("::", ": :").replace("##[", "## [")
