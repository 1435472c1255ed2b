"""A run as one HTML page that loads nothing else: headline, map, causes, the table, and all details of every cell."""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from export_core.base.escaping import safe_json, shown
from export_core.base.phrases import few, plural, ranges
from export_core.judge import Judgement
from export_core.judge.result import ReaderOf, by_build_date
from export_core.judge.verdicts import VERDICTS
from export_core.releases.runtimes import JAXLIB
from export_core.report.document import Comparison, Document, Finding, by_kind, capped, issue_of
from export_core.report.map_svg import map_svg
from export_core.report.page_data import cause_link, cell_link, filter_link, page_data, web_address
from export_core.report.run_tables import grid, release_map
from export_core.report.wording import MARKS, began_and_ended, first_sentence, writer_and_reader
from export_core.run.run import Run

MOST_FINDINGS = 40  # The most findings of each kind that are listed; the table has every cell anyway.

_TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("data.js", "filter.js", "table.js", "cell.js", "map.js", "page.js")


def html_page(document: Document) -> str:
    """The page, with the difference from an earlier run first."""
    run, comparison = document.run, document.comparison
    table, drawn = grid(run), release_map(run)
    # What is promised, the worst first; then what is not.
    not_promised = [name for name in (Judgement.BONUS, Judgement.OUTSIDE) if name in run.by_judgement]
    judgements = [*(name for name in run.by_judgement if name not in not_promised), *not_promised]
    listed, more = capped(document.findings, MOST_FINDINGS)
    return rendered(
        _TEMPLATES / "page.html",
        SCRIPTS,
        **_headline(document),
        causes=_cards([finding for finding in listed if _is_urgent(finding)], run),
        causes_count=sum(map(_is_urgent, document.findings)),
        others=[
            (kind, findings, more[kind])
            for kind, findings in by_kind(finding for finding in listed if not _is_urgent(finding)).items()
        ],
        address_of=_address,
        identity=_identity(run, comparison),
        judgements=[(name, len(run.by_judgement[name]), filter_link(judgement=name)) for name in judgements],
        comparison=comparison.section() if comparison else None,
        map=Markup(map_svg(drawn, links=True)) if drawn.rows else None,
        runtimes=any(reader.runtime for reader in run.readers),
        pictures=document.added("picture"),
        facets=_facets(run),
        runs=comparison.runs if comparison else (),
        marks=" · ".join([*(f"{facts.mark} {facts.symbol} {facts.short}" for facts in VERDICTS.values()), *MARKS]),
        # JSON that cannot end the element that it is in: < is written as an escape.
        data=Markup(safe_json(page_data(document, table)).decode().replace("<", "\\u003c")),
    )


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


def _identity(run: Run, comparison: Comparison | None) -> list[tuple[str, str, str]]:
    """What the run was a run of: label, text, and the address of a link; what is unknown is left out."""
    summary, identity = run.summary, run.summary.identity
    cases = {result.case for result in run.results}
    size = (plural(len(run.readers), "reader"), plural(len(run.writers), "writer"), plural(len(cases), "case"))
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


def _newest_first(releases: Sequence[ReaderOf]) -> list[str]:
    """The names of releases as a list shows them: jaxlib's, then those of other runtimes."""
    names = by_build_date(releases)[::-1]
    names.sort(key=lambda name: "==" in name)
    return names


def _facets(run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the table can be filtered by: the name, and its values with texts."""
    titles = {issue.id: issue.title for issue in run.summary.known_issues}
    causes = {cause.id: f"{titles.get(cause.upstream, cause.id)} ({cause.verdict})" for cause in run.summary.causes}
    plain = {
        "verdict": sorted({str(result.verdict) for result in run.results}),
        "writer": _newest_first(run.writers),
        "runtime": list(dict.fromkeys(reader.family or JAXLIB for reader in run.readers)),
        "reader": _newest_first(run.readers),
        "platform": run.platforms,
        "call": sorted({call for calls in {result.custom_calls for result in run.results} for call in calls}),
    }
    return [
        ("judgement", [(name, f"{name} ({len(results):,})") for name, results in run.by_judgement.items()]),
        *((name, [(value, value) for value in values]) for name, values in plain.items()),
        ("cause", list(causes.items())),
        ("change", []),
    ]


def _is_urgent(finding: Finding) -> bool:
    """Whether a finding is a cause of broken, owed or missing cells."""
    return finding.cause is not None and finding.cause.judgement.is_urgent


def _cards(findings: Sequence[Finding], run: Run) -> list[dict[str, Any]]:
    """Causes as the page shows them, those with one title told apart by their writers and readers."""
    cards = [_card(finding, run) for finding in findings]
    titles = Counter(card["title"] for card in cards)
    for card in cards:
        if titles[card["title"]] > 1:
            card["title"] += f", written by {card['writers']}, read by {card['readers']}"
    return cards


def _card(finding: Finding, run: Run) -> dict[str, Any]:
    """A cause as the page shows it."""
    cause = finding.cause
    assert cause is not None
    issue = issue_of(cause, run.summary)
    to_do = dict(finding.details).get("to do", "")
    writers = ranges(cause.writers, by_build_date(run.writers))
    readers = ranges(cause.readers, by_build_date(run.readers))
    # Where no run shows when it began or ended, the oldest that fails.
    when = began_and_ended(cause, issue) or [("oldest reader affected", cause.first_reader.label)]
    cases = plural(len(cause.cases), "case") if len(cause.cases) > 1 else cause.cases[0].rpartition(".")[2]
    where = [
        *([cases] if issue else []),
        f"written by {writers}",
        f"read by {readers}",
        *(f"{label} {jaxlib}" for label, jaxlib in when),
    ]
    alone = [("cell", writer_and_reader(finding.results[0]))] if cause.cells == 1 else []
    shown_above = ("known as", "stage", "to do", "reproduce")
    return {
        "cause": cause,
        "address": cause_link(cause.id, cause.judgement),
        "kind": finding.title.lower(),
        "cells": plural(cause.cells, "cell"),
        "title": issue.title if issue else f"{VERDICTS[cause.verdict].short.capitalize()} in {cases}",
        "writers": writers,
        "readers": readers,
        "when": when,
        "where": " · ".join(where),
        "case_names": few([case.rpartition(".")[2] for case in cause.cases]),
        "to_do": to_do,
        "next_step": first_sentence(to_do.removeprefix("Run the command below. ")),
        "issue": web_address(issue.issue) if issue else "",
        "filter": filter_link(cause=cause.id, judgement=cause.judgement),
        "example": cell_link(cause.example),
        "details": alone
        + [pair for pair in finding.details if pair[0] not in shown_above and pair != ("message", cause.message)],
    }


def _address(finding: Finding) -> str:
    """The filter that lets only the cells of a finding through; empty where there is none."""
    if finding.cause:
        return filter_link(cause=finding.cause.id, judgement=finding.cause.judgement)
    judgements = {result.judgement for result in finding.results}
    # Cells that work and fail the run, as those over a budget, have no cause: only their judgement tells them apart.
    own = [judgement for judgement in judgements if judgement.facts.works and judgement.fails_run]
    return filter_link(judgement=own[0]) if own and len(judgements) == 1 else ""


def rendered(template: Path, scripts: Sequence[str] = (), **values: Any) -> str:
    """A page from its template, with style and scripts, which it allows by their hashes."""
    style = "".join(_TEMPLATES.joinpath(name).read_text("utf-8") for name in ("page.css", "map.css"))
    script = "".join(_TEMPLATES.joinpath(name).read_text("utf-8") for name in scripts)
    page = part_of_page(
        template,
        style=Markup(style),
        script=Markup(script),
        # No script that a library's message might bring along is allowed.
        hashes={
            name: f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
            for name, text in (("style", style), ("script", script))
        },
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
