"""A run as one HTML page that loads nothing else: headline, map, causes, the table, and all details of every cell."""

from __future__ import annotations

import base64
import datetime
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup, escape

from export_core.escaping import safe_json, shown
from export_core.judge import Judgement, Result, Summary
from export_core.judge.causes import completed
from export_core.judge.result import WriterOf, by_build_date
from export_core.phrases import few, plural
from export_core.report.comparison import comparison_of
from export_core.report.drawing.map_svg import map_figure
from export_core.report.drawing.release_map import release_map
from export_core.report.drawing.windows_svg import windows_figure
from export_core.report.findings import Finding, capped, findings
from export_core.report.grid import Grid, grid
from export_core.report.links import cause_link, cell_link, file_address, filter_link, web_address
from export_core.report.page_data import page_data
from export_core.report.wording import (
    JUDGEMENT_MEANINGS,
    LEGEND,
    VERDICT_PHRASES,
    headline,
    promised_nothing,
    ranges,
)
from export_core.runs.baseline import BaselineDifference

MOST_FINDINGS = 40
"""The most findings of each kind that are listed; the table has every cell anyway."""

SCRIPTS = ("data.js", "filter.js", "table.js", "cell.js", "map.js", "page.js")
_HALF_A_YEAR = datetime.timedelta(days=183)
_TEMPLATES = Path(__file__).parent / "templates"
_WORST = (Judgement.BROKEN, Judgement.INCOMPLETE)
_ORDER = (*_WORST, Judgement.KNOWN, Judgement.KEPT, Judgement.BONUS, Judgement.OUTSIDE)
"""What is promised, the worst first, then what is not."""


def html_page(results: Sequence[Result], summary: Summary, difference: BaselineDifference | None = None) -> str:
    """The page, with the difference from an earlier run first. All formats share findings and wording."""
    results = completed(results)
    table, drawn = grid(results), release_map(results, summary)
    line, counts = headline(summary)
    word, _, fact = line.partition(": ")
    fact, _, affected = fact.partition("; ")
    judgements = Counter(result.judgement for result in results)
    by_promise = {name: JUDGEMENT_MEANINGS[name] for name in _ORDER if judgements[name]}
    collected = findings(results, summary)
    listed, more = capped(collected, MOST_FINDINGS)
    readers = by_build_date(result.reader for result in results)
    writers = by_build_date(result.writer for result in results)
    cards = [_card(finding, summary, writers, readers) for finding in listed if _is_urgent(finding)]
    return rendered(
        "page.html",
        SCRIPTS,
        title=line,
        word=f"{word}:",
        fact=fact if affected else fact.removesuffix("."),
        affected=affected[:1].upper() + affected[1:],
        counts=counts,
        exit_code=3 if promised_nothing(summary) else summary.exit_code,
        identity=[*_identity(summary, table), *_baseline(difference)],
        bar=_bar(summary),
        judgements=[
            (str(judgement), f"{judgements[judgement]:,}", meaning, filter_link(judgement=judgement))
            for judgement, meaning in by_promise.items()
        ],
        causes=cards,
        causes_count=sum(map(_is_urgent, collected)),
        others=_others([finding for finding in listed if not _is_urgent(finding)], more),
        comparison=comparison_of(difference) if difference else None,
        map=Markup(map_figure(drawn)),
        windows=Markup(windows_figure(drawn.generations, drawn.as_of, drawn.as_of + _HALF_A_YEAR)),
        cells=len(results),
        facets=_facets(results, summary),
        legend=LEGEND.splitlines(),
        writers=_writers(table, list(by_promise)),
        data=_embedded(page_data(table, file_address(summary.identity.source_url, summary.identity.goldens))),
    )


def rendered(template: str, scripts: Sequence[str], **values: Any) -> str:
    """A page from its template, with style and scripts, which it allows by their hashes."""
    style = "".join(_TEMPLATES.joinpath(name).read_text("utf-8") for name in ("page.css", "map.css"))
    script = "".join(_TEMPLATES.joinpath(name).read_text("utf-8") for name in scripts)
    # Undefined names are errors, and whatever comes from results is escaped.
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: shown(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["code"] = _with_code
    return templates.get_template(template).render(
        style=Markup(style),
        script=Markup(script),
        # No script that a library's message might bring along is allowed.
        hashes={"style": _csp_hash(style), "script": _csp_hash(script)},
        **values,
    )


def _is_urgent(finding: Finding) -> bool:
    return finding.cause is not None and finding.cause.judgement in _WORST


def _with_code(text: str) -> Markup:
    """Our own sentences, in which backticks enclose what is typed."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(shown(text)))))


def _identity(summary: Summary, table: Grid) -> list[tuple[str, str, str]]:
    """What the run was a run of: label, text, and the address of a link; what is unknown is left out."""
    identity = summary.identity
    cases = {row.case for block in table.blocks for row in block.rows}
    platforms = sorted({row.platform for block in table.blocks for row in block.rows})
    size = (plural(len(table.readers), "reader"), plural(len(table.blocks), "writer"), plural(len(cases), "case"))
    times = [f"{time:%Y-%m-%d %H:%M}" if time else "" for time in (identity.started, identity.ended)]
    listed = [
        ("", identity.project or "jaxexport report", ""),
        ("commit", identity.commit[:12], web_address(identity.source_url)),
        ("", "CI job" if web_address(identity.ci_url) else "", web_address(identity.ci_url)),
        ("", ", ".join(platforms), ""),
        ("", " · ".join(size), ""),
        ("as of", str(summary.as_of), ""),
        ("run", " to ".join(filter(None, times)) or f"{summary.seconds:.0f} s", ""),
        ("jaxexport", identity.tool, ""),
        ("on", identity.machine, ""),
        ("policy", identity.policy_sha256[:12], ""),
    ]
    return [entry for entry in listed if entry[1]]


def _baseline(difference: BaselineDifference | None) -> list[tuple[str, str, str]]:
    return [("baseline", f"as of {difference.baseline.as_of}", "")] if difference else []


def _bar(summary: Summary) -> list[tuple[str, float, float]]:
    """The shares of the promised cells by judgement: name, start and length in percent."""
    total, start, parts = sum(summary.promised.values()), 0.0, []
    order = (Judgement.KEPT, Judgement.KNOWN, Judgement.INCOMPLETE, Judgement.BROKEN)
    for judgement in order:
        if count := summary.promised.get(judgement, 0):
            # A single broken cell of many is still to be seen.
            share = max(100 * count / total, 0.6)
            parts.append((str(judgement), start, share))
            start += share
    return [(name, round(100 * at / start, 2), round(100 * share / start, 2)) for name, at, share in parts]


def _card(finding: Finding, summary: Summary, writers: Sequence[str], readers: Sequence[str]) -> dict[str, Any]:
    """A cause as the page shows it."""
    cause = finding.cause
    assert cause is not None
    issue = next((issue for issue in summary.known_issues if issue.id == cause.upstream), None)
    first = cause.first_reader
    texts = dict(finding.details)
    return {
        "id": cause.id,
        "address": cause_link(cause.id),
        "judgement": str(cause.judgement),
        "kind": finding.title.lower(),
        "count": f"{cause.cells:,}",
        "cells": plural(cause.cells, "cell"),
        "title": issue.title if issue else VERDICT_PHRASES[cause.verdict].capitalize(),
        "verdict": str(cause.verdict),
        "stage": str(cause.stage),
        "message": cause.message,
        "writers": ranges(cause.writers, writers),
        "readers": ranges(cause.readers, readers),
        "first": first.jaxlib,
        "first_built": str(first.built),
        "where": plural(len(cause.cases), "case") if len(cause.cases) > 1 else cause.cases[0].rpartition(".")[2],
        "cases": len(cause.cases),
        "case_names": few([case.rpartition(".")[2] for case in cause.cases]),
        "change": cause.change,
        "todo": texts.get("to do", ""),
        "issue": web_address(issue.issue) if issue else "",
        "reproduce": cause.reproduce,
        "filter": filter_link(cause=cause.id, judgement=cause.judgement),
        "example": cell_link(cause.example),
        "details": [("", finding.sentence), *(pair for pair in finding.details if pair[0] not in _ON_CARD)],
    }


_ON_CARD = ("to do", "reproduce")


@dataclass(frozen=True)
class _Kind:
    """Findings of one kind, folded unless the exit code comes from them."""

    title: str
    is_open: bool
    findings: list[dict[str, Any]]
    more: int


def _others(collected: Sequence[Finding], more: dict[str, int]) -> list[_Kind]:
    """Findings by kind, and how many more there are of it."""
    kinds: dict[str, _Kind] = {}
    for finding in collected:
        cause = finding.cause
        kind = kinds.setdefault(
            finding.title, _Kind(finding.title, finding.rank[0] < 3, [], more.get(finding.title, 0))
        )
        kind.findings.append(
            {
                "id": cause.id if cause else "",
                "sentence": finding.sentence,
                "address": filter_link(cause=cause.id, judgement=cause.judgement) if cause else "",
                "details": finding.details,
            }
        )
    return list(kinds.values())


def _facets(results: Sequence[Result], summary: Summary) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the table can be filtered by: the name, and its values with texts."""
    counts = Counter(result.judgement for result in results)
    titles = {issue.id: issue.title for issue in summary.known_issues}
    causes = {cause.id: f"{titles.get(cause.upstream, cause.id)} ({cause.verdict})" for cause in summary.causes}
    plain = {
        "verdict": sorted({str(result.verdict) for result in results}),
        "writer": by_build_date(result.writer for result in results),
        "reader": by_build_date(result.reader for result in results),
        "platform": sorted({result.platform for result in results}),
        "call": sorted({call for calls in {result.custom_calls for result in results} for call in calls}),
    }
    return [
        ("judgement", [(name, f"{name} ({counts[name]:,})") for name in JUDGEMENT_MEANINGS if counts[name]]),
        *((name, [(value, value) for value in values]) for name, values in plain.items()),
        ("cause", list(causes.items())),
    ]


def _writers(table: Grid, judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """The counts of each writer's cells."""

    def line(name: str, writer: WriterOf, cells: Sequence[Result]) -> dict[str, Any]:
        counts = Counter(result.judgement for result in cells)
        promised = [result for result in cells if result.promised]
        kept = sum(result.judgement is Judgement.KEPT for result in promised)
        score = f"{kept:,} of {len(promised):,}"
        return {
            "name": name,
            "built": str(writer.built),
            "score": score,
            "counts": [f"{counts[judgement]:,}" for judgement in judgements],
        }

    return [
        line(
            block.head.partition("  ")[0],
            block.writer,
            [result for row in block.rows for result in row.cells.values()],
        )
        for block in table.blocks
    ]


def _embedded(data: msgspec.Struct) -> Markup:
    """JSON that cannot end the element that it is in: < is written as an escape."""
    return Markup(safe_json(data).decode().replace("<", "\\u003c"))


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
