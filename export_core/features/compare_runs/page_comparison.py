"""What is different from an earlier run, as the page of a run shows it: changes by kind, and both maps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from export_core.features.compare_runs.baseline import BaselineDifference, Change
from export_core.features.compare_runs.baseline_report import CAVEAT, CHANGED, COST, baseline_findings, baseline_line
from export_core.judge import Result, Summary
from export_core.report.document import Finding
from export_core.report.links import cell_link, filter_link
from export_core.report.map_svg import map_svg
from export_core.report.run_tables import aligned, release_map
from export_core.report.view import capped

_MOST = 20
_IN_BOTH = (Change.REGRESSED, Change.FIXED, Change.CHANGED)


@dataclass(frozen=True)
class ChangesOfKind:
    """Cells that changed in one way: how many, and findings about them, of which `more` are not listed."""

    name: str
    title: str
    cells: int
    address: str
    is_open: bool
    findings: list[dict[str, Any]]
    more: int


@dataclass(frozen=True)
class Comparison:
    """The difference: its line, why some of it may not come from the cells, the kinds of changes, and the two maps.

    `costs` is the finding about costs, where they changed.
    """

    line: str
    caveats: list[str]
    kinds: list[ChangesOfKind]
    costs: list[Finding]
    maps: list[tuple[str, Markup]]


def comparison_of(difference: BaselineDifference) -> Comparison:
    """What regressed and what works again first."""
    collected = baseline_findings(difference)
    listed, more = capped((finding for finding in collected if finding.kind is not CAVEAT), _MOST)
    counts = Counter(cell.change for cell in difference.cells)
    in_this_run = {cell.now.key for cell in difference.cells if cell.now}
    kinds = [
        ChangesOfKind(
            name=str(change),
            title=kind.title.capitalize(),
            cells=counts[change],
            # A cell that is gone has no place in the table.
            address="" if change is Change.GONE else filter_link(change=change),
            is_open=kind.is_open,
            findings=[
                {
                    "sentence": finding.sentence,
                    "details": finding.details,
                    "address": cell_link(finding.results[0].key) if finding.results[0].key in in_this_run else "",
                }
                for finding in listed
                if finding.kind is kind
            ],
            more=more[kind],
        )
        for change, kind in CHANGED.items()
        if counts[change]
    ]
    costs = [finding for finding in listed if finding.kind is COST]
    return Comparison(baseline_line(difference), difference.caveats, kinds, costs, _maps(difference))


def _maps(difference: BaselineDifference) -> list[tuple[str, Markup]]:
    """Both runs with the same rows and columns; what did not change is pale."""
    # What is new or gone is seen by itself: often it is a case, and would be in every square.
    changed = {cell.result.key for cell in difference.cells if cell.change in _IN_BOTH}
    runs: list[tuple[Summary, list[Result]]] = [
        (difference.baseline.summary, [cell.then for cell in difference.cells if cell.then]),
        (difference.now.summary, [cell.now for cell in difference.cells if cell.now]),
    ]
    if not all(results for _, results in runs):
        return []
    then, now = aligned(*(release_map(results, summary, changed or None) for summary, results in runs))
    return [
        (f"Then, as of {then.as_of}", Markup(map_svg(then, narrow=True))),
        (f"Now, as of {now.as_of}", Markup(map_svg(now, narrow=True, links=True))),
    ]
