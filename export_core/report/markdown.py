"""A run as Markdown for the summary of a CI job: headline, counts, writers by readers, and as many findings as fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from export_core.escaping import for_markdown, shown
from export_core.judge import Judgement, Result, Summary
from export_core.report.findings import Finding, findings
from export_core.report.grid import grid
from export_core.report.wording import JUDGEMENT_MEANINGS, counts_line, headline

MOST_BYTES = 1024 * 1024
"""The limit for the summary of one step; GitHub drops a larger one whole.

Source: its documentation, "Workflow commands", step isolation and limits.
"""

_RESERVED_BYTES = 4096
"""Room for the last paragraph, which says what was cut."""


def markdown_text(results: Sequence[Result], summary: Summary, most: int = MOST_BYTES) -> str:
    """The document, at most `most` bytes of UTF-8. What does not fit is cut at the end: the least important part."""
    line, counts = headline(summary)
    name, _, meaning = line.partition(":")
    parts = [f"## {name}\n\n**{name}**:{for_markdown(meaning)}\n\n{for_markdown(counts)}\n", _judgements(results)]
    left = most - _RESERVED_BYTES - sum(len(part.encode()) for part in parts)
    cut = []
    table = _table(results)
    # A table is no use cut in two: it is there whole or not at all.
    if len(table.encode()) <= left:
        parts.append(table)
        left -= len(table.encode())
    else:
        cut.append("the table of writers and readers")
    all_findings = findings(results, summary)
    shown = 0
    for finding in all_findings:
        section = _section(finding)
        left -= len(section.encode())
        # Not a smaller finding further down: findings are cut at the end, where the least important ones are.
        if left < 0:
            break
        parts.append(section)
        shown += 1
    if shown < len(all_findings):
        titles = Counter(finding.title for finding in all_findings[shown:])
        cut.append(f"{len(all_findings) - shown} of {len(all_findings)} findings ({counts_line(titles)})")
    if cut:
        parts.append(
            f"**Cut here**: a step summary takes {most} bytes. Left out: {'; '.join(cut)}. "
            "`jaxexport report DIR --html FILE`, run on the same results, has everything.\n"
        )
    return "\n".join(parts)


def _judgements(results: Sequence[Result]) -> str:
    lines = ["| judgement | cells | verdicts | what it means |", "|---|---:|---|---|"]
    for judgement, meaning in JUDGEMENT_MEANINGS.items():
        verdicts = Counter(result.verdict for result in results if result.judgement is judgement)
        if verdicts:
            lines.append(
                f"| {judgement} | {verdicts.total()} | {counts_line(dict(verdicts.most_common()))} | {meaning} |"
            )
    return "\n".join(lines) + "\n"


def _table(results: Sequence[Result]) -> str:
    table = grid(results)
    titles = ["<br>".join(map(for_markdown, table.titles[reader])) for reader in table.readers]
    lines = ["writers down, readers by build date across; cells by judgement:", ""]
    lines += [f"| writer | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    for block in table.blocks:
        for platform in dict.fromkeys(row.platform for row in block.rows):
            rows = [row for row in block.rows if row.platform == platform]
            counts = [
                _judgement_counts([row.cells[reader] for row in rows if reader in row.cells])
                for reader in table.readers
            ]
            lines.append(f"| {for_markdown(f'{block.head} on {platform}')} | {' | '.join(counts)} |")
    return "\n".join(lines) + "\n"


def _judgement_counts(results: Sequence[Result]) -> str:
    counts = Counter(result.judgement for result in results)
    bad = (Judgement.BROKEN, Judgement.INCOMPLETE)
    return "<br>".join(
        f"**{counts[judgement]} {judgement}**" if judgement in bad else f"{counts[judgement]} {judgement}"
        for judgement in JUDGEMENT_MEANINGS
        if counts[judgement]
    )


def _section(finding: Finding) -> str:
    text = shown(finding.text)
    # A fence longer than any run of backquotes in the text: nothing in it can end the block.
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    first, *rest = text.split("\n")
    return "\n".join((f"#### {finding.title}", "", f"{fence}text", first, *rest, fence, ""))
