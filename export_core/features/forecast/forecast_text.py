"""The forecast for people: lines for a terminal, a table in Markdown, and one HTML page that loads nothing else."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from export_core.base.escaping import for_markdown
from export_core.base.phrases import few, plural
from export_core.features.forecast.forecast import DeployedReader, Event, Forecast, ForecastDay, Kind
from export_core.features.forecast.foreseen import RuntimeReader
from export_core.releases.names import title_of

NO_RELEASE = "no published release"
MOST = 3  # Reasons in the line of a reader.


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
        ForecastRow(
            day.day,
            {0: "today", 1: "tomorrow"}.get(day.in_days, f"in {day.in_days} days"),
            tuple((event.kind.replace("_", " "), event.text) for event in day.events),
            f"{plural(release.goldens, 'golden')} by {', '.join(release.runs)}" if release.runs else "no golden",
            ", ".join(release.readers) or NO_RELEASE,
            ", ".join(f"{version} ({plural(count, 'case')})" for version, count in release.unwritten.items()),
        )
        for day in (ForecastDay(forecast.as_of, 0, today, forecast.release), *forecast.days)
        for release in [day.release]
    ]


def forecast_lines(forecast: Forecast) -> Iterator[str]:
    """Each day on which something happens, and the obligations of a release of that day where they have changed."""
    goldens, cases = plural(forecast.goldens, "golden"), plural(forecast.cases, "case")
    yield f"{goldens} of {cases}, from {forecast.as_of} to {forecast.until}"
    yield from _in_use(forecast)
    yield ""
    before = None
    for row in forecast_rows(forecast):
        yield f"{row.day}  {row.ahead}"
        for kind, text in row.events:
            yield f"  {kind}: {text}"
        # The obligations take two long lines: they are repeated only when they have changed.
        if (obligations := (row.runs, row.readers, row.unwritten)) != before:
            exports = f"what it exports must run in {row.readers}"
            if row.readers == NO_RELEASE:
                exports = "no release that is published has to run what it exports"
            yield (
                f"  a jaxlib built that day must run {row.runs}; {exports}; it has "
                f"{plural(forecast.cases, 'golden')} to write"
            )
            if row.unwritten:
                yield f"  no goldens exist by these writers, which it must run too: {row.unwritten}"
        before = obligations
    if not forecast.days:
        yield f"nothing happens until {forecast.until}"


def forecast_markdown(forecast: Forecast) -> str:
    """A section of Markdown with a table of the days."""
    lines = [
        f"## Forecast of {forecast.as_of}, until {forecast.until}",
        "",
        f"{plural(forecast.goldens, 'golden')} of {plural(forecast.cases, 'case')}.",
    ]
    lines += [f"- {for_markdown(line)}" for line in _in_use(forecast)]
    lines += ["", "| day | | what happens | a jaxlib built that day must run | and what must run its exports |"]
    lines += ["|---|---|---|---|---|"]
    for row in forecast_rows(forecast):
        events = "<br>".join(f"**{kind}** {for_markdown(text)}" for kind, text in row.events)
        missing = f"<br>no goldens exist by {for_markdown(row.unwritten)}" if row.unwritten else ""
        runs, readers = for_markdown(row.runs), for_markdown(row.readers)
        lines.append(f"| {row.day} | {row.ahead} | {events} | {runs}{missing} | {readers} |")
    return "\n".join(lines) + "\n"


def forecast_page(forecast: Forecast) -> str:
    """The page: windows as bars over time, then day by day what happens."""
    # Only here: lines in a terminal need no templates.
    from markupsafe import Markup

    from export_core.features.forecast.windows_svg import windows_figure
    from export_core.report.page import rendered

    events = [(day.day, event) for day in forecast.days for event in day.events]
    leaving = [one for one in forecast.generations if forecast.as_of < one.leaves <= forecast.until]
    title = f"No goldens leave their window until {forecast.until}"
    if leaving:  # most of what a forecast is read for
        first = min(leaving, key=lambda generation: generation.leaves)
        days = plural((first.leaves - forecast.as_of).days, "day")
        title = f"Next to leave: the {plural(first.goldens, 'golden')} by {first.writer}, in {days} ({first.leaves})"
    return rendered(
        Path(__file__).with_name("forecast.html"),
        title=title,
        forecast=forecast,
        goldens=plural(forecast.goldens, "golden"),
        cases=plural(forecast.cases, "case"),
        deployed=[*_in_use(forecast)],
        figure=Markup(windows_figure(forecast.generations, forecast.as_of, forecast.until, events)),
        rows=forecast_rows(forecast),
    )


def _in_use(forecast: Forecast) -> list[str]:
    """A line for each reader in use."""
    return [*map(deployed_line, forecast.deployed), *map(foreseen_line, forecast.foreseen)]


def foreseen_line(reader: RuntimeReader) -> str:
    """What a reader that is not jaxlib is foreseen to make of the goldens, without a full stop."""
    targets = f"{few(reader.targets)}: " if reader.targets else ""
    unread = sorted(((len(ids), reason) for reason, ids in reader.unread.items()), reverse=True)
    reads = reader.goldens - sum(count for count, _ in unread)
    parts = [f"{targets}{title_of(reader.reader)} is foreseen to read {reads} of {plural(reader.goldens, 'golden')}"]
    parts += [f"not {count}, since {reason}" for count, reason in unread[:MOST]]
    if reader.not_run:
        parts.append(f"it does not run {len(reader.not_run)}, with custom calls of jax or for several devices")
    if reader.promised:
        first, last = reader.promised
        parts.append(f"it promises to read what jaxlibs built from {first} to {last} export")
    return "; ".join(parts)


def deployed_line(reader: DeployedReader) -> str:
    """What a reader in use is promised to run, without a full stop."""
    targets = f"{few(reader.targets)}: " if reader.targets else ""
    start = (
        f"{targets}reader {reader.jaxlib} (built {reader.built}) is promised to run what jaxlibs built until "
        f"{reader.promised_until} export; the last such release is {reader.last_writer}"
    )
    if reader.promised:
        return f"{start}, the newest"
    return f"{start}; the newest, {reader.writer}, was built on {reader.writer_built}, {-reader.days} days too late"
