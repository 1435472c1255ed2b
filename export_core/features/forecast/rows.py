"""The days of a forecast in words, the same for a terminal, Markdown and a page."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from export_core.base.phrases import plural
from export_core.judge.forecast_types import Event, Forecast, Kind, Obligations


@dataclass(frozen=True)
class ForecastRow:
    """A day: what happens, as kinds with texts, and what a jaxlib built that day must run and be read by.

    `unwritten` are writers that it must run too and that have no goldens; empty if there are none.
    """

    day: datetime.date
    ahead: str
    events: tuple[tuple[str, str], ...]
    runs: str
    readers: str
    unwritten: str


def forecast_rows(forecast: Forecast) -> list[ForecastRow]:
    """Today, then each day on which something happens."""
    may_go = f"{plural(len(forecast.prunable), 'golden')} may be pruned (jaxexport goldens prune)"
    today = (Event(Kind.PRUNABLE, "goldens", may_go),) if forecast.prunable else ()
    return [
        _row(forecast.as_of, 0, today, forecast.release),
        *(_row(day.day, day.in_days, day.events, day.release) for day in forecast.days),
    ]


def _row(day: datetime.date, in_days: int, events: tuple[Event, ...], release: Obligations) -> ForecastRow:
    return ForecastRow(
        day,
        "today" if in_days == 0 else "tomorrow" if in_days == 1 else f"in {in_days} days",
        tuple((event.kind.replace("_", " "), event.text) for event in events),
        f"{plural(release.goldens, 'golden')} by {', '.join(release.runs)}" if release.runs else "no golden",
        ", ".join(release.readers) or "no published reader",
        ", ".join(f"{version} ({plural(count, 'case')})" for version, count in release.unwritten.items()),
    )
