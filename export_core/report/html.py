"""A run as one HTML page that loads nothing else: headline, findings, the table, and all details of every cell."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup

from export_core.escaping import plain_text, safe_json, shown
from export_core.judge import Result, Summary
from export_core.report.findings import findings
from export_core.report.grid import Grid, grid
from export_core.report.wording import (
    JUDGEMENT_MEANINGS,
    LEGEND,
    cell_mark,
    cell_sentence,
    evidence,
    headline,
    promised_nothing,
)

MOST_FINDINGS = 300
"""The most findings that are listed above the table; the table has every cell anyway."""

_TEMPLATES = Path(__file__).parent / "templates"
_PIECES = re.compile(r"(?=, written by | and read by | --)")
"""Where texts are cut into pieces. Many cells share pieces; the page has each different piece once."""


class _PageData(msgspec.Struct):
    """What the page's script reads. A cell is a list of details: label and pieces of text, as indices of `strings`."""

    strings: list[str]
    cells: list[list[list[int]]]


def html_page(results: Sequence[Result], summary: Summary) -> str:
    """The page. Its texts come from the findings and the wording that all formats share."""
    table = grid(results)
    style, script = (_TEMPLATES.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    all_findings = findings(results, summary)
    line, counts = headline(summary)
    # Undefined names are errors, and whatever comes from results is escaped.
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: shown(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    judgements = Counter(result.judgement for result in results)
    return templates.get_template("page.html").render(
        style=Markup(style),
        script=Markup(script),
        # The page allows these two by their hashes, and no script that a library's message might bring along.
        hashes={"style": _csp_hash(style), "script": _csp_hash(script)},
        headline=line,
        counts=counts,
        exit_code=3 if promised_nothing(summary) else summary.exit_code,
        as_of=summary.as_of,
        findings=[(finding.title, shown(finding.text)) for finding in all_findings[:MOST_FINDINGS]],
        more=len(all_findings) - MOST_FINDINGS,
        judgements=[
            (judgement, judgements[judgement], meaning)
            for judgement, meaning in JUDGEMENT_MEANINGS.items()
            if judgements[judgement]
        ],
        verdicts=Counter(str(result.verdict) for result in results).most_common(),
        legend=LEGEND.splitlines(),
        grid=table,
        mark=cell_mark,
        data=_embedded(_page_data(table)),
    )


def _page_data(table: Grid) -> _PageData:
    """The details of every cell, in the order in which the table has them."""
    indices: dict[str, int] = {}

    def index(text: str) -> int:
        return indices.setdefault(text, len(indices))

    cells = []
    for block in table.blocks:
        for row in block.rows:
            for result in (row.cells[reader] for reader in table.readers if reader in row.cells):
                details = [
                    ("judgement", f"{result.judgement}"),
                    ("verdict", f"{result.verdict}"),
                    ("cell", cell_sentence(result)),
                    *evidence(result, all_of_stderr=True),
                ]
                cells.append(
                    [
                        [index(label), *map(index, _PIECES.split(plain_text(text).strip()))]
                        for label, text in details
                        if text.strip()
                    ]
                )
    return _PageData(list(indices), cells)


def _embedded(data: _PageData) -> Markup:
    """JSON that cannot end the element that it is in: < is written as an escape."""
    return Markup(safe_json(data).decode().replace("<", "\\u003c"))


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
