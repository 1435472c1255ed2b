"""What came out, in sentences: both sides, both dates, the arithmetic, the evidence and the command to see it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from export_core.judge import Accepted, JudgedChange, Judgement, Result, Summary
from export_core.matrix import Verdict
from export_core.releases import Direction

_HAPPENED = {
    Verdict.PASS: "ran there with the writer's outputs",
    Verdict.COMPILED: "compiled there",
    Verdict.NUMERICS: "ran there with other numbers",
    Verdict.REFUSED: "was refused there",
    Verdict.ERROR: "failed there",
    Verdict.CRASH: "crashed there",
    Verdict.TIMEOUT: "did not come to an end there",
    Verdict.NOT_RUN: "was not run there",
}

_MOST_FLAKY = 20
_WORST_FIRST = (Verdict.NUMERICS, Verdict.CRASH, Verdict.TIMEOUT, Verdict.ERROR, Verdict.REFUSED, Verdict.NOT_RUN)


@dataclass(frozen=True)
class Finding:
    """One thing to tell. `rank` sorts findings, the worst lowest; `title` is what it is, `text` the sentences."""

    rank: tuple[int, int, str]
    title: str
    text: str


def findings(results: Sequence[Result], summary: Summary) -> list[Finding]:
    """Every broken promise on its own, what was not run and what happened outside the window by kind, what no cell covers. Worst first.

    Declared changes of custom calls come after that, each with what must hold as of that day; what was accepted on purpose is last.
    """
    found = [broken(result) for result in results if result.judgement is Judgement.BROKEN]
    found += [
        Finding((0, len(_WORST_FIRST), text), "BROKEN PROMISE", text)
        for change in summary.custom_call_changes
        for text in change.broken
    ]
    not_run = [result for result in results if result.judgement is Judgement.INCOMPLETE]
    found += [_grouped(group, "INCOMPLETE", 1) for group in _alike(not_run)]
    found += [Finding((1, len(_WORST_FIRST), text), "INCOMPLETE", text) for text in summary.uncovered]
    found += [Finding((2, number, ""), "STALE LIST", text) for number, text in enumerate(summary.stale)]
    found += _flaky([result for result in results if result.flaky])
    known = [result for result in results if result.judgement is Judgement.KNOWN]
    found += [_grouped(group, "known failure", 4) for group in _alike(known)]
    outside = [
        result for result in results if result.judgement is Judgement.OUTSIDE and result.verdict is not Verdict.REFUSED
    ]
    found += [_grouped(group, "outside the window", 5) for group in _alike(outside)]
    found += [
        Finding((6, number, ""), "custom call", changing(change))
        for number, change in enumerate(summary.custom_call_changes)
    ]
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
    return "\n".join((f"{each.what}: {_few(each.cases)}.", *_labelled("reason", each.reason)))


def broken(result: Result) -> Finding:
    """One broken promise, told whole."""
    return _single(result, "BROKEN PROMISE", 0)


def changing(change: JudgedChange) -> str:
    """A declared change of a custom call: where it stands, what must hold, what measures it, and when the old target may go."""
    nothing = f"nothing: no promised reader that has the change ran a golden of {change.old}"
    measured = f"{_few(change.measured)}: {change.passed} of {change.cells} promised cells pass in readers that have the change"
    delete = f"from {change.delete_from} on" if change.delete_from else "on a day that the release will tell"
    lines = [
        f"{change.old} → {change.new or 'nothing'}: {change.phase} ({change.why}).",
        *_labelled("must hold", "\n".join(change.must)),
        f"  measured   {measured if change.measured else nothing}",
        f"  delete     {change.old} {delete}, and the goldens that call it: {_few(change.goldens) or 'none'}",
    ]
    return "\n".join(lines)


def arithmetic(result: Result) -> str:
    """The window in numbers: ``reader built 155 days after the writer; promised for 180 days, until 2026-11-14``."""
    if result.direction is Direction.SAME:
        return f"reader and writer were built on the same day; promised until {result.promised_until}"
    after = "after" if result.direction is Direction.BACKWARD else "before"
    length = abs((result.promised_until - result.writer.built).days)
    edge = "until" if result.direction is Direction.BACKWARD else "back to"
    inside = "promised" if result.promised else "outside the promise"
    return (
        f"reader built {result.days} days {after} the writer; {inside}: {length} days, {edge} {result.promised_until}"
    )


def happened(result: Result) -> str:
    """What a cell came to, in one line: stage, verdict and the message's first line."""
    return f"stage {result.stage}: {first_line(result.message) or result.verdict}"


def first_line(text: str) -> str:
    """The first line of a message, cut to a length that a terminal bears."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 300 else line[:297] + "..."


def _single(result: Result, title: str, rank: int) -> Finding:
    how = "" if result.promised else ", outside the window: wrong numbers are never fine"
    lines = [
        f"{_sides(result)} {_HAPPENED[result.verdict]}{how}.",
        f"  window     {result.direction}: {arithmetic(result)}",
        f"  stage      {result.stage}",
        *_labelled("message", result.message or str(result.verdict)),
        *_labelled("stderr", _telling(result)),
        f"  reproduce  {result.reproduce}",
    ]
    return Finding((rank, _WORST_FIRST.index(result.verdict), result.golden), title, "\n".join(lines))


def _grouped(group: Sequence[Result], title: str, rank: int) -> Finding:
    first = group[0]
    if len(group) == 1:
        return _single(first, title, rank)
    goldens = sorted({result.golden for result in group})
    readers = sorted({(result.reader.built, result.reader.jaxlib) for result in group})
    lines = [
        f"{len(group)} cells {_HAPPENED[first.verdict].replace('was', 'were')}: {_few(goldens)} "
        f"in jaxlib {_few([version for _, version in readers])}.",
        f"  for one    {_sides(first).rstrip(',')}",
        f"  window     {first.direction}: {arithmetic(first)}",
        f"  stage      {first.stage}",
        *_labelled("message", first.message or str(first.verdict)),
        *_labelled("stderr", _telling(first)),
        f"  reproduce  {first.reproduce}",
    ]
    return Finding((rank, _WORST_FIRST.index(first.verdict), first.golden), title, "\n".join(lines))


def _sides(result: Result) -> str:
    return (
        f"{result.case}, written by jax {result.writer.jax} with jaxlib {result.writer.jaxlib} "
        f"(built {result.writer.built}) and read by jax {result.reader.jax} with jaxlib {result.reader.jaxlib} "
        f"(built {result.reader.built}) on {result.platform},"
    )


def _alike(results: Iterable[Result]) -> list[list[Result]]:
    """Results that tell the same story: same verdict, stage and message but for names and numbers in it."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        message = re.sub(r"'[^']*'|\d+|(?<=Function )\S+|(?<=function )\S+", "_", first_line(result.message))
        groups.setdefault((result.verdict, result.stage, message), []).append(result)
    return list(groups.values())


def _telling(result: Result) -> str:
    """The lines of stderr that say why, for errors whose Python exception does not."""
    if result.verdict is not Verdict.ERROR:
        return ""
    return "\n".join(line for line in result.stderr.splitlines() if "error" in line.lower())[:600]


def _labelled(label: str, text: str) -> list[str]:
    lines = text.strip().splitlines()
    return [f"  {label if number == 0 else '':<10} {line}" for number, line in enumerate(lines)]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
