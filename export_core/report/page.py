"""A run as one HTML page that loads nothing else: headline, map, causes, the table, and all details of every cell."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup, escape

from export_core.base.escaping import safe_json, shown
from export_core.base.phrases import few, plural
from export_core.judge import Judgement, Summary
from export_core.judge.causes import Cause
from export_core.judge.result import by_build_date, grouped
from export_core.judge.verdicts import VERDICTS, Kind
from export_core.policy.known_issues import KnownIssue
from export_core.report.document import Comparison, Document, Finding, issue_of
from export_core.report.links import cause_link, cell_link, file_address, filter_link, web_address
from export_core.report.map_svg import map_svg
from export_core.report.page_data import page_data
from export_core.report.run_tables import Grid, GridBlock, grid, release_map
from export_core.report.view import capped
from export_core.report.wording import LEGEND, first_sentence, ranges, writer_and_reader
from export_core.run.run import Run

MOST_FINDINGS = 40
"""The most findings of each kind that are listed; the table has every cell anyway."""

_TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("data.js", "filter.js", "table.js", "cell.js", "map.js", "page.js")
_ON_CARD = ("known as", "stage", "to do", "reproduce")


def html_page(document: Document) -> str:
    """The page, with the difference from an earlier run first."""
    run, comparison = document.run, document.comparison
    table, shown_judgements = grid(run), [judgement for judgement in _by_promise() if judgement in run.by_judgement]
    identity = run.summary.identity
    return rendered(
        _TEMPLATES / "page.html",
        SCRIPTS,
        **_headline(document),
        **_findings(document),
        identity=_identity(run, table, comparison),
        bar=_bar(run.summary),
        judgements=[
            (
                str(judgement),
                f"{len(run.by_judgement[judgement]):,}",
                judgement.facts.meaning,
                filter_link(judgement=judgement),
            )
            for judgement in shown_judgements
        ],
        comparison=comparison.section() if comparison else None,
        map=Markup(map_svg(drawn, links=True)) if (drawn := release_map(run)).rows else None,
        pictures=list(document.pictures()),
        facets=_facets(run, comparison),
        writers=[_writer(block, shown_judgements) for block in table.blocks],
        marks=" · ".join(LEGEND.splitlines()[2:]),
        data=_embedded(page_data(table, file_address(identity.source_url, identity.goldens), comparison)),
    )


def _by_promise() -> list[Judgement]:
    """What is promised, the worst first, then what is not."""
    others = [Judgement.BONUS, Judgement.OUTSIDE]
    return [*(judgement for judgement in Judgement if judgement not in others), *others]


def _headline(document: Document) -> dict[str, Any]:
    """The headline in its parts: the word, what broke, who is affected."""
    line, counts = document.headline
    word, _, fact = line.partition(": ")
    fact, _, affected = fact.partition("; ")
    return {
        "title": line,
        "word": f"{word}:",
        "fact": fact if affected else fact.removesuffix("."),
        "affected": affected[:1].upper() + affected[1:],
        "counts": counts,
        "exit_code": int(document.look),
    }


def _findings(document: Document) -> dict[str, Any]:
    """Cards for the causes of broken and missing cells, and everything else by kind."""
    listed, more = capped(document.findings, MOST_FINDINGS)
    return {
        "causes": [_card(finding, document.run) for finding in listed if _is_urgent(finding)],
        "causes_count": sum(map(_is_urgent, document.findings)),
        "others": _by_kind([finding for finding in listed if not _is_urgent(finding)], more),
    }


def _identity(run: Run, table: Grid, comparison: Comparison | None) -> list[tuple[str, str, str]]:
    """What the run was a run of: label, text, and the address of a link; what is unknown is left out."""
    summary, identity = run.summary, run.summary.identity
    cases = {row.case for block in table.blocks for row in block.rows}
    size = (plural(len(table.readers), "reader"), plural(len(table.blocks), "writer"), plural(len(cases), "case"))
    times = [f"{time:%Y-%m-%d %H:%M}" if time else "" for time in (identity.started, identity.ended)]
    listed = [
        ("", identity.project or "jaxexport report", ""),
        ("commit", identity.commit[:12], web_address(identity.source_url)),
        ("", "CI job" if web_address(identity.ci_url) else "", web_address(identity.ci_url)),
        ("", ", ".join(run.platforms), ""),
        ("", " · ".join(size), ""),
        ("as of", str(summary.as_of), ""),
        ("run", " to ".join(filter(None, times)) or f"{summary.seconds:.0f} s", ""),
        ("jaxexport", identity.tool, ""),
        ("on", identity.machine, ""),
        ("policy", identity.policy_sha256[:12], ""),
        ("baseline", f"as of {comparison.before.summary.as_of}" if comparison else "", ""),
    ]
    return [entry for entry in listed if entry[1]]


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


def _facets(run: Run, comparison: Comparison | None) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the table can be filtered by: the name, and its values with texts."""
    titles = {issue.id: issue.title for issue in run.summary.known_issues}
    causes = {cause.id: f"{titles.get(cause.upstream, cause.id)} ({cause.verdict})" for cause in run.summary.causes}
    plain = {
        "verdict": sorted({str(result.verdict) for result in run.results}),
        "writer": by_build_date(run.writers),
        "reader": by_build_date(run.readers),
        "platform": run.platforms,
        "call": sorted({call for calls in {result.custom_calls for result in run.results} for call in calls}),
    }
    changes = comparison.counts if comparison else {}
    return [
        ("judgement", [(name, f"{name} ({len(results):,})") for name, results in run.by_judgement.items()]),
        *((name, [(value, value) for value in values]) for name, values in plain.items()),
        ("cause", list(causes.items())),
        ("change", [(name, f"{name} ({count:,})") for name, count in changes.items()]),
    ]


def _writer(block: GridBlock, judgements: Sequence[Judgement]) -> dict[str, Any]:
    """The counts of a writer's cells."""
    counts = Counter(result.judgement for result in block.results)
    promised = [result.judgement for result in block.results if result.promised]
    return {
        "name": block.head.partition("  ")[0],
        "built": str(block.writer.built),
        "score": f"{promised.count(Judgement.KEPT):,} of {len(promised):,}",
        "counts": [f"{counts[judgement]:,}" for judgement in judgements],
    }


def _embedded(data: msgspec.Struct) -> Markup:
    """JSON that cannot end the element that it is in: < is written as an escape."""
    return Markup(safe_json(data).decode().replace("<", "\\u003c"))


def _is_urgent(finding: Finding) -> bool:
    """Whether a finding is a cause of broken, owed or missing cells."""
    return finding.cause is not None and finding.cause.judgement.is_urgent


def _card(finding: Finding, run: Run) -> dict[str, Any]:
    """A cause as the page shows it."""
    cause = finding.cause
    assert cause is not None
    issue = issue_of(cause, run.summary)
    texts, message = dict(finding.details), ("message", cause.message)
    alone = [("cell", writer_and_reader(finding.results[0]))] if cause.cells == 1 else []
    written = ranges(cause.writers, by_build_date(run.writers))
    read = ranges(cause.readers, by_build_date(run.readers))
    where = [
        plural(len(cause.cases), "case") if len(cause.cases) > 1 else cause.cases[0].rpartition(".")[2],
        f"written by {written}",
        f"read by {read}",
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
        "writers": written,
        "readers": read,
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
    judgements = {result.judgement for result in finding.results}
    (judgement,) = judgements if len(judgements) == 1 else (Judgement.KEPT,)
    return filter_link(judgement=judgement) if judgement.facts.works and judgement.fails_run else ""


def _by_kind(collected: Sequence[Finding], more: Mapping[Kind, int]) -> list[dict[str, Any]]:
    """Findings by kind, folded unless the exit code comes from them, and how many more there are of each."""
    return [
        {
            "title": kind.title,
            "is_open": bool(kind.exit_code),
            "more": more.get(kind, 0),
            "findings": [
                {
                    "id": finding.cause.id if finding.cause else "",
                    "judgement": str(finding.cause.judgement) if finding.cause else "",
                    "sentence": finding.sentence,
                    "address": _address(finding),
                    "details": finding.details,
                }
                for finding in of_kind
            ],
        }
        for kind, of_kind in grouped(collected, lambda finding: finding.kind).items()
    ]


def rendered(template: Path, scripts: Sequence[str] = (), **values: Any) -> str:
    """A page from its template, with style and scripts, which it allows by their hashes."""
    style = "".join(_TEMPLATES.joinpath(name).read_text("utf-8") for name in ("page.css", "map.css"))
    script = "".join(_TEMPLATES.joinpath(name).read_text("utf-8") for name in scripts)
    page = part_of_page(
        template,
        style=Markup(style),
        script=Markup(script),
        # No script that a library's message might bring along is allowed.
        hashes={"style": _csp_hash(style), "script": _csp_hash(script)},
        **values,
    )
    return str(page)


def part_of_page(template: Path, **values: Any) -> Markup:
    """What a template makes of these values. It may use what is in the folder of the page's own templates."""
    # Undefined names are errors, and whatever comes from results is escaped.
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, _TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: shown(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["code"] = _with_code
    return Markup(templates.get_template(template.name).render(**values))


def _with_code(text: str) -> Markup:
    """Our own sentences, in which backticks enclose what is typed."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(shown(text)))))


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
