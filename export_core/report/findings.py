"""What came out, in sentences: both sides, both dates, the arithmetic, the evidence and the command to see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from export_core.judge import Accepted, JudgedChange, Judgement, Result, Summary
from export_core.matrix import Verdict
from export_core.report.words import HAPPENED, alike, evidence, few, labelled, listed, sentence, sides
from export_core.runs.baseline import WORST_FIRST

_MOST_FLAKY = 20


@dataclass(frozen=True)
class Finding:
    """One thing to tell. `rank` sorts findings, the worst lowest; `title` is what it is, `text` the sentences.

    `results` are the cells that it is about: none where it is about the run.
    """

    rank: tuple[int, int, str]
    title: str
    text: str
    results: tuple[Result, ...] = ()


def findings(results: Sequence[Result], summary: Summary) -> list[Finding]:
    """Every broken promise on its own, what was not run and what happened outside the window by kind, what no cell covers. Worst first.

    Declared changes of custom calls come after that, each with what must hold as of that day; goldens without a cell and what was
    accepted on purpose are last.
    """
    found = [broken(result) for result in results if result.judgement is Judgement.BROKEN]
    found += [
        Finding((0, len(WORST_FIRST), text), "BROKEN PROMISE", text)
        for change in summary.custom_call_changes
        for text in change.broken
    ]
    not_run = [result for result in results if result.judgement is Judgement.INCOMPLETE]
    found += [_grouped(group, "INCOMPLETE", 1) for group in alike(not_run)]
    found += [Finding((1, len(WORST_FIRST), text), "INCOMPLETE", text) for text in summary.uncovered]
    found += [Finding((2, number, ""), "STALE LIST", text) for number, text in enumerate(summary.stale)]
    found += _flaky([result for result in results if result.flaky])
    known = [result for result in results if result.judgement is Judgement.KNOWN]
    found += [_grouped(group, "known failure", 4) for group in alike(known)]
    outside = [
        result for result in results if result.judgement is Judgement.OUTSIDE and result.verdict is not Verdict.REFUSED
    ]
    found += [_grouped(group, "outside the window", 5) for group in alike(outside)]
    found += [
        Finding((6, number, ""), "custom call", changing(change))
        for number, change in enumerate(summary.custom_call_changes)
    ]
    found += [Finding((7, -1, ""), "NOT COVERED", summary.without_cells)] if summary.without_cells else []
    found += [Finding((7, number, ""), "accepted", _accepted(each)) for number, each in enumerate(summary.accepted)]
    return sorted(found, key=lambda finding: finding.rank)


def _flaky(results: Sequence[Result]) -> list[Finding]:
    """All cells whose verdict was another one the last time, a line for each."""
    if not results:
        return []
    what = "1 cell" if len(results) == 1 else f"{len(results)} cells"
    lines = [
        f"  {result.golden} in jaxlib {result.reader.jaxlib} on {result.platform}: {result.verdict}, {result.flaky}"
        for result in results[:_MOST_FLAKY]
    ]
    lines += [f"  and {len(results) - _MOST_FLAKY} more, in results.jsonl"] if len(results) > _MOST_FLAKY else []
    head = f"{what} came out otherwise than the last time with the same content. What was seen now is what is judged."
    return [Finding((3, 0, ""), "FLAKY", "\n".join((head, *lines)))]


def _accepted(each: Accepted) -> str:
    return "\n".join((f"{each.what}: {few(each.cases)}.", *labelled("reason", each.reason)))


def broken(result: Result) -> Finding:
    """One broken promise, told whole."""
    return _single(result, "BROKEN PROMISE", 0)


def changing(change: JudgedChange) -> str:
    """A declared change of a custom call: where it stands, what must hold, what measures it, and when the old target may go."""
    nothing = f"nothing: no promised reader that has the change ran a golden of {change.old}"
    measured = (
        f"{few(change.measured)}: {change.passed} of {change.cells} promised cells pass in readers that have the change"
    )
    delete = f"from {change.delete_from} on" if change.delete_from else "on a day that the release will tell"
    lines = [
        f"{change.old} → {change.new or 'nothing'}: {change.phase} ({change.why}).",
        *labelled("must hold", "\n".join(change.must)),
        f"  measured   {measured if change.measured else nothing}",
        f"  delete     {change.old} {delete}, and the goldens that call it: {few(change.goldens) or 'none'}",
    ]
    return "\n".join(lines)


def _single(result: Result, title: str, rank: int) -> Finding:
    text = "\n".join((sentence(result), *listed(evidence(result))))
    return Finding((rank, WORST_FIRST.index(result.verdict), result.golden), title, text, (result,))


def _grouped(group: Sequence[Result], title: str, rank: int) -> Finding:
    first = group[0]
    if len(group) == 1:
        return _single(first, title, rank)
    goldens = sorted({result.golden for result in group})
    readers = sorted({(result.reader.built, result.reader.jaxlib) for result in group})
    lines = [
        f"{len(group)} cells {HAPPENED[first.verdict].replace('was', 'were')}: {few(goldens)} "
        f"in jaxlib {few([version for _, version in readers])}.",
        *listed([("for one", sides(first).rstrip(",")), *evidence(first)]),
    ]
    return Finding((rank, WORST_FIRST.index(first.verdict), first.golden), title, "\n".join(lines), tuple(group))
