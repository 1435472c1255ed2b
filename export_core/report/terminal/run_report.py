"""A run in a terminal: the plan; then at most one screen: the writers, the causes, what to run next, the headline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from export_core.base.phrases import plural
from export_core.features.costs.costs_table import newest_costs
from export_core.judge import Judgement, Result, Summary
from export_core.judge.verdicts import FAIL_ON, Kind
from export_core.matrix import Plan
from export_core.policy.run_options import RESULTS
from export_core.report.finding import Finding
from export_core.report.findings import cells_of, findings
from export_core.report.terminal.cells_table import print_table
from export_core.report.terminal.paragraphs import labelled_paragraphs, wrapped
from export_core.report.terminal.writers_table import table_lines
from export_core.report.wording import first_line, headline, named_folder, shown_exit_code

MOST_SHOWN = 3
"""Findings with their evidence, all kinds together, but at least one of each kind."""
_MOST_LINES = 2
"""Lines of one text in the short report."""


def print_plan(console: Console, plan: Plan) -> None:
    """What is going to be run, and which goldens have no cell."""
    cases = {golden.manifest.case for golden in plan.goldens}
    writers = dict.fromkeys(golden.manifest.writer.jaxlib for golden in plan.goldens)
    readers = [plan.spelled.get(release, release.jaxlib) for release in plan.readers]
    console.print(
        f"{plural(len(plan.cells), 'cell')} as of {plan.as_of}: {plural(len(plan.goldens), 'golden')} of "
        f"{plural(len(cases), 'case')} by jaxlib {', '.join(writers)}, in {plural(len(readers), 'reader')}",
        highlight=False,
        markup=False,
    )
    console.print(f"readers by build date: {', '.join(readers)}", highlight=False, markup=False)
    for platform, left_out in plan.unexported.items():
        if left_out and len(plan.unexported) > 1:
            planned = len({cell.golden.id for cell in plan.cells if cell.platform == platform})
            console.print(
                f"{platform}: {plural(planned, 'golden')}; {left_out} not exported for it",
                highlight=False,
                markup=False,
            )
    for sentence in (plan.without_cells, *(f"warning: {warning}" for warning in plan.warnings)):
        if sentence:
            print_lines(console, wrapped(sentence, console.width, indent=2))


def print_report(
    console: Console,
    results: Sequence[Result],
    summary: Summary,
    folder: Path = RESULTS,
    *,
    full: bool = False,
    options: str = "",
) -> None:
    """The writers, the findings, what to run next, then the headline: one screen.

    `folder` is that of the results, and `options` are those of a run that was judged again: for the commands. `full`:
    every cell and every finding with all of its evidence.
    """
    collected = findings(results, summary, folder)
    if full:
        print_table(console, results)
        if costs := [*newest_costs(results)]:
            print_lines(console, ["", *costs])
        print_findings(console, collected)
        console.print()
    else:
        console.print()
        for number, line in enumerate(table_lines(results, console.width)):
            line.style = "" if number else "bold"
            console.print(line, soft_wrap=True)
        _print_short(console, collected, summary)
    print_lines(console, labelled_paragraphs(_next_steps(collected, folder, options, full=full), console.width))
    print_headline(console, summary)


def print_findings(console: Console, collected: Iterable[Finding]) -> None:
    """Each with its title, which is coloured, and with all of its evidence."""
    for finding in collected:
        console.print()
        _print_finding(console, finding.kind, finding.sentence, finding.details)


def print_headline(console: Console, summary: Summary) -> None:
    """The last lines: the headline, the counts, the exit code."""
    line, counts = headline(summary)
    print_lines(console, wrapped(line, console.width, indent=2), shown_exit_code(summary).facts.style)
    print_lines(console, wrapped(counts, console.width, indent=2))


def _print_short(console: Console, collected: Sequence[Finding], summary: Summary) -> None:
    """What decides the exit code, the first of each kind with evidence; then a line for each other kind."""
    kinds: dict[Kind, list[Finding]] = defaultdict(list)
    for finding in collected:
        kinds[finding.kind].append(finding)
    deciding = _deciding(kinds)
    for kind in deciding:
        most = max(1, MOST_SHOWN // len(deciding))
        for finding in kinds[kind][:most]:
            console.print()
            evidence = _evidence(finding, collected)
            _print_finding(console, kind, finding.brief or finding.sentence, evidence, _MOST_LINES)
        if rest := kinds[kind][most:]:
            print_lines(console, [f"{kind.title}  and {_counted(rest)}"], kind.style)
    console.print()
    for kind, of_kind in kinds.items():
        if kind not in deciding:
            about = of_kind if of_kind[0].cause else of_kind[1:]
            counted = _counted(about, summary) if about else ""
            text = counted if about == of_kind else " And ".join(filter(None, (of_kind[0].sentence, counted)))
            _print_finding(console, kind, text, (), 1)


def _deciding(kinds: Iterable[Kind]) -> list[Kind]:
    """The kinds of finding that decide the exit code of a run that has all of these."""
    kinds = list(dict.fromkeys(kinds))
    also = Judgement.OUTSIDE.facts.kind if FAIL_ON in kinds else None
    return [kind for kind in kinds if kind.exit_code or kind is also]


def _print_finding(
    console: Console, kind: Kind, sentence: str, details: Iterable[tuple[str, str]], most: int = 0
) -> None:
    """`most`: lines of one text; 0 is all."""
    lines = wrapped(sentence, console.width, f"{kind.title}  ", most=most and most + 2)
    first = Text(lines[0])
    first.stylize(kind.style, 0, len(kind.title))
    console.print(first, soft_wrap=True)
    print_lines(console, [*lines[1:], *labelled_paragraphs(details, console.width, most)])


def _evidence(finding: Finding, collected: Sequence[Finding]) -> list[tuple[str, str]]:
    """The details of which a screen has room for those of three findings.

    A known issue needs no message and no command; of a message the first line says most. The command of the worst is
    the last thing that the report says, and what to do about the others is in the full report.
    """
    details = dict(finding.details)
    if finding.results and (looks_like := finding.results[0].looks_like):
        details["looks like"] = looks_like
    if "known as" in details:
        labels = ["known as", "to do"]
    elif finding is collected[0]:
        labels = ["message", "looks like", "to do"]
    else:
        labels = ["message", "looks like", "reproduce"]
    return [
        (label, first_line(text) if label == "message" else text) for label in labels if (text := details.get(label))
    ]


def _counted(rest: Sequence[Finding], summary: Summary | None = None) -> str:
    """``4 causes, 12 cells``; with a summary, these are all findings of their kind."""
    cells = cells_of(rest, summary)
    return f"{plural(len(rest), 'cause')}, {cells}" if cells else f"{len(rest)} more"


def _next_steps(collected: Sequence[Finding], folder: Path, options: str, *, full: bool) -> list[tuple[str, str]]:
    """The commands to run next: the worst cell again, and the whole report."""
    named = named_folder(folder) + (f" {options}" if options else "")
    deciding = _deciding(finding.kind for finding in collected)
    worst = next((finding.cause for finding in collected if finding.cause and finding.kind in deciding), None)
    steps = [worst.reproduce] if worst and worst.reproduce else []
    steps.append(f"jaxexport report{named} --html report.html{'' if full else '  # or here: --full'}")
    return [("next", "\n".join(steps))]


def print_lines(console: Console, lines: Iterable[str], style: str = "") -> None:
    """Print lines that are wrapped already."""
    # As Text: in a plain string rich takes square brackets for markup. Already wrapped: rich must not do it again.
    for line in lines:
        console.print(Text(line, style=style), soft_wrap=True)
