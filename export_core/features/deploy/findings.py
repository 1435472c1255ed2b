"""The finding about places: how many of their cells a run has, and how they ended."""

from __future__ import annotations

from collections.abc import Iterator

from export_core.base.phrases import plural
from export_core.judge.coverage import PlaceSummary
from export_core.judge.verdicts import Kind
from export_core.report.document import Finding
from export_core.run.run import Run

PLACES = Kind("places", 7)


def places_findings(run: Run) -> Iterator[Finding]:
    """One finding with a sentence for each place in force, where there is one."""
    if places := run.summary.deployed:
        yield Finding(PLACES, 1_000_000, " ".join(map(_ended, places)))


def _ended(place: PlaceSummary) -> str:
    """How the cells of a place ended."""
    until = f", until {place.until}" if place.until else ""
    where = f"{place.name} (jaxlib {place.jaxlib}, {place.platform}{until})"
    works = f"{place.works:,} of {plural(place.cells, 'cell')} {'works' if place.cells == 1 else 'work'}"
    others = [f"{count:,} {name}" for name, count in place.failing.items()]
    return f"{where}: {works}{'; ' if others else ''}{', '.join(others)}."
