"""A run as Markdown, such as GitHub shows beside a job: headline, counts, writers by readers, and as many findings as fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from export_core.judge import Judgement, Result, Summary
from export_core.report.findings import Finding, findings
from export_core.report.grid import grid
from export_core.report.words import MEANING, headline, plain

MOST_BYTES = 1024 * 1024
"""Of one step's summary; GitHub drops a larger one whole. Source: its documentation, "Workflow commands", step isolation and limits."""

_ROOM = 4096
"""Bytes kept for the note that says what was cut."""


def markdown_text(results: Sequence[Result], summary: Summary, most: int = MOST_BYTES) -> str:
    """The document, at most `most` bytes of UTF-8. Findings are cut at the end, where the least important are, and that is said."""
    line, counts = headline(summary)
    name, _, rest = line.partition(":")
    parts = [f"## {name}\n\n**{name}**:{_escaped(rest)}\n\n{_escaped(counts)}\n", _judgements(results)]
    left = most - _ROOM - sum(len(part.encode()) for part in parts)
    cut = []
    table = _table(results)
    if len(table.encode()) <= left:
        parts.append(table)
        left -= len(table.encode())
    else:
        cut.append("the table of writers and readers")
    found = findings(results, summary)
    shown = 0
    for each in found:
        text = _finding(each)
        left -= len(text.encode())
        if left < 0:
            break
        parts.append(text)
        shown += 1
    if shown < len(found):
        titles = Counter(each.title for each in found[shown:])
        cut.append(f"{len(found) - shown} of {len(found)} findings ({_counted(titles.items())})")
    if cut:
        parts.append(
            f"**Cut here**, since a step summary takes {most} bytes: {'; '.join(cut)}. "
            "`jaxexport report DIR --html FILE`, run on the same results, has everything.\n"
        )
    return "\n".join(parts)


def _judgements(results: Sequence[Result]) -> str:
    found = {
        judgement: Counter(each.verdict for each in results if each.judgement is judgement) for judgement in MEANING
    }
    lines = ["| judgement | cells | verdicts | what it means |", "|---|---:|---|---|"]
    for judgement, verdicts in found.items():
        if verdicts:
            told = _counted(verdicts.most_common())
            lines.append(f"| {judgement} | {verdicts.total()} | {told} | {MEANING[judgement]} |")
    return "\n".join(lines) + "\n"


def _table(results: Sequence[Result]) -> str:
    drawn = grid(results)
    titles = ["<br>".join(drawn.titles[reader]) for reader in drawn.readers]
    lines = ["writers down, readers by build date across; cells by judgement:", ""]
    lines += [f"| writer | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    for block in drawn.blocks:
        for platform in dict.fromkeys(row.platform for row in block.rows):
            told = []
            for reader in drawn.readers:
                there = [row.cells[reader] for row in block.rows if row.platform == platform and reader in row.cells]
                told.append(_judged(there))
            lines.append(f"| {block.head} on {platform} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def _judged(results: Sequence[Result]) -> str:
    counts = Counter(each.judgement for each in results)
    bad = (Judgement.BROKEN, Judgement.INCOMPLETE)
    told = [
        f"**{counts[name]} {name}**" if name in bad else f"{counts[name]} {name}" for name in MEANING if counts[name]
    ]
    return "<br>".join(told)


def _finding(each: Finding) -> str:
    text = plain(each.text)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    first, *rest = text.splitlines() or [""]
    return "\n".join((f"#### {each.title}", "", f"{fence}text", first, *rest, fence, ""))


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts)


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)
