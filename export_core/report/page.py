"""A run as one HTML page that loads nothing else: headline, map, causes, the table, and all details of every cell."""

from __future__ import annotations

import base64
import datetime
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup, escape

from export_core.base.escaping import safe_json, shown
from export_core.base.phrases import few, plural
from export_core.features.compare_runs.baseline import BaselineDifference, Change
from export_core.features.compare_runs.page_comparison import comparison_of
from export_core.judge import Judgement, Result, Summary
from export_core.judge.causes import Cause, completed
from export_core.judge.result import WriterOf, by_build_date
from export_core.judge.verdicts import VERDICTS, Kind
from export_core.policy.known_issues import KnownIssue
from export_core.report.document import Finding
from export_core.report.links import cause_link, cell_link, file_address, filter_link, web_address
from export_core.report.map_svg import map_figure
from export_core.report.page_data import page_data
from export_core.report.run_tables import Grid, grid, release_map
from export_core.report.view import capped, findings
from export_core.report.windows_svg import windows_figure
from export_core.report.wording import LEGEND, first_sentence, headline, ranges, shown_exit_code, writer_and_reader

MOST_FINDINGS = 40
"""The most findings of each kind that are listed; the table has every cell anyway."""

SCRIPTS = ("data.js", "filter.js", "table.js", "cell.js", "map.js", "page.js")
_HALF_A_YEAR = datetime.timedelta(days=183)


def html_page(results: Sequence[Result], summary: Summary, difference: BaselineDifference | None = None) -> str:
    """The page, with the difference from an earlier run first. All formats share findings and wording."""
    results = completed(results)
    table, drawn = grid(results), release_map(results, summary)
    judgements = Counter(result.judgement for result in results)
    by_promise = [judgement for judgement in _by_promise() if judgements[judgement]]
    files = file_address(summary.identity.source_url, summary.identity.goldens)
    return rendered(
        "page.html",
        SCRIPTS,
        **_headline(summary),
        **_findings(results, summary),
        identity=[*_identity(summary, table), *_baseline(difference)],
        bar=_bar(summary),
        judgements=[
            (
                str(judgement),
                f"{judgements[judgement]:,}",
                judgement.facts.meaning,
                filter_link(judgement=judgement),
            )
            for judgement in by_promise
        ],
        comparison=comparison_of(difference) if difference else None,
        map=Markup(map_figure(drawn)),
        windows=Markup(windows_figure(drawn.generations, drawn.as_of, drawn.as_of + _HALF_A_YEAR)),
        facets=_facets(results, summary, difference),
        writers=_writers(table, by_promise),
        marks=" · ".join(LEGEND.splitlines()[2:]),
        data=_embedded(page_data(table, files, difference)),
    )


def _by_promise() -> list[Judgement]:
    """What is promised, the worst first, then what is not."""
    others = [Judgement.BONUS, Judgement.OUTSIDE]
    return [*(judgement for judgement in Judgement if judgement not in others), *others]


def _headline(summary: Summary) -> dict[str, Any]:
    """The headline in its parts: the word, what broke, who is affected."""
    line, counts = headline(summary)
    word, _, fact = line.partition(": ")
    fact, _, affected = fact.partition("; ")
    return {
        "title": line,
        "word": f"{word}:",
        "fact": fact if affected else fact.removesuffix("."),
        "affected": affected[:1].upper() + affected[1:],
        "counts": counts,
        "exit_code": int(shown_exit_code(summary)),
    }


def _findings(results: Sequence[Result], summary: Summary) -> dict[str, Any]:
    """Cards for the causes of broken and missing cells, and everything else by kind."""
    collected = findings(results, summary)
    listed, more = capped(collected, MOST_FINDINGS)
    readers = by_build_date(result.reader for result in results)
    writers = by_build_date(result.writer for result in results)
    return {
        "causes": [cause_card(finding, summary, writers, readers) for finding in listed if is_urgent(finding)],
        "causes_count": sum(map(is_urgent, collected)),
        "others": by_kind([finding for finding in listed if not is_urgent(finding)], more),
    }


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
    return [("baseline", f"as of {difference.baseline.summary.as_of}", "")] if difference else []


def _bar(summary: Summary) -> list[tuple[str, float, float]]:
    """The shares of the promised cells by judgement: name, start and length in percent."""
    total, start, parts = sum(summary.promised.values()), 0.0, []
    for judgement in reversed(Judgement):
        if count := summary.promised.get(judgement, 0):
            # A single broken cell of many is still to be seen.
            share = max(100 * count / total, 0.6)
            parts.append((str(judgement), start, share))
            start += share
    return [(name, round(100 * at / start, 2), round(100 * share / start, 2)) for name, at, share in parts]


def _facets(
    results: Sequence[Result], summary: Summary, difference: BaselineDifference | None
) -> list[tuple[str, list[tuple[str, str]]]]:
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
        ("judgement", [(name, f"{name} ({counts[name]:,})") for name in Judgement if counts[name]]),
        *((name, [(value, value) for value in values]) for name, values in plain.items()),
        ("cause", list(causes.items())),
        ("change", _changes(difference) if difference else []),
    ]


def _changes(difference: BaselineDifference) -> list[tuple[str, str]]:
    # What is gone has no cell in this run.
    counts = {name: count for name, count in difference.counts.items() if count and name != Change.GONE}
    return [(name, f"{name} ({count:,})") for name, count in counts.items()]


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


_ON_CARD = ("known as", "stage", "to do", "reproduce")


def is_urgent(finding: Finding) -> bool:
    """Whether a finding is a cause of broken, owed or missing cells."""
    return finding.cause is not None and finding.cause.judgement.is_urgent


def cause_card(finding: Finding, summary: Summary, writers: Sequence[str], readers: Sequence[str]) -> dict[str, Any]:
    """A cause as the page shows it."""
    cause = finding.cause
    assert cause is not None
    issue = next((issue for issue in summary.known_issues if issue.id == cause.upstream), None)
    texts, message = dict(finding.details), ("message", cause.message)
    alone = [("cell", writer_and_reader(finding.results[0]))] if cause.cells == 1 else []
    where = [
        plural(len(cause.cases), "case") if len(cause.cases) > 1 else cause.cases[0].rpartition(".")[2],
        f"written by {ranges(cause.writers, writers)}",
        f"read by {ranges(cause.readers, readers)}",
        *(f"{label} {jaxlib}" for label, jaxlib in _when(cause, issue)),
    ]
    return {
        "id": cause.id,
        "address": cause_link(cause.id, cause.judgement),
        "judgement": str(cause.judgement),
        "kind": finding.title.lower(),
        "count": f"{cause.cells:,}",
        "cells": plural(cause.cells, "cell"),
        "title": issue.title if issue else VERDICTS[cause.verdict].short.capitalize(),
        "verdict": str(cause.verdict),
        "stage": str(cause.stage),
        "message": cause.message,
        "writers": ranges(cause.writers, writers),
        "readers": ranges(cause.readers, readers),
        "when": _when(cause, issue),
        "where": " · ".join(where),
        "cases": f"{len(cause.cases):,}",
        "case_names": few([case.rpartition(".")[2] for case in cause.cases]),
        "change": cause.change,
        "todo": texts.get("to do", ""),
        "next_step": first_sentence(texts.get("to do", "")),
        "issue": web_address(issue.issue) if issue else "",
        "reproduce": cause.reproduce,
        "filter": filter_link(cause=cause.id, judgement=cause.judgement),
        "example": cell_link(cause.example),
        "details": alone + [pair for pair in finding.details if pair[0] not in _ON_CARD and pair != message],
    }


def _when(cause: Cause, issue: KnownIssue | None) -> list[tuple[str, str]]:
    """Since which jaxlib they fail, and in which they work again; where no run shows it, the oldest that fails.

    The table of known issues knows the release that fixed it; the run only the next of its own readers.
    """
    ended = ("fixed in", issue.mended_in) if issue and issue.mended_in else ("works in", cause.mended_in)
    began = ("between", f"{cause.before} and {cause.since}") if cause.before else ("since", cause.since)
    known = [(label, jaxlib) for label, jaxlib in (began, ended) if jaxlib]
    return known or [("oldest reader affected", cause.first_reader.jaxlib)]


def _address(finding: Finding) -> str:
    """The filter that lets only the cells of a finding through; empty where there is none."""
    if finding.cause:
        return filter_link(cause=finding.cause.id, judgement=finding.cause.judgement)
    costly = any(result.judgement is Judgement.COSTLY for result in finding.results)
    return filter_link(judgement=Judgement.COSTLY) if costly else ""


@dataclass(frozen=True)
class FindingsOfKind:
    """Findings of one kind, folded unless the exit code comes from them."""

    title: str
    is_open: bool
    findings: list[dict[str, Any]]
    more: int


def by_kind(collected: Sequence[Finding], more: Mapping[Kind, int]) -> list[FindingsOfKind]:
    """Findings by kind, and how many more there are of it."""
    kinds: dict[Kind, FindingsOfKind] = {}
    for finding in collected:
        cause = finding.cause
        kind = kinds.setdefault(
            finding.kind,
            FindingsOfKind(finding.title, bool(finding.kind.exit_code), [], more.get(finding.kind, 0)),
        )
        kind.findings.append(
            {
                "id": cause.id if cause else "",
                "judgement": str(cause.judgement) if cause else "",
                "sentence": finding.sentence,
                "address": _address(finding),
                "details": finding.details,
            }
        )
    return list(kinds.values())


_TEMPLATES = Path(__file__).parent / "templates"


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


def _with_code(text: str) -> Markup:
    """Our own sentences, in which backticks enclose what is typed."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(shown(text)))))


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
