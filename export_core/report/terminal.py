"""How a matrix looks in a terminal: progress, the table, the findings, the last line."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from export_core.judge import Judgement, Result, Summary
from export_core.judge.result import ReaderOf, WriterOf
from export_core.matrix import Plan, Verdict
from export_core.report.findings import findings

_SHORT = {
    Verdict.PASS: "ok",
    Verdict.COMPILED: "comp",
    Verdict.NUMERICS: "num",
    Verdict.REFUSED: "ref",
    Verdict.ERROR: "err",
    Verdict.CRASH: "sig",
    Verdict.TIMEOUT: "time",
    Verdict.NOT_RUN: "-",
}
_STYLE = {
    Judgement.KEPT: "green",
    Judgement.BONUS: "cyan",
    Judgement.OUTSIDE: "bright_black",
    Judgement.KNOWN: "yellow",
    Judgement.INCOMPLETE: "magenta",
    Judgement.BROKEN: "bold red",
}
_HEADLINE = {
    0: ("KEPT", "bold green", "every promised cell ran and agrees"),
    1: ("BROKEN", "bold red", "at least one promise is broken"),
    3: ("INCOMPLETE", "bold magenta", "not every planned cell has a result that counts"),
    4: ("STALE LIST", "bold yellow", "the list of known failures is no longer true"),
}
_LINES_AT_ONCE = 200
_COLUMN = 9  # a date with two digits of the year, and a gap
LEGEND = (
    "ok agrees · num other numbers · ref refused · err error · sig died by a signal · time too long · - not run\n"
    "[..] outside the window · ! broken promise · k known failure · ~ flaky: another verdict the last time"
)


def print_plan(console: Console, plan: Plan) -> None:
    """What is going to be run, in two lines."""
    cases = {golden.manifest.case for golden in plan.goldens}
    writers = dict.fromkeys(golden.manifest.writer.jaxlib for golden in plan.goldens)
    readers = [plan.spelled.get(release, release.jaxlib) for release in plan.readers]
    console.print(
        f"{len(plan.cells)} cells as of {plan.as_of}: {len(plan.goldens)} goldens of {len(cases)} cases "
        f"by jaxlib {', '.join(writers)}, in {len(readers)} readers",
        highlight=False,
    )
    console.print(f"readers by build date: {', '.join(readers)}", highlight=False)


def print_report(console: Console, results: Sequence[Result], summary: Summary) -> None:
    """The table, the findings, then one line that says it all."""
    print_table(console, results)
    found = findings(results, summary)
    for finding in found:
        style = _title_style(finding.title)
        console.print()
        console.print(Text(finding.title, style=style), Text(finding.text), sep="  ", soft_wrap=True)
    console.print()
    print_headline(console, summary)


def print_headline(console: Console, summary: Summary) -> None:
    """The last line: the headline, the counts, the exit code."""
    name, style, meaning = _HEADLINE[summary.exit_code]
    if summary.exit_code == 3 and (broken := promises_broken(summary)):
        meaning += f"; and {broken} promise{'s are' if broken > 1 else ' is'} broken"
    if summary.exit_code in (1, 3) and summary.stale:
        meaning += "; and the list of known failures is no longer true"
    if known := summary.judgements.get(Judgement.KNOWN):
        meaning += f", {known} known failures apart"
    if summary.flaky:
        meaning += f", {summary.flaky} flaky"
    counts = ", ".join(f"{count} {name}" for name, count in summary.judgements.items()) or "no cell"
    console.print(Text(f"{name}: {meaning}.", style=style), soft_wrap=True)
    console.print(
        f"{summary.results} of {summary.planned} planned cells: {counts}. "
        f"As of {summary.as_of}, {summary.seconds:.0f} s, exit code {summary.exit_code}.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def promises_broken(summary: Summary) -> int:
    """How many cells, and goldens that call a new target too early, break a promise."""
    return summary.judgements.get(Judgement.BROKEN, 0) + sum(len(each.broken) for each in summary.custom_call_changes)


def print_table(console: Console, results: Sequence[Result]) -> None:
    """Goldens by writer down, readers by build date across; split into blocks where the terminal is too narrow."""
    heads = {result.writer: _head(result.writer) for result in results}
    rows: dict[tuple[datetime.date, str, str, str], dict[ReaderOf, Result]] = {}
    for result in results:
        row = (result.writer.built, heads[result.writer], result.case, result.platform)
        rows.setdefault(row, {})[result.reader] = result
    readers = sorted(
        {result.reader for result in results}, key=lambda reader: (reader.built, reader.jaxlib, reader.jax)
    )
    paired = {jaxlib for jaxlib, count in Counter(reader.jaxlib for reader in readers).items() if count > 1}
    names = _short_names([case for _, _, case, _ in sorted(rows)])
    several = len({platform for *_, platform in rows}) > 1
    label = max((len(name) for name in names.values()), default=4) + (5 if several else 0) + 2
    label = max(label, *(len(head) for head in heads.values()), 0) + 1
    titles = {
        reader: (reader.jaxlib, f"{reader.built:%y-%m-%d}", *([f"jax {reader.jax}"] if reader.jaxlib in paired else ()))
        for reader in readers
    }
    width = max((len(line) + 1 for title in titles.values() for line in title), default=_COLUMN)
    per_block = max(1, (console.width - label) // width)
    for start in range(0, len(readers), per_block):
        block = readers[start : start + per_block]
        height = max(len(titles[reader]) for reader in block)
        lines = []
        for at in range(height):
            title = [Text("".join(titles[reader][at : at + 1])) for reader in block]
            lines.append(_line("writer, case" if at == height - 1 else "", label, title, width))
        writer = None
        for row in sorted(rows):
            _, head, case, platform = row
            if head != writer:
                writer = head
                lines.append(Text(head, style="bold"))
            name = f"  {names[case]} {platform if several else ''}".rstrip()
            lines.append(_line(name, label, [_cell(rows[row].get(reader)) for reader in block], width))
        console.print()
        # A table of rich takes longer for 2,000 cells than planning and judging them. In pieces, for the memory of large ones.
        for piece in range(0, len(lines), _LINES_AT_ONCE):
            console.print(Text("\n").join(lines[piece : piece + _LINES_AT_ONCE]), no_wrap=True, overflow="crop")
    console.print(Text(LEGEND, style="bright_black"), soft_wrap=True)


def _head(writer: WriterOf) -> str:
    """The writer, as the line above its goldens names it."""
    jax = "" if writer.jax == writer.jaxlib else f" with jax {writer.jax}"
    return f"{writer.jaxlib}{jax}  built {writer.built}"


def _line(name: str, label: int, texts: Sequence[Text], width: int) -> Text:
    """A row: its name, then a column for each text."""
    line = Text(name.ljust(label))
    for text in texts:
        line.append_text(text).append(" " * (width - len(text)))
    return line


def _cell(result: Result | None) -> Text:
    if result is None:
        return Text("")
    text = f"sig{result.signal}" if result.verdict is Verdict.CRASH and result.signal else _SHORT[result.verdict]
    if not result.promised:
        text = f"[{text}]"
    mark = {Judgement.BROKEN: "!", Judgement.KNOWN: "k"}.get(result.judgement, "")
    mark += "~" if result.flaky else ""
    return Text(text + mark, style=_STYLE[result.judgement])


def _short_names(cases: Sequence[str]) -> dict[str, str]:
    """Case ids without the folders that all of them share."""
    parts = [case.split(".") for case in dict.fromkeys(cases)]
    shared = 0
    while len(parts) > 1 and all(len(part) > shared + 1 and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    return {case: ".".join(case.split(".")[shared:]) for case in cases}


def _title_style(title: str) -> str:
    styles = {
        "BROKEN PROMISE": "bold red",
        "INCOMPLETE": "bold magenta",
        "STALE LIST": "bold yellow",
        "FLAKY": "bold yellow",
        "known failure": "yellow",
    }
    return styles.get(title, "bright_black")
