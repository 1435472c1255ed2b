"""The forecast for people: lines for a terminal, a table in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from export_core.escaping import for_markdown
from export_core.judge.forecast import DeployedReader, Forecast, Obligations
from export_core.phrases import plural


def forecast_lines(forecast: Forecast) -> Iterator[str]:
    """Each day on which something happens, and the obligations of a release of that day where they have changed."""
    goldens, cases = plural(forecast.goldens, "golden"), plural(forecast.cases, "case")
    yield f"{goldens} of {cases}, from {forecast.as_of} to {forecast.until}"
    for reader in forecast.deployed:
        yield deployed_line(reader)
    yield ""
    yield f"{forecast.as_of}  today"
    yield from _obligation_lines(forecast.release)
    if forecast.prunable:
        yield f"  {plural(len(forecast.prunable), 'golden')} may be pruned (jaxexport goldens prune)"
    previous = forecast.release
    for day in forecast.days:
        yield f"{day.day}  {days_ahead(day.in_days)}"
        for event in day.events:
            yield f"  {event.kind.replace('_', ' ')}: {event.text}"
        # The obligations take two long lines: they are repeated only when they have changed.
        if day.release != previous:
            yield from _obligation_lines(day.release)
        previous = day.release
    if not forecast.days:
        yield f"nothing happens until {forecast.until}"


def forecast_markdown(forecast: Forecast) -> str:
    """The same as a section of Markdown."""
    lines = [
        f"## Forecast of {forecast.as_of}, until {forecast.until}",
        "",
        f"{plural(forecast.goldens, 'golden')} of {plural(forecast.cases, 'case')}.",
    ]
    lines += [f"- {for_markdown(deployed_line(reader))}" for reader in forecast.deployed]
    lines += [
        "",
        "| day | in days | what happens | a jaxlib built that day must run goldens by | and its exports run in |",
    ]
    lines += ["|---|---|---|---|---|", _row(str(forecast.as_of), 0, "today", forecast.release)]
    for day in forecast.days:
        events = "<br>".join(f"**{event.kind.replace('_', ' ')}** {for_markdown(event.text)}" for event in day.events)
        lines.append(_row(str(day.day), day.in_days, events, day.release))
    return "\n".join(lines) + "\n"


def _row(day: str, in_days: int, events: str, release: Obligations) -> str:
    runs, readers = (for_markdown(", ".join(versions)) for versions in (release.runs, release.readers))
    return f"| {day} | {in_days} | {events} | {runs} | {readers} |"


def _obligation_lines(release: Obligations) -> Iterator[str]:
    runs = f"{plural(release.goldens, 'golden')} by {_names(release.runs)}" if release.runs else "no golden"
    yield (
        f"  a jaxlib built that day must run {runs}; what it exports must run in {_names(release.readers)}; "
        f"it has {plural(release.cases, 'golden')} to write"
    )
    if release.unwritten:
        missing = ", ".join(f"{version} ({plural(count, 'case')})" for version, count in release.unwritten.items())
        yield f"  no goldens exist by these writers, which it must run too: {missing}"


def deployed_line(reader: DeployedReader) -> str:
    """What a reader in use is promised to run, without a full stop."""
    start = (
        f"reader {reader.jaxlib} (built {reader.built}) is promised to run what jaxlibs built until "
        f"{reader.promised_until} export; "
        f"the last such release is {reader.last_writer}"
    )
    if reader.promised:
        return f"{start}, the newest"
    return f"{start}; the newest, {reader.writer}, was built on {reader.writer_built}, {-reader.days} days too late"


def days_ahead(days: int) -> str:
    """``in 53 days``."""
    return "today" if days == 0 else "tomorrow" if days == 1 else f"in {days} days"


def _names(versions: tuple[str, ...]) -> str:
    return ", ".join(versions) or "no published reader"
