"""A run as one HTML page that loads nothing else: headline, findings, the table, and everything of every cell."""

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

from export_core.judge import Result, Summary
from export_core.report.findings import findings
from export_core.report.grid import Grid, grid
from export_core.report.words import LEGEND, MEANING, evidence, headline, mark, plain, sentence

MOST_FINDINGS = 300
"""Findings that are told one by one above the table, which has every cell anyway."""

_TEMPLATES = Path(__file__).parent / "templates"
_PIECES = re.compile(r"(?=, written by | and read by | --)")
"""Where sentences and commands of different cells part: what is between is often the same, and is in the page once."""


class _Data(msgspec.Struct):
    """What the page's script reads. A cell is its details, each a label and the pieces of its text, as numbers of `strings`."""

    strings: list[str]
    cells: list[list[list[int]]]


def html_page(results: Sequence[Result], summary: Summary) -> str:
    """The page. What it says comes from findings and words; here it is only drawn."""
    drawn = grid(results)
    style, script = (_TEMPLATES.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    found = findings(results, summary)
    line, counts = headline(summary)
    # Undefined names are errors, and whatever comes from results is escaped.
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    judgements = Counter(each.judgement for each in results)
    return made.get_template("page.html").render(
        style=Markup(style),
        script=Markup(script),
        hashes={"style": _csp_hash(style), "script": _csp_hash(script)},
        headline=line,
        counts=counts,
        exit_code=summary.exit_code,
        as_of=summary.as_of,
        findings=[(each.title, plain(each.text)) for each in found[:MOST_FINDINGS]],
        more=len(found) - MOST_FINDINGS,
        judgements=[(each, judgements[each], meaning) for each, meaning in MEANING.items() if judgements[each]],
        verdicts=Counter(str(each.verdict) for each in results).most_common(),
        legend=LEGEND.splitlines(),
        grid=drawn,
        mark=mark,
        data=_embedded(_data(drawn)),
    )


def _data(drawn: Grid) -> _Data:
    """The details of every cell, in the order in which the table has them."""
    numbers: dict[str, int] = {}

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers))

    cells = []
    for block in drawn.blocks:
        for row in block.rows:
            for result in (row.cells[reader] for reader in drawn.readers if reader in row.cells):
                told = [
                    ("judgement", f"{result.judgement}"),
                    ("verdict", f"{result.verdict}"),
                    ("cell", sentence(result)),
                    *evidence(result, whole=True),
                ]
                cells.append(
                    [
                        [number(label), *map(number, _PIECES.split(plain(text).strip()))]
                        for label, text in told
                        if text.strip()
                    ]
                )
    return _Data(list(numbers), cells)


def _embedded(data: _Data) -> Markup:
    """JSON that cannot end the element it stands in: < is written as an escape."""
    return Markup(msgspec.json.encode(data).decode().replace("<", "\\u003c"))


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
