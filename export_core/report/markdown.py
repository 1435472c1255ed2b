"""A run as Markdown for a pull request or the summary of a CI job: headline, causes, a small map, folded details."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

from export_core.base.layout import labelled_lines
from export_core.base.text import first_line, for_html, for_markdown, ranges, shortened, shown
from export_core.judge import Judgement, Summary
from export_core.matrix.result import Cells, grouped
from export_core.matrix.verdicts import DEVICE_LIMIT, NOT_REPLAYABLE, NUMBERS_MOVED, OTHER_PROCESSOR, FindingKind
from export_core.readers.errors import without_tries
from export_core.report.annotations import source_line
from export_core.report.document import Document, Finding, RunDifference, by_kind, capped, cells_of, issue_of
from export_core.report.run_tables import PARTLY, MapRelease, MapRow, ReleaseMap, Square, named_among, release_map
from export_core.report.wording import began_and_ended, counts_line, first_sentence, judged_as, lost_cells, owed_to
from export_core.run.run import Run

MOST_BYTES = 65_500
"""GitHub's limit for a comment, 65,536 characters, without one line that marks it as ours. The
summary of a step may have 1 MiB: one document is fit for both."""

_MOST_OF_A_KIND = 10
_LONGEST_SECTION = 3_000
_LONGEST_TABLE = 16_000
_LONGEST_MAP = 20_000
_LONGEST_LINE = 2_000
_LONGEST_WORDS = 120
_LONGEST_SENTENCE = 500  # What to do is at the end of a sentence about the run.
_RESERVED_BYTES = 1_024  # Room for the last paragraph, which says what was left out.
_AROUND_BYTES = 100  # The markup that folds a section together with others of its kind.
_ON_SCREEN = (12, 18)  # Rows and columns of a map that is not folded.

_URL = re.compile(r"https?://[\w.~:/?#@!$&'*+,;=%-]+")


def markdown_text(document: Document) -> str:
    """Return a run's report as Markdown of at most `MOST_BYTES` bytes. Its end says how many findings are left out.

    If the run was compared with an earlier run, the changes come before the causes. The lines of tests are looked up in
    the current folder.
    """
    summary, comparison = document.run.summary, document.comparison
    changes = comparison.changes if comparison else []
    findings = [*changes, *(comparison.others if comparison else ()), *document.findings]
    named, left_out = capped(findings, _MOST_OF_A_KIND)
    sections = [
        (finding, _section(finding, _test(finding, summary), opened=not number and _has_own_line(finding.kind)))
        for number, finding in enumerate(named)
    ]
    head = [_head(document), *(_since(comparison) if comparison else ())]
    squares = markdown_map(release_map(document.run), release_map(comparison.before) if comparison else None)
    # Half a table is of no use: the table is whole or left out.
    overview = [_causes(document), *([squares] if squares and len(squares.encode()) <= _LONGEST_MAP else [])]
    overview += [f"**{lost}**\n"] if (lost := lost_cells(summary)) else []
    room = MOST_BYTES - _RESERVED_BYTES - sum(len(part.encode()) + 1 for part in (*head, *overview))
    fitting, cut = _fitting(sections, room)
    kinds_of_changes = {finding.kind for finding in changes}
    of_changes = sum(finding.kind in kinds_of_changes for finding, _ in fitting)
    counted = {kind: cells_of(of_kind, summary) for kind, of_kind in by_kind(findings).items()}
    changed, others = (_folded(part, counted) for part in (fitting[:of_changes], fitting[of_changes:]))
    parts = [*head, *changed, *overview, *others]
    if counts := counts_line({kind.title: count for kind, count in (cut + left_out).items()}):
        page = f"`jaxexport report{judged_as(document.run)} --html report.html`"
        parts.append(f"Not shown here: {counts}. {page} has everything.\n")
    return "\n".join(parts)


def _head(document: Document) -> str:
    """Return the first paragraph: the headline, the counts, and the identity of the run."""
    line, counts = document.headline
    identity = document.run.summary.identity
    commit = f"{' at' if identity.project else 'commit'} {identity.commit[:12]}" if identity.commit else ""
    policy = f"policy {identity.policy_sha256[:12]}" if identity.policy_sha256 else ""
    tool = f"jaxexport {identity.tool}" if identity.tool else ""
    facts = [
        for_markdown(shortened(text, 200))
        for text in (f"{identity.project}{commit}".strip(), tool, identity.machine, policy)
    ]
    facts.insert(1, _link("CI job", identity.ci_url) if identity.ci_url else "")
    lines = [for_markdown(counts), " · ".join(filter(None, facts))]
    symbol = document.look.facts.symbol
    return f"### {symbol} {for_markdown(shortened(line, _LONGEST_LINE))}\n\n{'<br>'.join(filter(None, lines))}\n"


def _since(comparison: RunDifference) -> Iterator[str]:
    yield f"**{for_markdown(comparison.line)}**\n"
    if comparison.caveats:
        caveats = [shortened(caveat.sentence.removesuffix("."), _LONGEST_LINE) for caveat in comparison.caveats[:10]]
        yield "\n".join(f"- {for_markdown(caveat)}." for caveat in caveats) + "\n"


def _causes(document: Document) -> str:
    """Return a Markdown table of the findings that somebody has to look at, the worst first; "" if there are none."""
    named, left_out = capped([finding for finding in document.findings if finding.kind.level], _MOST_OF_A_KIND)
    rows, cut = _fitting([(finding, _row(finding, document.run)) for finding in named], _LONGEST_TABLE)
    lines = ["| | what | cells | case | written by | read by | when |", "|---|---|---:|---|---|---|---|"]
    lines += [row for _, row in rows]
    lines += [f"| | {count:,} more: {kind.title} | | | | | |" for kind, count in (cut + left_out).items()]
    return "\n".join(lines) + "\n" if named else ""


def _row(finding: Finding, run: Run) -> str:
    cause, summary = finding.cause, run.summary
    if cause is None:
        return f"| ❗ | {_what_happened(finding, summary)} | | | | | |"
    case = cause.cases[0] if len(cause.cases) == 1 else f"{len(cause.cases):,} cases"
    cells = Cells(finding.results)
    written, read = named_among(cells.writers, run.writers), named_among(cells.readers, run.readers)
    when = ", ".join(f"{word} {jaxlib}" for word, jaxlib in began_and_ended(cause))
    texts = (case, written, read, when)
    words = " | ".join(for_markdown(shortened(text, 2 * _LONGEST_WORDS)) for text in texts)
    what = f"{cause.judgement.facts.symbol} | {_what_happened(finding, summary)}"
    return f"| {what} | {cause.cells:,} | {words} |"


def _what_happened(finding: Finding, summary: Summary) -> str:
    """Return the table cell that says what a finding is: verdict and stage, then the known issue or the message."""
    cause = finding.cause
    if cause is None:
        return _with_addresses(
            f"{finding.title}: {shortened(finding.sentence, _LONGEST_SENTENCE)}", for_markdown, "`{}`"
        )
    issue = issue_of(cause, summary)
    words = f"{cause.verdict} in stage {cause.stage}{'' if cause.platform == 'cpu' else f' on {cause.platform}'}"
    if owed := owed_to(finding.results):
        words += f", {owed}"
    if finding.kind in (NOT_REPLAYABLE, OTHER_PROCESSOR):
        words += ", not replayable by its own writer either"
    if finding.kind is DEVICE_LIMIT:
        words += ", in its own writer too"
    if finding.kind is NUMBERS_MOVED:
        words += ", looks like rounding"
    message = for_markdown(
        shortened(issue.title if issue else without_tries(first_line(cause.message)), _LONGEST_WORDS)
    )
    # GitHub's own redirect: a comment with the plain URL would be announced in the upstream issue.
    url = issue.link.replace("https://github.com/", "https://redirect.github.com/") if issue else ""
    to_do = first_sentence(dict(finding.details).get("to do", "")).replace("`", "")
    advice = f"<br>To do: {for_markdown(shortened(to_do, 2 * _LONGEST_WORDS))}" if to_do else ""
    return f"**{for_markdown(words)}**: {message}{f' ({_link(issue.id, url)})' if issue and url else ''}{advice}"


def _test(finding: Finding, summary: Summary) -> str:
    """Return a link to the test of a finding's example cell; "" if the run has no URL of its source files."""
    cause = finding.cause
    test = next((result.test for result in finding.results if cause and result.key == cause.example), "")
    if not test or not summary.identity.source_url:
        return ""
    place = source_line(test)
    file = f"{place.uri}#L{place.line}" if place else quote(test.partition("::")[0])
    return f"Test: {_link(test, f'{summary.identity.source_url}/{file}')}\n"


def _section(finding: Finding, test: str, *, opened: bool) -> str:
    """Return a finding as Markdown. Unless `opened` is true, only its sentence is visible until a reader opens it."""
    symbol = f"{finding.cause.judgement.facts.symbol} " if finding.cause else ""
    title = f"{symbol}<b>{for_html(finding.title)}</b>: {_sentence_in_html(finding)}"
    text = shortened(shown("\n".join(labelled_lines(finding.details))), _LONGEST_SECTION)
    # A fence longer than any run of backquotes in the text: nothing in it can end the block.
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    block = [f"{fence}text", text, f"{fence}\n"] if text else []
    if not block and not test:  # a fold would be empty
        return f"{title}\n"
    lines = (f"<details{' open' if opened else ''}><summary>{title}</summary>\n", test, *block, "</details>\n")
    return "\n".join(filter(None, lines))


def _sentence_in_html(finding: Finding) -> str:
    """Return the sentence of a finding as one line of HTML, shortened since messages may be long."""
    if finding.results:
        return for_html(shortened(finding.sentence, 500))
    return _with_addresses(shortened(finding.sentence, _LONGEST_SENTENCE), for_html, "<code>{}</code>")


def _with_addresses(text: str, escape: Callable[[str], str], code: str) -> str:
    """Return an escaped text in which web addresses are formatted as code, so that they are not turned into links.

    `escape` escapes the rest of the text. `code` is the format of code, in which ``{}`` stands for the address.
    """
    parts, end = [], 0
    for match in _URL.finditer(text):
        address = match[0].rstrip(".,;:!?')*&")
        parts += [
            escape(text[end : match.start()]),
            code.format(address.replace("&", "&amp;") if "<" in code else address),
        ]
        end = match.start() + len(address)
    return "".join([*parts, escape(text[end:])])


def _fitting(texts: Sequence[tuple[Finding, str]], room: int) -> tuple[list[tuple[Finding, str]], Counter[FindingKind]]:
    """Return the sections that fit into `room` bytes, in their order, and how many of each kind do not fit.

    The first section of each kind is chosen before the second section of any kind.
    """
    turns: Counter[FindingKind] = Counter()
    order = []
    for number, (finding, text) in enumerate(texts):
        turns[finding.kind] += 1
        order.append((turns[finding.kind], number, len(text.encode()) + _AROUND_BYTES))
    fitting = set()
    for _, number, size in sorted(order):
        if size <= room:
            fitting.add(number)
            room -= size
    left_out = Counter(finding.kind for number, (finding, _) in enumerate(texts) if number not in fitting)
    return [text for number, text in enumerate(texts) if number in fitting], left_out


def _folded(sections: Sequence[tuple[Finding, str]], counted: dict[FindingKind, str]) -> Iterator[str]:
    """Yield the sections of findings as text, in their order. Findings of a minor kind are folded into one section.

    A kind is minor if `_has_own_line` is false. `counted` has the number of cells of each kind, in words.
    """
    kinds = grouped(sections, lambda section: section[0].kind)
    for finding, text in sections:
        if _has_own_line(finding.kind):
            yield text
        elif of_kind := kinds.pop(finding.kind, None):
            count = f": {counted[finding.kind]}" if counted[finding.kind] else ""
            inside = "\n".join(text for _, text in of_kind)
            yield f"<details><summary>{for_html(finding.title)}{count}</summary>\n\n{inside}\n</details>\n"


def _has_own_line(kind: FindingKind) -> bool:
    """Return whether each finding of this kind has its own section; findings of other kinds are folded into one."""
    return bool(kind.level) or kind.is_open


def _link(text: str, url: str) -> str:
    """Return a Markdown link, or only its text if `url` is not a URL, since results may have any text there."""
    return f"[{for_markdown(text)}](<{url}>)" if _URL.fullmatch(url) else for_markdown(text)


def markdown_map(drawn: ReleaseMap, before: ReleaseMap | None = None) -> str:
    """Return the map of a run as a Markdown table with its legend; "" if the run has no cell.

    With the map of an earlier run (`before`), changed squares show both runs. Neighbouring readers with equal squares
    share a column, whose numbers are the cells in each single reader. A large map is folded.
    """
    if not drawn.rows:
        return ""
    earlier = {(row.platform, row.writer): row.squares for row in before.rows} if before else {}
    rows = drawn.rows

    def square(row: MapRow, reader: MapRelease, *, several: bool = False) -> str:
        return _square(row.squares.get(reader), earlier.get((row.platform, row.writer), {}).get(reader), several)

    def looks(reader: MapRelease) -> list[str]:
        return [reader.release.family, *(square(row, reader) for row in rows)]

    columns = [list(run) for _, run in itertools.groupby(drawn.readers, looks)]
    ordered = [reader.in_words for reader in drawn.readers]
    titles = [for_markdown(ranges([reader.in_words for reader in run], ordered)) for run in columns]
    lines = ["Goldens by writer (down), in readers by build date (across):", ""]
    lines += [f"| | {' | '.join(titles)} |", f"|---|{':-:|' * len(titles)}"]
    for row in rows:
        name = row.writer.name + (f" on {row.platform}" if len(drawn.platforms) > 1 else "")
        squares = [square(row, run[0], several=len(run) > 1) for run in columns]
        lines.append(f"| {for_markdown(name)} | {' | '.join(squares)} |")
    shown = [square for run in (drawn, before) if run for row in run.rows for square in row.squares.values()]
    seen = {square.worst for square in shown}
    legend = [f"{name.facts.symbol} {name}: {name.facts.meaning}" for name in Judgement if name in seen]
    in_part = next((square for row in rows for square in row.squares.values() if square.look == PARTLY), None)
    if in_part:
        failing, cells = in_part.counted or 0, sum(in_part.counts.values())
        legend.append(f"{failing:,}/{cells:,}: {failing:,} of {cells:,} cells {'fails' if failing == 1 else 'fail'}")
    if any(len(square.counted_judgements) > 1 for square in shown):
        legend.append("a number counts all cells that fail the run")
    text = "\n".join([*lines, "", " · ".join(legend)]) + "\n"
    is_small = len(rows) <= _ON_SCREEN[0] and len(columns) <= _ON_SCREEN[1]
    return text if is_small else f"<details><summary>Map of writers and readers</summary>\n\n{text}\n</details>\n"


def _square(now: Square | None, then: Square | None, several: bool) -> str:
    if not now:
        return ""
    worst, count, number = now.worst, now.counted, ""
    if now.look == PARTLY:
        return f"{worst.facts.symbol} {count:,}/{sum(now.counts.values()):,}"
    if count is not None:
        was = (then.counted if then and then.worst is worst else None) or count
        number = f" {was:,}→{count:,}" if was != count else f" {count:,}"
        number += " each" if several else ""
    before = f"{then.worst.facts.symbol}→" if then and then.worst is not worst else ""
    return f"{before}{worst.facts.symbol}{number}"
