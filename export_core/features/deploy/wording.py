"""The wording about places: how many of their cells a run has, and how they ended."""

from __future__ import annotations

from export_core.base.phrases import few, plural
from export_core.judge import Judgement, Summary
from export_core.judge.coverage import PlaceSummary

_WORKS = tuple(judgement for judgement in Judgement if judgement.facts.works)


def owed_facts(summary: Summary) -> str:
    """``3 cells that place serving must run``; empty where nothing is owed."""
    if not (owed := summary.judgements.get(Judgement.OWED, 0)):
        return ""
    return f"{plural(owed, 'cell')} that {_named(summary, Judgement.OWED)} must run"


def needed_facts(summary: Summary) -> str:
    """``12 of 12 cells that place serving must run``; empty where no place has a cell."""
    places = [place for place in summary.deployed if place.cells]
    works, cells = sum(map(_working, places)), sum(place.cells for place in places)
    return f"{works:,} of {plural(cells, 'cell')} that {_named(summary)} must run" if cells else ""


def places_lines(summary: Summary) -> list[str]:
    """A sentence for each place in force: how its cells ended."""
    return [
        f"{place.name} (jaxlib {place.jaxlib}, {place.platform}"
        f"{f', until {place.until}' if place.until else ''}): {_working(place):,} of {plural(place.cells, 'cell')} "
        f"{'works' if place.cells == 1 else 'work'}{_others(place)}."
        for place in summary.deployed
    ]


def _working(place: PlaceSummary) -> int:
    return sum(place.judgements.get(judgement, 0) for judgement in _WORKS)


def _others(place: PlaceSummary) -> str:
    counts = [f"{count:,} {name}" for name, count in place.judgements.items() if name not in _WORKS]
    return f"; {', '.join(counts)}" if counts else ""


def _named(summary: Summary, judgement: Judgement | None = None) -> str:
    """``place serving``: the places that have cells, or such of a judgement."""
    names = [
        place.name for place in summary.deployed if (place.judgements.get(judgement) if judgement else place.cells)
    ]
    return f"{'place' if len(names) == 1 else 'places'} {few(names)}"
