"""How is the forecast told to people: lines for a terminal, a table in Markdown?"""

from __future__ import annotations

from collections.abc import Iterator

from export_core.judge.forecast import Deployed, Forecast, Obliged, counted


def forecast_lines(told: Forecast) -> Iterator[str]:
    """Each day on which something happens, and what a release of that day would be bound to, where that has changed."""
    yield f"{counted(told.goldens, 'golden')} of {counted(told.cases, 'case')}, from {told.as_of} to {told.until}"
    for each in told.deployed:
        yield _deployed(each)
    yield ""
    yield f"{told.as_of}  today"
    yield from _bound(told.release)
    if told.prunable:
        yield f"  nothing keeps {counted(len(told.prunable), 'golden')} (jaxexport goldens prune)"
    before = told.release
    for day in told.days:
        yield f"{day.day}  {_when(day.in_days)}"
        for event in day.events:
            yield f"  {event.kind.replace('_', ' ')}: {event.text}"
        if day.release != before:
            yield from _bound(day.release)
        before = day.release
    if not told.days:
        yield f"nothing happens until {told.until}"


def forecast_markdown(told: Forecast) -> str:
    """The same as a section of Markdown."""
    lines = [
        f"## Forecast of {told.as_of}, until {told.until}",
        "",
        f"{counted(told.goldens, 'golden')} of {counted(told.cases, 'case')}.",
    ]
    lines += [f"- {_deployed(each)}" for each in told.deployed]
    lines += [
        "",
        "| day | in days | what happens | a jaxlib built that day must run goldens by | and its exports run in |",
    ]
    lines += ["|---|---|---|---|---|", _row(str(told.as_of), 0, "today", told.release)]
    for day in told.days:
        what = "<br>".join(f"**{event.kind.replace('_', ' ')}** {_cell(event.text)}" for event in day.events)
        lines.append(_row(str(day.day), day.in_days, what, day.release))
    return "\n".join(lines) + "\n"


def _row(day: str, in_days: int, what: str, release: Obliged) -> str:
    return f"| {day} | {in_days} | {what} | {', '.join(release.runs)} | {', '.join(release.readers)} |"


def _bound(release: Obliged) -> Iterator[str]:
    runs = f"{counted(release.goldens, 'golden')} by {_listed(release.runs)}" if release.runs else "no golden"
    yield (
        f"  a jaxlib built that day must run {runs}; what it exports must run in {_listed(release.readers)}; "
        f"it has {counted(release.cases, 'golden')} to write"
    )
    if release.unwritten:
        missing = ", ".join(f"{version} ({counted(count, 'case')})" for version, count in release.unwritten.items())
        yield f"  not written, though it must run them: goldens by {missing}"


def _deployed(each: Deployed) -> str:
    start = (
        f"reader {each.jaxlib} (built {each.built}) is promised what jaxlibs built until {each.promised_until} export: "
        f"of those published, up to {each.last_writer}"
    )
    if each.promised:
        return f"{start}, which is today's"
    return f"{start}; today's, {each.writer}, was built on {each.writer_built}, {-each.days} days too late"


def _when(days: int) -> str:
    return "today" if days == 0 else "tomorrow" if days == 1 else f"in {days} days"


def _listed(versions: tuple[str, ...]) -> str:
    return ", ".join(versions) or "no published reader"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
