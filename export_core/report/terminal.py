"""A run in a terminal: the plan; then at most one screen: the writers, the causes, what to run next, the headline."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from export_core.base.exit_code import ExitCode
from export_core.base.layout import labelled_paragraphs, wrapped
from export_core.base.text import few, first_line, plural, ranges
from export_core.judge import Judgement, Summary
from export_core.matrix.reproduce_command import with_more_time
from export_core.matrix.result import Cells
from export_core.matrix.verdicts import FAIL_ON, FindingKind, Verdict
from export_core.releases import Release
from export_core.report.document import Document, Finding, RunDifference, by_kind, cells_of
from export_core.report.run_tables import MapRelease, grid, map_releases, named_among, short_names
from export_core.report.wording import (
    LEGEND,
    cell_mark,
    command_of_plan,
    explain_command,
    judged_as,
    listed_briefly,
    lost_cells,
    only_in_jax,
)
from export_core.run.run import Run, command_to_continue

MOST_SHOWN = 3  # Findings with their evidence, all kinds together, but at least one of each kind.
_MOST_NAMED = 3  # Findings that a text with counts names.
_LINES_OF_NAMES = 2  # Lines of such a text.
_MOST_LINES = 3  # Lines of one text in the short report.
_TO_DO = "to do"  # The label of advice.


def print_report(console: Console, document: Document, *, full: bool = False, has_page: bool = False) -> None:
    """Print the report of a run: writers, findings, changes since a baseline, commands to run next, and the headline.

    With `full`, every cell is printed, and every finding with all of its evidence. With `has_page`, the commands do not
    include the one that writes the HTML page, since this command writes it.
    """
    comparison = document.comparison
    if full:
        print_cells(console, document.run)
        for lines in document.tables:
            print_lines(console, ["", *lines])
        print_findings(console, (*document.findings, *(comparison.findings if comparison else ())))
    else:
        console.print()
        for number, line in enumerate(table_lines(document.run, console.width)):
            line.style = "" if number else "bold"
            console.print(line, soft_wrap=True)
        _print_short(console, document)
        if comparison:
            _print_changes(console, comparison)
    console.print()
    print_lines(console, labelled_paragraphs(_next_steps(document, full=full, has_page=has_page), console.width))
    print_headline(console, document)
    if comparison:
        console.print(f"\n{comparison.line}", markup=False, highlight=False)


def print_findings(console: Console, collected: Iterable[Finding]) -> None:
    """Print each finding with its coloured title and all of its evidence."""
    for finding in collected:
        console.print()
        _print_finding(console, finding.kind, finding.sentence, finding.details)


def print_headline(console: Console, document: Document) -> None:
    """Print the last lines of a report: the headline, then the counts and the exit code."""
    line, counts = document.headline
    print_lines(console, wrapped(line, console.width, indent=2), document.look.facts.style)
    print_lines(console, wrapped(counts, console.width, indent=2))


def _print_short(console: Console, document: Document) -> None:
    """Print the first findings of each kind that decides the exit code, with evidence; then a line per other kind."""
    kinds = by_kind(document.findings)
    deciding = _deciding(kinds)
    most = _shares([len(kinds[kind]) for kind in deciding])
    advice = ""
    for kind, shown in zip(deciding, most, strict=True):
        for number, finding in enumerate(kinds[kind][:shown]):
            console.print()
            is_worst = finding is document.findings[0]
            evidence = dict(_evidence(finding, document.run.folder, is_worst=is_worst, is_first=not number))
            if _TO_DO in evidence:
                before, advice = advice, evidence[_TO_DO]
                evidence |= {_TO_DO: "as above"} if advice == before else {}
            _print_finding(console, kind, finding.brief or finding.sentence, evidence.items(), _MOST_LINES)
        rest = kinds[kind][shown:]
        if kind is Judgement.OWED.facts.kind:  # the policy names what has to run, so each cause is named too
            for finding in rest[:MOST_SHOWN]:
                line = wrapped(finding.brief or finding.sentence, console.width, f"{kind.title}  and ", most=1)
                print_lines(console, line, kind.style)
            rest = rest[MOST_SHOWN:]
        if rest:
            text = _counted(rest, document.run, console.width, least=1)
            print_lines(console, wrapped(text, console.width, f"{kind.title}  and "), kind.style)
    if len(deciding) < len(kinds):
        console.print()
    for kind, of_kind in kinds.items():
        if kind not in deciding:
            first = of_kind[0]
            about = of_kind if first.cause and not kind.level else of_kind[1:]
            sentence = "" if about is of_kind else first.brief or first.sentence
            counted = _counted(about, document.run, console.width, document.run.summary) if about else ""
            _print_finding(console, kind, " And ".join(filter(None, (sentence, counted))), (), 1)


def _shares(sizes: Sequence[int]) -> list[int]:
    """Return how many findings of each kind to show, given the number of findings of each kind.

    Each kind gets one. The first kinds get more until `MOST_SHOWN` are reached in all.
    """
    shares = [min(size, 1) for size in sizes]
    for place, size in enumerate(sizes):
        shares[place] += max(0, min(size - shares[place], MOST_SHOWN - sum(shares)))
    return shares


def _print_changes(console: Console, comparison: RunDifference) -> None:
    """Print what changed since a baseline: some cells that regressed or were fixed, and a line for each other kind."""
    print_findings(console, comparison.caveats)
    for kind, of_kind in by_kind(comparison.changes).items():
        most = MOST_SHOWN if kind.is_open else 0
        print_findings(console, of_kind[:most])
        if rest := of_kind[most:]:
            cells = plural(sum(len(finding.results) for finding in rest), "cell")
            text = rest[0].sentence if len(rest) == 1 else f"{'and ' if most else ''}{cells}: --full shows them"
            console.print()
            _print_finding(console, kind, text, (), 1)
    print_findings(console, comparison.others)


def _deciding(kinds: Iterable[FindingKind]) -> list[FindingKind]:
    """Return those of `kinds`, the kinds of a run's findings, that decide the exit code, each once."""
    kinds = list(dict.fromkeys(kinds))
    also = Judgement.OUTSIDE.facts.kind if FAIL_ON in kinds else None
    return [kind for kind in kinds if kind.exit_code or kind is also]


def _print_finding(
    console: Console, kind: FindingKind, sentence: str, details: Iterable[tuple[str, str]], most: int = 0
) -> None:
    """Print a finding. At most `most` lines of each text are printed; 0 prints all lines."""
    lines = wrapped(sentence, console.width, f"{kind.title}  ", most=most and most + 2)
    first = Text(lines[0])
    first.stylize(kind.style, 0, len(kind.title))
    console.print(first, soft_wrap=True)
    print_lines(console, [*lines[1:], *labelled_paragraphs(details, console.width, most)])


def _evidence(finding: Finding, folder: Path | None, *, is_worst: bool, is_first: bool) -> list[tuple[str, str]]:
    """Return the details of a finding for the short report, so few that three findings fit on a screen.

    For a known issue, they are its name and what to do. Otherwise they are the first line of the message, what the
    difference looks like, and a command: the report ends with that of the worst finding, and so it is left out there.
    Advice is added for the worst finding (`is_worst`), and for the first of a kind (`is_first`) whose kind has advice.
    It is also added for calls that only jax registers, and for cells that were not run. For other cells that fail, the
    command is `jaxexport explain`, which prints the advice. `folder` is the folder of the run.
    """
    details = dict(finding.details)
    if finding.results and (looks_like := finding.results[0].looks_like):
        details["looks like"] = looks_like
    # Where it is not said, a runtime's message may advise the opposite: a conversion that does not help.
    results = finding.results
    advised = bool(results) and (only_in_jax(results) or results[0].verdict is Verdict.NOT_RUN)
    has_advice = is_worst or (is_first and finding.kind.to_do) or advised
    labels = ["message", "looks like", *([_TO_DO] if has_advice else []), *([] if is_worst else ["reproduce"])]
    if "known as" in details:
        labels = ["known as", _TO_DO]
    elif not (has_advice or finding.kind.to_do) and finding.results and finding.results[0].verdict.fails:
        labels[-1] = "explain"  # which also prints the command that reproduces it
        details["explain"] = explain_command(finding.results[0], folder)
    return [
        (label, first_line(text) if label == "message" else text) for label in labels if (text := details.get(label))
    ]


def _counted(rest: Sequence[Finding], run: Run, width: int, summary: Summary | None = None, *, least: int = 0) -> str:
    """Return findings in brief, such as ``4 causes, 12 cells: t.a in 0.9.2, t.b in 0.11.0 and 2 more``.

    As many findings are named as fit on two lines of `width` columns, but at least `least` and at most `_MOST_NAMED`.
    Pass `summary` only if these are all findings of their kind.
    """
    if not (cells := cells_of(rest, summary)):
        return f"{len(rest)} more"
    counts, separator, others = f"{plural(len(rest), 'cause')}, {cells}".partition("; ")
    cases = short_names({result.case for result in run.results})
    # A change of a custom call breaks a promise too, and has no cell.
    names = [_name(finding, run, cases) for finding in rest if finding.results][:_MOST_NAMED]
    for named in range(len(names), min(least, len(names)) - 1, -1):
        more = f" and {len(rest) - named:,} more" if len(rest) > named else ""
        listed = f": {', '.join(names[:named])}{more}" if named else ""
        text = f"{counts}{listed}{separator}{others}"
        if len(wrapped(text, width, f"{rest[0].title}  and ")) <= _LINES_OF_NAMES:
            break
    return text


def _name(finding: Finding, run: Run, cases: Mapping[str, str]) -> str:
    """Return a name for a finding: its case and readers, its known issue, and the issue and end of a known failure.

    A finding about several cases with one known issue is named by the issue. `cases` has the short name of each case.
    """
    cells, cause = Cells(finding.results), finding.cause
    first, *others = dict.fromkeys(cases[result.case] for result in cells.results)
    also = f" and {plural(len(others), 'other case')}" if others else ""
    where = f" on {cause.platform}" if cause and cause.platform != "cpu" else ""
    issue = cause.upstream if cause else ""
    name = f"{issue if issue and others else first + also} in {named_among(cells.readers, run.readers)}"
    listed = listed_briefly(cells.results, run.policy, run.summary.as_of)
    facts = "; ".join(filter(None, ("" if others else issue, listed)))
    return f"{name}{where}{f' ({facts})' if facts else ''}"


def _next_steps(document: Document, *, full: bool, has_page: bool) -> list[tuple[str, str]]:
    """Return the commands to run next, as details with the label "next".

    They run the worst cell again, explain it, continue the run if some cells did not run, and show the whole report.
    """
    deciding = _deciding(finding.kind for finding in document.findings)
    finding = next((one for one in document.findings if one.cause and one.kind in deciding), None)
    worst = finding.cause if finding else None
    report = f"jaxexport report{judged_as(document.run)}"
    page = f"{report} --html report.html{'' if full else '  # or --full: every cell'}"
    if has_page:
        page = "" if full else f"{report} --full  # every cell"
    summary = document.run.summary
    never_ran = summary.unplanned and summary.exit_code == ExitCode.INCOMPLETE
    # What has changed since the run continues no run.
    not_run = Judgement.INCOMPLETE in summary.judgements and not document.run.changed
    steps = [command_to_continue(document.run)] if not_run else []
    steps += [command_of_plan(document.run)] if never_ran else []
    if finding and worst and worst.reproduce and worst.verdict is not Verdict.NOT_RUN:
        examples = [one for one in finding.results if one.reproduce == worst.reproduce and one.verdict.fails]
        why = [explain_command(example, document.run.folder) for example in examples[:1]]
        timed_out = worst.verdict is Verdict.TIMEOUT and not worst.upstream
        steps = [with_more_time(worst.reproduce) if timed_out else worst.reproduce, *why, *steps]
    steps = [*filter(None, (*steps, page))]
    return [("next", "\n".join(steps))] if steps else []


def print_lines(console: Console, lines: Iterable[str], style: str = "") -> None:
    """Print lines as they are, without wrapping them and without markup."""
    # As Text: in a plain string rich takes square brackets for markup. Already wrapped: rich must not do it again.
    for line in lines:
        console.print(Text(line, style=style), soft_wrap=True)


MOST_ROWS = 10
_GAP = "  "
_STAYS = "\N{NO-BREAK SPACE}"  # A space where the table must not end a line: between a number and its noun.
_SPACES = str.maketrans(dict.fromkeys("\t\n\v\f\r", " "))
"""The characters that wrapping turns into spaces. They are replaced before, so that colours keep their places."""


def table_lines(run: Run, width: int) -> list[Text]:
    """Return the coloured lines of the table of writers, whose third column is wrapped to fit into `width` columns.

    At most `MOST_ROWS` writers are shown, those with a cell that fails the run rather than others.
    """
    names, readers = map_releases(run.writers), map_releases(run.readers)
    rows: list[tuple[str, str, Text, Text]] = []
    bad_writers = set()
    newest_first = sorted(run.by_writer.items(), key=lambda group: group[0][0].date_order, reverse=True)
    for (writer, platform), cells in newest_first:
        name = f"{names[writer].name}{f' {platform}' if len(run.platforms) > 1 else ''}"
        promised, others = _promised_and_others(cells, readers)
        # A missing shard may have promised cells of this writer.
        none = Text("not known" if run.summary.missing_shards else "none")
        rows.append((name, str(len(cells.by_golden)), promised or none, others))
        if any(judgement.fails_run for judgement in cells.by_judgement):
            bad_writers.add(name)
    shown = sorted((name for name, *_ in rows), key=lambda name: name not in bad_writers)[:MOST_ROWS]
    rest = [name for name, *_ in rows if name not in shown]
    head = ("writer", "goldens", Text("promised readers"), Text("other readers"))
    table = [head, *(row for row in rows if row[0] in shown)]
    name_width, goldens, _, outside = (max(len(row[column]) for row in table) for column in range(4))
    indent = name_width + goldens + 2 * len(_GAP)
    middle = max(24, width - indent - outside - len(_GAP))
    wrapped_cells = [_wrapped(row[2], middle) for row in table]
    longest = max(len(line) for lines in wrapped_cells for line in lines)
    lines = []
    for row, parts in zip(table, wrapped_cells, strict=True):
        start, pad = f"{row[0]:<{name_width}}{_GAP}{row[1]:>{goldens}}{_GAP}", " " * (longest - len(parts[0]))
        lines.append(Text.assemble(start, parts[0], pad, _GAP, row[3]))
        lines[-1].rstrip()
        lines += [Text.assemble(" " * indent, part) for part in parts[1:]]
    if rest:
        bad = len(bad_writers.intersection(rest))
        broken = f"{bad} with broken or missing cells" if bad else "none with a broken cell"
        lines.append(Text(f"and {plural(len(rest), 'more writer')}, {broken}: {few(rest)}"))
    if lost := lost_cells(run.summary):
        lines += [Text.assemble((line, Judgement.INCOMPLETE.facts.style)) for line in wrapped(lost, width, indent=2)]
    return lines


def _promised_and_others(cells: Cells, names: Mapping[Release, MapRelease]) -> tuple[Text, Text]:
    """Return two texts about the cells of a writer: how promised cells ended in each reader, and how many others work.

    A text is empty if the writer has no such cell.
    """
    readers = [*dict.fromkeys(reader.in_words for reader in names.values())]
    promised: dict[str, Counter[Judgement]] = {reader: Counter() for reader in readers}
    outside: Counter[Judgement] = Counter()
    for result in cells.results:
        (promised[names[result.reader].in_words] if result.promised else outside)[result.judgement] += 1
    bad = [judgement for judgement in Judgement if judgement.facts.badness]
    alike = itertools.groupby(
        (reader for reader in readers if promised[reader]),
        lambda reader: [(promised[reader][judgement], judgement) for judgement in bad if promised[reader][judgement]],
    )
    parts = []
    for counts, versions in ((counts, list(versions)) for counts, versions in alike):
        each_of_several = f"{_STAYS}each" if len(versions) > 1 else ""
        texts = [Text(f"{count:,}{_STAYS}{name}{each_of_several}", name.facts.style) for count, name in counts]
        ended = Text(", ").join(texts or [Text("ok", Judgement.KEPT.facts.style)])
        parts.append(Text.assemble(f"{ranges(versions, readers).translate(_SPACES)}:{_STAYS}", ended))
    total = sum(outside.values())
    others = [Text(f"{outside[Judgement.BONUS]:,} of {total:,} ok")] if total else []
    others += [Text(f"{outside[name]:,} {name}", name.facts.style) for name in bad if name.fails_run and outside[name]]
    return Text("; ").join(parts), Text(", ").join(others)


def _wrapped(text: Text, width: int) -> list[Text]:
    """Wrap a coloured text into lines of at most `width` columns, which keep their colours."""
    lines, start = [], 0
    for plain in wrapped(text.plain, width, indent=0):
        start = text.plain.index(plain, start)
        lines.append(text[start : start + len(plain)])
        lines[-1].plain = plain.replace(_STAYS, " ")
        start += len(plain)
    return lines


def print_cells(console: Console, run: Run) -> None:
    """Print a paragraph for each golden: its outcome in each reader. Neighbours with the same outcome are a range."""
    names = {reader: release.in_words for reader, release in map_releases(run.readers).items()}
    writers = map_releases(run.writers)
    for writer, rows in grid(run).items():
        print_lines(console, [f"{writers[writer].name}  built {writer.built}"], "bold")
        for name, results in rows:
            parts = []
            for mark, cells in ((mark, list(cells)) for mark, cells in itertools.groupby(results, cell_mark)):
                readers = ranges([names[cell.reader] for cell in cells], [*names.values()]).translate(_SPACES)
                parts.append(Text.assemble((mark, cells[0].judgement.facts.style), f" {readers}"))
            platform = f" {results[0].platform}" if len(run.platforms) > 1 else ""
            text = Text.assemble(f"{name}{platform}: ".translate(_SPACES), Text("; ").join(parts))
            for number, line in enumerate(_wrapped(text, console.width - 6)):
                console.print(Text.assemble("      " if number else "  ", line), soft_wrap=True)
    for words in LEGEND.splitlines():
        print_lines(console, wrapped(words, console.width, indent=2), "bright_black")
