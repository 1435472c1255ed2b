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

from export_core.base.exit_code import ExitCode
from export_core.base.json_text import safe_json
from export_core.base.text import few, plural, shown
from export_core.judge import Judgement
from export_core.matrix.result import Cells, by_build_date
from export_core.matrix.verdicts import VERDICTS, FindingKind
from export_core.policy.known_issues import KnownIssue
from export_core.releases import Release
from export_core.releases.runtimes import JAXLIB
from export_core.report.document import Document, Finding, RunDifference, by_kind, capped, issue_of
from export_core.report.map_svg import legend_of, map_svg
from export_core.report.page_data import cause_link, cell_link, filter_link, page_data, web_address
from export_core.report.run_tables import map_releases, named_among, release_map
from export_core.report.view import NOT_COVERED, NOT_DECIDED
from export_core.report.wording import (
    JAX_PROMISE,
    MARKS,
    began_and_ended,
    doubts,
    first_sentence,
    lost_cells,
    owed_to,
    promise_basis,
    run_before,
    writer_and_reader,
)
from export_core.run.run import Run

MOST_FINDINGS = 40  # The most findings of each kind that are listed; the table has every cell anyway.

_TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("data.js", "filter.js", "table.js", "pictures.js", "cell.js", "map.js", "page.js")


def html_page(document: Document) -> str:
    """Return a run's report as an HTML page, which begins with the difference from an earlier run if there is one."""
    run, comparison = document.run, document.comparison
    drawn = release_map(run)
    # What is promised, the worst first; then what is not.
    not_promised = [name for name in (Judgement.BONUS, Judgement.OUTSIDE) if name in run.by_judgement]
    judgements = [*(name for name in run.by_judgement if name not in not_promised), *not_promised]
    listed, more = capped(document.findings, MOST_FINDINGS)
    with_cards = [finding for finding in document.findings if _has_card(finding)]
    page = part_of_page(
        _TEMPLATES / "page.html",
        **_assets(),
        **_headline(document),
        missing=_missing(document),
        lost=lost_cells(run.summary),
        notes=_notes(document),
        causes=_cards([finding for finding in listed if _has_card(finding)], run),
        cards_count=len(with_cards),
        # Cells that fail alike are one cause, also if they are judged differently and so have several cards.
        causes_count=len({one.cause.id if one.cause else number for number, one in enumerate(with_cards)}),
        failed_on=run.summary.failed_on,
        others=[
            (kind, findings, more[kind])
            for kind, findings in by_kind(finding for finding in listed if not _has_card(finding)).items()
        ],
        anchor=_anchor,
        cause_filter=lambda cause: filter_link(cause=cause.id, judgement=cause.judgement),
        identity=_identity(run, comparison),
        promise=(promise_basis(run.policy, run.readers), JAX_PROMISE),
        judgements=[(name, len(run.by_judgement[name]), filter_link(judgement=name)) for name in judgements],
        comparison=comparison.section() if comparison else None,
        map=Markup(map_svg(drawn, links=True)) if drawn.rows else None,
        map_legend=[(look, _named(look, meaning)) for look, meaning in legend_of(drawn)],
        runtimes=any(reader.runtime for reader in run.readers),
        pictures=document.pictures,
        facets=_facets(run),
        runs=comparison.runs if comparison else (),
        marks=" · ".join([*(f"{facts.mark} {facts.symbol} {facts.short}" for facts in VERDICTS.values()), *MARKS]),
        # JSON that cannot end the element that it is in: < is written as an escape.
        data=Markup(safe_json(page_data(document)).decode().replace("<", "\\u003c")),
    )
    return str(page)


def _named(look: str, meaning: str) -> str:
    """Return the meaning of a square for the legend, beginning with its judgement if the meaning does not name it."""
    has_name = look not in [*Judgement] or meaning.startswith(look.partition("-")[0])
    return meaning if has_name else f"{look}: {meaning}"


def _headline(document: Document) -> dict[str, Any]:
    """Return the template values with which the page shows the headline: its parts, the counts and the exit code."""
    first, affected, counts = document.headline_parts
    word, _, fact = first.partition(": ")
    return {
        "title": document.headline[0],
        "word": f"{word}:",
        "fact": fact,
        "affected": f"{affected[:1].upper()}{affected[1:]}." if affected else "",
        "counts": counts,
        "exit_code": int(document.look),
    }


def _notes(document: Document) -> list[tuple[str, str, str]]:
    """Return the notes below the headline, which even a kept run may have, as (sentence, address, link text).

    The address leads to the note's finding. Address and link text are "" if there is no more to see.
    """
    notes = [(sentence, "", "") for sentence in doubts(document.run).values()]
    if untested := document.run.summary.without_cells:
        first = first_sentence(untested)
        link = (cause_link(_anchor(NOT_COVERED)), "More") if first != untested else ("", "")
        notes.append((f"{NOT_COVERED.title}: {first}", *link))
    if undecided := document.run.summary.undecided:
        outputs = plural(len(undecided), "stored output")
        text = f"{NOT_DECIDED.title}: {outputs} would not show a wrong number: rounding alone moves them as far."
        notes.append((text, cause_link(_anchor(NOT_DECIDED)), "Which"))
    return notes


def _missing(document: Document) -> list[tuple[str, str, str]]:
    """Return the note below the headline of an incomplete run: what is missing, as (sentence, address, link text).

    Without this note, the first screen of the page might show only what is broken. The list is empty if the run is
    complete, or if the headline says everything.
    """
    findings = [one for one in document.findings if one.kind.exit_code is ExitCode.INCOMPLETE]
    is_answered = document.run.summary.exit_code != ExitCode.INCOMPLETE and document.look is not ExitCode.INCOMPLETE
    if not findings or is_answered:
        return []
    first, several = findings[0], len(findings) > 1
    if first.cause:
        to_do = first_sentence(dict(first.details).get("to do", ""))
        words = f"All {len(findings):,}" if several else "Which"
        return [(f"{first.brief} {to_do}".strip(), cause_link(first.cause.id, first.cause.judgement), words)]
    start = first_sentence(first.sentence)
    is_in_headline = start.removesuffix(".").lower() in document.headline[0].lower()
    text = first.sentence.removeprefix(start).strip() if is_in_headline else first.sentence
    if several:
        return [(text or first.sentence, cause_link(_anchor(first.kind)), f"All {len(findings):,}")]
    return [(text, "", "")] if text else []


def _anchor(kind: FindingKind) -> str:
    """Return the anchor of the page's section with the findings of a kind, such as ``not-decided``."""
    return kind.title.lower().replace(" ", "-")


def _identity(run: Run, comparison: RunDifference | None) -> list[tuple[str, str, str]]:
    """Return the facts that identify the run, as (label, text, URL or ""). Unknown facts are left out."""
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
        ("run", (" to ".join(filter(None, times)) or f"{summary.seconds:.0f} s") + run_before(summary), ""),
        ("jaxexport", identity.tool, ""),
        ("on", identity.machine, ""),
        ("policy", identity.policy_sha256[:12], ""),
        ("baseline", f"as of {comparison.before.summary.as_of}" if comparison else "", ""),
    ]
    return [entry for entry in listed if entry[1]]


def _newest_first(releases: Sequence[Release]) -> list[str]:
    """Return the names of releases, newest first: those of jaxlib, then those of other runtimes."""
    names = by_build_date(releases)[::-1]
    names.sort(key=lambda name: "==" in name)
    return names


def _facets(run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the filters of the page's table: the name of each filter, and its values with the texts to show."""
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
        *((name, [(value, value.replace("==", " ")) for value in values]) for name, values in plain.items()),
        ("cause", list(causes.items())),
        ("change", []),
    ]


def _has_card(finding: Finding) -> bool:
    """Return whether a finding gets a card on the page: whether it has cells that decide the exit code."""
    return bool(finding.results and finding.kind.exit_code)


def _cards(findings: Sequence[Finding], run: Run) -> list[dict[str, Any]]:
    """Return the template values of the cards for these findings. Cards with equal titles are numbered."""
    cards = [_card(finding, number, run) for number, finding in enumerate(findings)]
    titles, seen = Counter(card["title"] for card in cards), Counter[str]()
    for card in cards:
        seen[title := card["title"]] += 1
        if titles[title] > 1:
            card["title"] += f" ({seen[title]} of {titles[title]})"
    return cards


def _card(finding: Finding, number: int, run: Run) -> dict[str, Any]:
    """Return the template values of a finding's card. `number` identifies the card if the finding has no cause.

    The cells of the finding fail in the same way, or work but exceed the same limit.
    """
    cause, example, details = finding.cause, finding.results[0], dict(finding.details)
    name, judgement = cause.id if cause else f"finding-{number}", example.judgement
    issue, to_do, size = issue_of(cause, run.summary), details.get("to do", ""), plural(len(finding.results), "cell")
    message = cause.message if cause else finding.sentence
    alone = [("cell", writer_and_reader(example))] if len(finding.results) == 1 else []
    hidden = ("known as", "stage", "to do", "reproduce")  # the first two and the last are shown above
    return {
        **_where(finding, issue, run),
        "judgement": judgement,
        "anchor": f"{name}={judgement}",
        "address": cause_link(name, judgement),
        "kind": f"{finding.title.lower()} · {example.verdict} in stage {example.stage}",
        "count": len(finding.results),
        "cells": size,
        "message": message,
        "change": cause.change if cause else "",
        "fault": finding.fault,
        "to_do": to_do,
        "next_step": first_sentence(to_do.removeprefix("Run the command below. ")),
        "issue": web_address(issue.link) if issue else "",
        "linked": "Upstream issue" if issue and issue.issue else "Documentation",
        "reproduce": details.get("reproduce", ""),
        "filter": filter_link(cause=name, judgement=judgement) if cause else filter_link(judgement=judgement),
        "filtered": f"Its {size}" if cause else f"All {judgement} cells",
        "example": cell_link(cause.example if cause else example.key),
        "details": alone + [pair for pair in finding.details if pair[0] not in hidden and pair != ("message", message)],
    }


def _where(finding: Finding, issue: KnownIssue | None, run: Run) -> dict[str, Any]:
    """Return the template values that say where a finding's cells are: title, writers, readers, dates and cases."""
    cells, example = Cells(finding.results), finding.results[0]
    writers, readers = named_among(cells.writers, run.writers), named_among(cells.readers, run.readers)
    began = began_and_ended(finding.cause, issue) if finding.cause else []
    # Where no run shows when a failure began or ended: the oldest of the readers that fail.
    oldest = [("oldest reader affected", map_releases(run.readers)[cells.readers[0]].name)]
    when = began or (oldest if len(cells.readers) > 1 else [])
    names = [case.rpartition(".")[2] for case in dict.fromkeys(result.case for result in cells.results)]
    cases = plural(len(names), "case") if len(names) > 1 else names[0]
    works = example.judgement.facts.works
    happened = example.judgement.facts.short if works else VERDICTS[example.verdict].short
    owed = owed_to(finding.results)
    where = [
        *filter(None, [owed]),
        f"written by {writers}",
        f"read by {readers}",
        *(f"{label} {jaxlib}" for label, jaxlib in when),
    ]
    return {
        "title": issue.title if issue else f"{happened.capitalize()} in {cases}",
        "writers": writers,
        "readers": readers,
        "owed_to": owed.removeprefix("owed to "),
        "when": when,
        "where": " · ".join([cases, *where] if issue else where),
        "cases": len(names),
        "case_names": few(names),
    }


def _assets() -> dict[str, Any]:
    """Return the page's style and script, and their hashes.

    The page allows only a script with this hash, so that no text in a message can run as one.
    """
    files = {"style": ("page.css", "map.css"), "script": SCRIPTS}
    texts = {kind: "".join((_TEMPLATES / name).read_text("utf-8") for name in names) for kind, names in files.items()}
    digests = {kind: hashlib.sha256(text.encode()).digest() for kind, text in texts.items()}
    hashes = {kind: f"sha256-{base64.b64encode(digest).decode()}" for kind, digest in digests.items()}
    return {"hashes": hashes, **{kind: Markup(text) for kind, text in texts.items()}}


def part_of_page(template: Path, **values: Any) -> Markup:
    """Return the HTML of a template filled with these values, which are escaped unless they are `Markup`.

    The template may include files of its own folder and the page's templates.
    """
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
    """Return a text as HTML, in which text between backticks becomes a ``<code>`` element."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(shown(text)))))
