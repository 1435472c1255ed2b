"""The findings of a run, in sentences: writer and reader, dates and arithmetic, evidence, the command to reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from export_core.judge import Accepted, JudgedChange, Judgement, Result, Summary
from export_core.judge.drift import DifferingReaders, differing_readers
from export_core.judge.result import ReaderOf, by_build_date
from export_core.matrix import Verdict
from export_core.phrases import few, plural
from export_core.report.wording import (
    VERDICT_PHRASES,
    cell_sentence,
    error_size,
    evidence,
    group_similar,
    is_own_writer,
    labelled_lines,
    release_name,
    writer_and_reader,
)
from export_core.runs.baseline import WORST_FIRST

_MOST_LINES = 20
_UNFIT = "This is no broken promise: the golden's own writer cannot replay it{}."


@dataclass(frozen=True)
class Finding:
    """One thing that a report says. `rank` sorts findings, the worst lowest; `title` is its kind, `text` the sentences.

    `results` are the cells that it is about: none where it is about the run.
    """

    rank: tuple[int, int, str]
    title: str
    text: str
    results: tuple[Result, ...] = ()


def findings(results: Sequence[Result], summary: Summary) -> list[Finding]:
    """All findings of a run, the worst first.

    Each broken promise is a finding of its own, except that numbers which changed in one release are one. Cells that
    were not run, that fail as the list of known failures says, or that fail outside the window are grouped where they
    are similar; a refusal outside the window is expected, and no finding. That nothing was promised, what no cell
    covers, declared changes of custom calls, goldens without a cell, and what was accepted on purpose follow.
    """
    by_judgement = {
        judgement: [result for result in results if result.judgement is judgement] for judgement in Judgement
    }
    outside = [result for result in by_judgement[Judgement.OUTSIDE] if result.verdict is not Verdict.REFUSED]
    failed = (*by_judgement[Judgement.BROKEN], *by_judgement[Judgement.KNOWN])
    unfit = {result.golden for result in failed if is_own_writer(result)}
    collected = _changed_numbers(results, unfit)
    changed = {result.key for finding in collected for result in finding.results}
    # Never grouped: each other broken promise is shown with its own dates and command.
    collected += [
        broken_cell(result, unfit=result.golden in unfit)
        for result in by_judgement[Judgement.BROKEN]
        if result.key not in changed
    ]
    collected += [
        Finding((0, len(WORST_FIRST), text), "BROKEN PROMISE", text)
        for change in summary.custom_call_changes
        for text in change.broken
    ]
    collected += _grouped(by_judgement[Judgement.INCOMPLETE], "INCOMPLETE", 1)
    collected += [Finding((1, len(WORST_FIRST), text), "INCOMPLETE", text) for text in summary.uncovered]
    if summary.unpromised:
        collected.append(Finding((1, len(WORST_FIRST) + 1, ""), "NOTHING PROMISED", summary.unpromised))
    collected += _of_the_run(2, "STALE LIST", summary.stale)
    collected += _of_the_run(3, "FLAKY", _flaky([result for result in results if result.flaky]))
    collected += _grouped(by_judgement[Judgement.KNOWN], "known failure", 4)
    collected += _grouped(outside, "outside the window", 5)
    collected += _of_the_run(6, "custom call", [_change_text(change) for change in summary.custom_call_changes])
    collected += _of_the_run(7, "NOT COVERED", [summary.without_cells] if summary.without_cells else [])
    collected += _of_the_run(8, "NOT DECIDED", [f"{few(summary.undecided)}."] if summary.undecided else [])
    collected += _of_the_run(9, "accepted", [_accepted_text(accepted) for accepted in summary.accepted])
    return sorted(collected, key=lambda finding: finding.rank)


def broken_cell(result: Result, *, unfit: bool = False) -> Finding:
    """The finding for one broken cell: a broken promise, if its reader differs from a writer that worked.

    `unfit`: the golden's own writer cannot replay it either, in another cell of the run.
    """
    if not (unfit or is_own_writer(result)):
        return _cell_finding(result, "BROKEN PROMISE", 0)
    reason = _UNFIT.format("" if is_own_writer(result) else " either")
    return _cell_finding(result, "NOT REPLAYABLE", 0, reason)


def _changed_numbers(results: Sequence[Result], unfit: set[str]) -> list[Finding]:
    """A finding for each release in which the numbers of some golden changed, and for each golden that none reproduces.

    A golden of `unfit` is not replayable whatever the release.
    """
    groups: dict[tuple[object, ...], list[DifferingReaders]] = {}
    for differing in differing_readers(results):
        first, before, after = differing.results[0], differing.before, differing.after
        release = (first.reader if before else None, after)
        alone = first.golden if first.golden in unfit or not (before or after) else ""
        if broken := tuple(result for result in differing.results if result.judgement is Judgement.BROKEN):
            place = (first.platform, first.device, alone, *release)
            groups.setdefault(place, []).append(replace(differing, results=broken))
    # One cell is shown as every other broken cell is.
    several = [group for group in groups.values() if len(group) > 1 or len(group[0].results) > 1]
    return [_change_finding(group, unfit=group[0].results[0].golden in unfit) for group in several]


def _change_finding(group: Sequence[DifferingReaders], *, unfit: bool) -> Finding:
    """`unfit`: the own writer of the golden differs too."""
    results = [result for differing in group for result in differing.results]
    worst = max(results, key=lambda result: result.max_noise_error or 0.0)
    reason = _UNFIT.format("") if unfit else f"{_change_sentence(group)}."
    lines = [
        f"{len(results)} cells {VERDICT_PHRASES[worst.verdict]}. {reason}",
        *labelled_lines(
            [
                ("goldens", "\n".join(_first_lines([_golden_line(differing.results) for differing in group]))),
                ("bits", _bits_sentence(group)),
                ("example", writer_and_reader(worst)),
                *evidence(worst),
            ]
        ),
    ]
    title = "NOT REPLAYABLE" if unfit else "BROKEN PROMISE"
    rank = (0, WORST_FIRST.index(worst.verdict), worst.golden)
    return Finding(rank, title, "\n".join(lines), tuple(results))


def _change_sentence(group: Sequence[DifferingReaders]) -> str:
    """In which release the numbers changed, without a full stop."""
    before = _names([differing.before for differing in group if differing.before])
    after = _names([differing.after for differing in group if differing.after])
    if before:
        since = release_name(group[0].results[0].reader)
        return f"Numbers changed in {since}, after {before}" + (f", and changed back in {after}" if after else "")
    if after:
        return f"Numbers changed in {after}: readers before it differ from the writer"
    return "No reader agrees with the writer"


def _names(releases: Sequence[ReaderOf]) -> str:
    in_order = sorted(set(releases), key=lambda release: release.date_order)
    return few([release_name(release) for release in in_order])


def _golden_line(results: Sequence[Result]) -> str:
    """A golden, the readers that differ, and the largest error of all."""
    readers = few(by_build_date(result.reader for result in results))
    worst = max(results, key=lambda result: (result.max_noise_error or 0.0, result.max_abs_error or 0.0))
    return f"{worst.golden} in jaxlib {readers}: {error_size(worst.max_noise_error, worst.max_abs_error)}"


def _bits_sentence(group: Sequence[DifferingReaders]) -> str:
    """Whether the readers that differ from the writer agree with each other; empty where the results do not say."""
    digests = [{result.outputs for result in differing.results} for differing in group]
    if any("" in outputs for outputs in digests):
        return ""
    if again := sum(len(outputs) > 1 for outputs in digests):
        return f"those of {plural(again, 'golden')} change again among these readers: see `jaxexport trend --numbers`"
    return "the same in all these readers of a golden"


def _first_lines(lines: Sequence[str]) -> list[str]:
    rest = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"and {rest} more, in results.jsonl"] if rest > 0 else [])]


def _of_the_run(rank: int, title: str, texts: Sequence[str]) -> list[Finding]:
    """Findings about the run, in the order given."""
    return [Finding((rank, number, ""), title, text) for number, text in enumerate(texts)]


def _cell_finding(result: Result, title: str, rank: int, reason: str = "") -> Finding:
    sentences = " ".join(filter(None, (cell_sentence(result), reason)))
    text = "\n".join((sentences, *labelled_lines(evidence(result))))
    return Finding((rank, WORST_FIRST.index(result.verdict), result.golden), title, text, (result,))


def _grouped(results: Sequence[Result], title: str, rank: int) -> list[Finding]:
    """One finding for each group of similar results, with the evidence of its first."""
    groups = group_similar(results)
    return [
        _cell_finding(group[0], title, rank) if len(group) == 1 else _group_finding(group, title, rank)
        for group in groups
    ]


def _group_finding(group: Sequence[Result], title: str, rank: int) -> Finding:
    first = group[0]
    lines = [
        # The phrases are in the singular: "was refused" becomes "were refused".
        f"{len(group)} cells {VERDICT_PHRASES[first.verdict].replace('was', 'were')}: {goldens_and_readers(group)}.",
        *labelled_lines([("example", writer_and_reader(first)), *evidence(first)]),
    ]
    return Finding((rank, WORST_FIRST.index(first.verdict), first.golden), title, "\n".join(lines), tuple(group))


def goldens_and_readers(results: Sequence[Result]) -> str:
    """The goldens and the readers of several cells, or the first of many."""
    goldens = [golden for *_, golden in sorted({result.golden_order for result in results})]
    return f"{few(goldens)} in jaxlib {few(by_build_date(result.reader for result in results))}"


def _flaky(results: Sequence[Result]) -> list[str]:
    """All cells that had another verdict last time, in one text with a line for each."""
    if not results:
        return []
    lines = [
        f"{plural(len(results), 'cell')} had another verdict last time, with the same content. The judgement is that "
        "of this run's verdict."
    ]
    cells = [
        f"{result.golden} in jaxlib {result.reader.jaxlib} on {result.platform}: {result.verdict}, {result.flaky}"
        for result in results
    ]
    return ["\n".join((*lines, *(f"  {line}" for line in _first_lines(cells))))]


def _change_text(change: JudgedChange) -> str:
    """A declared change of a custom call: phase, what must hold, what measures it, when the old target may go."""
    measured = f"nothing: no promised reader that has the change ran a golden of {change.old}"
    if change.measured:
        passed = f"{change.passed} of {change.cells} promised cells pass in readers that have the change"
        measured = f"{few(change.measured)}: {passed}"
    day = f"from {change.delete_from} on" if change.delete_from else "on a day that depends on the release"
    goldens = few(change.goldens) or "none"
    return "\n".join(
        (
            f"{change.old} → {change.new or 'nothing'}: {change.phase} ({change.why}).",
            *labelled_lines([("must hold", "\n".join(change.must)), ("measured", measured)]),
            *labelled_lines([("delete", f"{change.old} {day}, and the goldens that call it: {goldens}")]),
        )
    )


def _accepted_text(accepted: Accepted) -> str:
    return "\n".join((f"{accepted.what}: {few(accepted.cases)}.", *labelled_lines([("reason", accepted.reason)])))
