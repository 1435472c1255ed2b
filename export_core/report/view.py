"""A `Run` becomes a `Document`: a finding for each cause, with its cells, releases, evidence and what to do.

Media show the `sentence` and `details` of a finding as they have room for; its `text` has both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from export_core.base.phrases import few, plural
from export_core.judge import Accepted, JudgedChange, Judgement, Result, Summary, matching_entry
from export_core.judge.causes import Cause, is_own_writer
from export_core.judge.result import by_build_date, grouped
from export_core.judge.verdicts import (
    BROKEN_PROMISE,
    FAIL_ON,
    MISSING_RESULT,
    NOT_REPLAYABLE,
    NOTHING_PROMISED,
    NUMBERS_MOVED,
    STALE_LIST,
    VERDICTS,
    Kind,
)
from export_core.matrix import Verdict
from export_core.numbers.stored_noise import WHAT_TO_DO
from export_core.policy import Policy
from export_core.policy.known_issues import KnownIssue
from export_core.report.document import Comparison, Document, Finding, feature_findings, issue_of
from export_core.report.wording import (
    cell_sentence,
    error_size,
    evidence,
    first_lines,
    named_folder,
    ranges,
    why_command,
    writer_and_reader,
)
from export_core.run.run import Run

FLAKY = Kind("FLAKY", 3, "bold yellow", level="warning")
CUSTOM_CALL = Kind("custom call", 6)
NOT_COVERED = Kind("NOT COVERED", 7, "bold yellow", level="warning")
NOT_DECIDED, NO_NOISE, LITTLE_NOISE = Kind("NOT DECIDED", 8), Kind("NO NOISE", 8), Kind("LITTLE NOISE", 8)
ACCEPTED = Kind("accepted", 9)
_MEASURE_FIRST = (
    "Measure its noise first: `jaxexport goldens noise`. Without it, numbers are compared within a fixed tolerance, "
    "which fits no program."
)
_UNFIT = "This is no broken promise: the golden's own writer cannot replay it{}."


def view(run: Run, comparison: Comparison | None = None, folder: Path | None = None) -> Document:
    """A run as a document: its findings, the worst first, and what is different from an earlier run.

    Cells with one judgement and one cause are one finding; a refusal outside the window is expected, and none. That
    nothing was promised, what no cell covers, declared changes of custom calls, goldens without a cell, and what was
    accepted on purpose follow. `folder` is that of the results, for commands; without it they say DIR.
    """
    results, summary = run.results, run.summary
    collected = _by_cause(run, folder)
    collected += _of_the_run(BROKEN_PROMISE, [text for change in summary.custom_call_changes for text in change.broken])
    collected += feature_findings(run)
    collected += _of_the_run(FAIL_ON, [f"{text}." for text in summary.failed_on])
    collected += _of_the_run(MISSING_RESULT, summary.uncovered)
    collected += _of_the_run(NOTHING_PROMISED, [summary.unpromised] if summary.unpromised else [])
    collected += _of_the_run(STALE_LIST, summary.stale)
    collected += _flaky([result for result in results if result.flaky])
    collected += [_change(change) for change in summary.custom_call_changes]
    collected += _of_the_run(NOT_COVERED, [summary.without_cells] if summary.without_cells else [])
    collected += _undecided(summary.undecided)
    collected += _of_the_run(NO_NOISE, [_without_noise(summary.unmeasured)] if summary.unmeasured else [])
    if summary.inputs_only:
        collected += _of_the_run(LITTLE_NOISE, [_inputs_only(summary.inputs_only)])
    collected += [_accepted(accepted) for accepted in summary.accepted]
    return Document(run, sorted(collected, key=lambda finding: finding.rank), comparison, folder)


def capped(collected: Iterable[Finding], most: int) -> tuple[list[Finding], Counter[Kind]]:
    """At most so many findings of each kind, and how many more there are by kind: no kind hides another one."""
    shown: list[Finding] = []
    counts: Counter[Kind] = Counter()
    for finding in collected:
        counts[finding.kind] += 1
        if counts[finding.kind] <= most:
            shown.append(finding)
    return shown, Counter({kind: count - most for kind, count in counts.items() if count > most})


def cells_of(some: Sequence[Finding], summary: Summary | None = None) -> str:
    """``12 cells``: how many cells findings of a kind are about; empty where they are about none.

    With a summary, they are all of their kind. Of cells outside the window the counts of the run have more then, since
    refusals are no findings.
    """
    cells = sum(len(finding.results) for finding in some)
    is_outside = some[0].kind is Judgement.OUTSIDE.facts.kind
    outside = summary.judgements.get(Judgement.OUTSIDE, 0) if summary and is_outside else 0
    if outside > cells:
        return f"{cells:,} of {outside:,} cells; the others were refused, as expected"
    return f"{cells:,} cell{'' if cells == 1 else 's'}" if cells else ""


def broken_cell(result: Result, issues: Iterable[KnownIssue] = ()) -> Finding:
    """The finding for one cell that fails its run: a broken promise, if its reader is not a writer that failed.

    `issues` are the known upstream issues, of which it may show one.
    """
    kind = result.judgement.facts.kind or BROKEN_PROMISE
    if result.judgement.facts.works:
        return Finding(kind, 0, cell_sentence(result), tuple(evidence(result)), (result,))
    issue = next((issue for issue in issues if issue.id == result.upstream), None)
    unfit = is_own_writer(result) and issue is None
    sentence = " ".join(filter(None, (cell_sentence(result), _UNFIT.format("") if unfit else "")))
    details = (("known as", _issue_text(issue)), *evidence(result), ("to do", issue.todo if issue else ""))
    if unfit and result.judgement.is_breach:
        kind = NOT_REPLAYABLE
    elif kind is BROKEN_PROMISE and result.is_rounding and issue is None:
        kind, details = NUMBERS_MOVED, (*evidence(result), ("to do", _of_rounding(result)))
    return Finding(kind, 0, sentence, details, (result,))


def _by_cause(run: Run, folder: Path | None) -> list[Finding]:
    """A finding for each cause in the summary."""
    return [
        _cause_finding(cause, number, group, run, folder)
        for number, cause in enumerate(run.summary.causes)
        if (cause.judgement, cause.verdict) != (Judgement.OUTSIDE, Verdict.REFUSED)
        and (group := run.by_cause.get((cause.judgement, cause.id)))
    ]


def _cause_finding(cause: Cause, number: int, group: Sequence[Result], run: Run, folder: Path | None) -> Finding:
    kind = cause.judgement.facts.kind or BROKEN_PROMISE
    if cause.judgement is Judgement.BROKEN and cause.not_replayable:
        kind = NOT_REPLAYABLE
    elif cause.judgement is Judgement.BROKEN and cause.is_rounding:
        kind = NUMBERS_MOVED
    example = next((result for result in group if result.key == cause.example), group[0])
    issue = issue_of(cause, run.summary)
    because = f"{cause.change}." if cause.change else ""
    if kind is NOT_REPLAYABLE:
        because = _UNFIT.format("" if any(map(is_own_writer, group)) else " either")
    whole = cell_sentence(example) if cause.cells == 1 else _sentence(cause, run, f"{cause.cells:,} cells")
    sentence, brief = (" ".join(filter(None, (text, because))) for text in (whole, _sentence(cause, run)))
    fixed_tolerance = cause.verdict is Verdict.NUMERICS and example.max_noise_error is None
    todo = _MEASURE_FIRST if fixed_tolerance and example.golden in run.summary.unmeasured else ""
    details = [
        ("known as", _issue_text(issue)),
        ("listed", entry_text(example, run.policy)),
        ("cases", f"{len(cause.cases)}: {few(cause.cases)}" if len(cause.cases) > 1 else ""),
        *(_number_details(group, folder) if cause.verdict is Verdict.NUMERICS and cause.cells > 1 else ()),
        ("example", writer_and_reader(example) if cause.cells > 1 else ""),
        *evidence(example),
        ("to do", todo or (_of_rounding(example) if kind is NUMBERS_MOVED else _to_do(cause, issue, folder))),
    ]
    texts = tuple((label, text) for label, text in details if text.strip())
    return Finding(kind, number, sentence, texts, tuple(group), cause, brief)


def _sentence(cause: Cause, run: Run, subject: str = "") -> str:
    """How many cells, what happened to them, and in which releases; without a `subject`, of which cases."""
    writers, readers = by_build_date(run.writers), by_build_date(run.readers)
    # The phrases are in the singular: "was refused" becomes "were refused".
    phrase = VERDICTS[cause.verdict].phrase.replace("was ", "were " if cause.cells > 1 else "was ")
    platform = f" on {cause.platform}" if cause.platform != "cpu" else ""
    where = f"written by {ranges(cause.writers, writers)}, read by {ranges(cause.readers, readers)}"
    cases = cause.cases[0] if len(cause.cases) == 1 else f"{len(cause.cases):,} cases"
    subject = subject or (cases if cause.cells == 1 else f"{cause.cells:,} cells of {cases}")
    return f"{subject} {phrase} in stage {cause.stage}{platform}: {where}."


def _issue_text(issue: KnownIssue | None) -> str:
    if issue is None:
        return ""
    return ", ".join(filter(None, (issue.title, issue.issue, issue.mended_in and f"fixed in {issue.mended_in}")))


def entry_text(example: Result, policy: Policy) -> str:
    """What the list of known failures says of a cell: why, whose, and until when; empty where it is not listed."""
    entry = matching_entry(example, policy.known_failures) if example.judgement is Judgement.KNOWN else None
    if entry is None:
        return ""
    until = f"until {entry.expires}" if entry.expires else "permanent"
    return f"{entry.reason} (owner {entry.owner}, {entry.issue}, {until})"


def _to_do(cause: Cause, issue: KnownIssue | None, folder: Path | None) -> str:
    if issue:
        return issue.todo
    if not cause.judgement.is_urgent:
        return ""
    if cause.not_replayable:
        return NOT_REPLAYABLE.to_do
    step = cause.judgement.facts.next_step or VERDICTS[cause.verdict].next_step
    return step.format(named_folder(folder))


def _of_rounding(example: Result) -> str:
    """What to do about a cell whose difference looks like rounding."""
    commands = why_command("reduce", example, "-o", "reduced"), why_command("explain", example)
    return NUMBERS_MOVED.to_do.format(*commands)


def _number_details(group: Sequence[Result], folder: Path | None) -> list[tuple[str, str]]:
    """Each golden whose numbers are different, with its largest error, and whether its readers agree."""
    goldens = list(grouped(group, lambda result: result.golden).values())
    lines = first_lines([_golden_line(results) for results in goldens])
    return [("goldens", "\n".join(lines)), ("bits", _bits_sentence(goldens, folder))]


def _golden_line(results: Sequence[Result]) -> str:
    """A golden, the readers that differ, and the largest error of all."""
    readers = few(by_build_date(result.reader for result in results))
    worst = max(results, key=lambda result: (result.max_noise_error or 0.0, result.max_abs_error or 0.0))
    return f"{worst.golden} in jaxlib {readers}: {error_size(worst.max_noise_error, worst.max_abs_error)}"


def _bits_sentence(goldens: Sequence[Sequence[Result]], folder: Path | None) -> str:
    """Whether the readers that differ from the writer agree with each other; empty where the results do not say."""
    digests = [{result.outputs for result in results} for results in goldens]
    if any("" in outputs for outputs in digests):
        return ""
    if again := sum(len(outputs) > 1 for outputs in digests):
        see = f"see `jaxexport trend{named_folder(folder)} --numbers`"
        return f"those of {plural(again, 'golden')} change again among these readers: {see}"
    return "the same in all these readers of a golden"


def _of_the_run(kind: Kind, texts: Sequence[str]) -> list[Finding]:
    """Findings about the run, in the order given, after those about cells."""
    return [Finding(kind, 1_000_000 + number, text) for number, text in enumerate(texts)]


def _flaky(results: Sequence[Result]) -> list[Finding]:
    """All cells that had another verdict last time, in one finding with a line for each."""
    if not results:
        return []
    sentence = (
        f"{plural(len(results), 'cell')} had another verdict last time, with the same content. The judgement is that "
        "of this run's verdict."
    )
    cells = [
        f"{result.golden} in jaxlib {result.reader.jaxlib} on {result.platform}: {result.verdict}, {result.flaky}"
        for result in results
    ]
    return [Finding(FLAKY, 0, sentence, (("cells", "\n".join(first_lines(cells))),), tuple(results))]


def _undecided(outputs: Sequence[str]) -> list[Finding]:
    """All outputs that cannot tell right from wrong, in one finding with a line for each."""
    if not outputs:
        return []
    details = (("outputs", "\n".join(first_lines(outputs, "summary.json"))), ("to do", WHAT_TO_DO))
    return [Finding(NOT_DECIDED, 0, "Some stored numbers would not show an error.", details)]


def _without_noise(goldens: Sequence[str]) -> str:
    return f"{plural(len(goldens), 'golden')} without noise: {few(goldens)}. `jaxexport goldens noise` measures it."


def _inputs_only(goldens: Sequence[str]) -> str:
    return (
        f"{plural(len(goldens), 'golden')} with noise of inputs only: {few(goldens)}. Where numbers come from "
        "constants inside, a correct reader may look broken. `jaxexport goldens noise --again` measures it anew; "
        "golden.yaml says where what is inside could not be moved."
    )


def _change(change: JudgedChange) -> Finding:
    """A declared change of a custom call: phase, what must hold, what measures it, when the old target may go."""
    measured = f"nothing: no promised reader that has the change ran a golden of {change.old}"
    if change.measured:
        passed = f"{change.passed} of {change.cells} promised cells pass in readers that have the change"
        measured = f"{few(change.measured)}: {passed}"
    day = f"from {change.delete_from} on" if change.delete_from else "on a day that depends on the release"
    goldens = few(change.goldens) or "none"
    details = (
        ("must hold", "\n".join(change.must)),
        ("measured", measured),
        ("delete", f"{change.old} {day}, and the goldens that call it: {goldens}"),
    )
    return Finding(CUSTOM_CALL, 0, f"{change.old} → {change.new or 'nothing'}: {change.phase} ({change.why}).", details)


def _accepted(accepted: Accepted) -> Finding:
    return Finding(ACCEPTED, 0, f"{accepted.what}: {few(accepted.cases)}.", (("reason", accepted.reason),))
