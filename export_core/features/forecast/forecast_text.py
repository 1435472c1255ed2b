"""The forecast for people: lines for a terminal, a table in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from export_core.base.escaping import for_markdown
from export_core.base.phrases import few, plural
from export_core.features.forecast.rows import forecast_rows
from export_core.judge.forecast_types import DeployedReader, Forecast


def forecast_lines(forecast: Forecast) -> Iterator[str]:
    """Each day on which something happens, and the obligations of a release of that day where they have changed."""
    goldens, cases = plural(forecast.goldens, "golden"), plural(forecast.cases, "case")
    yield f"{goldens} of {cases}, from {forecast.as_of} to {forecast.until}"
    for reader in forecast.deployed:
        yield deployed_line(reader)
    yield ""
    before = None
    for row in forecast_rows(forecast):
        yield f"{row.day}  {row.ahead}"
        for kind, text in row.events:
            yield f"  {kind}: {text}"
        # The obligations take two long lines: they are repeated only when they have changed.
        if (obligations := (row.runs, row.readers, row.unwritten)) != before:
            yield (
                f"  a jaxlib built that day must run {row.runs}; what it exports must run in {row.readers}; "
                f"it has {plural(forecast.cases, 'golden')} to write"
            )
            if row.unwritten:
                yield f"  no goldens exist by these writers, which it must run too: {row.unwritten}"
        before = obligations
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
    lines += ["", "| day | | what happens | a jaxlib built that day must run | and its exports run in |"]
    lines += ["|---|---|---|---|---|"]
    for row in forecast_rows(forecast):
        events = "<br>".join(f"**{kind}** {for_markdown(text)}" for kind, text in row.events)
        missing = f"<br>no goldens exist by {for_markdown(row.unwritten)}" if row.unwritten else ""
        runs, readers = for_markdown(row.runs), for_markdown(row.readers)
        lines.append(f"| {row.day} | {row.ahead} | {events} | {runs}{missing} | {readers} |")
    return "\n".join(lines) + "\n"


def deployed_line(reader: DeployedReader) -> str:
    """What a reader in use is promised to run, without a full stop."""
    targets = f"{few(reader.targets)}: " if reader.targets else ""
    start = (
        f"{targets}reader {reader.jaxlib} (built {reader.built}) is promised to run what jaxlibs built until "
        f"{reader.promised_until} export; "
        f"the last such release is {reader.last_writer}"
    )
    if reader.promised:
        return f"{start}, the newest"
    return f"{start}; the newest, {reader.writer}, was built on {reader.writer_built}, {-reader.days} days too late"
