"""The forecast as one HTML page that loads nothing else: windows as bars over time, then day by day what happens."""

from __future__ import annotations

from markupsafe import Markup

from export_core.base.phrases import plural
from export_core.features.forecast.forecast_text import deployed_line
from export_core.features.forecast.rows import forecast_rows
from export_core.judge.forecast_types import Forecast
from export_core.report.page import rendered
from export_core.report.windows_svg import forecast_figure


def forecast_page(forecast: Forecast) -> str:
    """The page."""
    return rendered(
        "forecast.html",
        (),
        title=_title(forecast),
        forecast=forecast,
        goldens=plural(forecast.goldens, "golden"),
        cases=plural(forecast.cases, "case"),
        deployed=[deployed_line(reader) for reader in forecast.deployed],
        figure=Markup(forecast_figure(forecast)),
        rows=forecast_rows(forecast),
    )


def _title(forecast: Forecast) -> str:
    """What leaves first: most of what a forecast is read for."""
    ahead = [generation for generation in forecast.generations if forecast.as_of < generation.leaves <= forecast.until]
    if not ahead:
        return f"No goldens leave their window until {forecast.until}"
    first = min(ahead, key=lambda generation: generation.leaves)
    days = (first.leaves - forecast.as_of).days
    goldens = f"the {plural(first.goldens, 'golden')} by {first.writer}"
    return f"Next to leave: {goldens}, in {plural(days, 'day')} ({first.leaves})"
