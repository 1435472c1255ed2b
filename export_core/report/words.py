"""What is said of one cell, or of cells that tell the same story, wherever it is shown: sides, dates, arithmetic, evidence, command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from export_core.environments.placement import Mode
from export_core.judge import Judgement, Result, Summary
from export_core.judge.result import ReaderOf, WriterOf
from export_core.matrix import Verdict
from export_core.releases import Direction

HAPPENED = {
    Verdict.PASS: "ran there with the writer's outputs",
    Verdict.COMPILED: "compiled there",
    Verdict.NUMERICS: "ran there with other numbers",
    Verdict.REFUSED: "was refused there",
    Verdict.ERROR: "failed there",
    Verdict.CRASH: "crashed there",
    Verdict.TIMEOUT: "did not come to an end there",
    Verdict.NOT_RUN: "was not run there",
}

SHORT = {
    Verdict.PASS: "ok",
    Verdict.COMPILED: "comp",
    Verdict.NUMERICS: "num",
    Verdict.REFUSED: "ref",
    Verdict.ERROR: "err",
    Verdict.CRASH: "sig",
    Verdict.TIMEOUT: "time",
    Verdict.NOT_RUN: "-",
}
"""A verdict where a table has room for a word."""

HEADLINE = {
    0: ("KEPT", "every promised cell ran and agrees"),
    1: ("BROKEN", "at least one promise is broken"),
    3: ("INCOMPLETE", "not every planned cell has a result that counts"),
    4: ("STALE LIST", "the list of known failures is no longer true"),
}
"""What an exit code says of a run."""

MEANING = {
    Judgement.BROKEN: "promised, and it fails; or wrong numbers on any day",
    Judgement.INCOMPLETE: "has no result",
    Judgement.KNOWN: "promised, and it fails just as the list of known failures says",
    Judgement.OUTSIDE: "not promised, and it fails",
    Judgement.BONUS: "not promised, and it works",
    Judgement.KEPT: "promised, and it works",
}
"""What a judgement says, the worst first."""

LEGEND = (
    "ok agrees · num other numbers · ref refused · err error · sig died by a signal · time too long · - not run\n"
    "comp compiled for a device that is not here\n"
    "[..] outside the window · ! broken promise · k known failure · ~ flaky: another verdict the last time"
)

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_UNSEEN = re.compile(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Text that shows itself and does nothing else: no colours of a terminal, no control characters; line breaks stay.

    What native libraries print is part of a finding, and may hold anything. What is left is legal in XML 1.0.
    """
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def headline(summary: Summary) -> tuple[str, str]:
    """The line that says it all, and the line with the counts, the day and the exit code."""
    name, meaning = HEADLINE[summary.exit_code]
    if summary.exit_code == 3 and (broken := promises_broken(summary)):
        meaning += f"; and {broken} promise{'s are' if broken > 1 else ' is'} broken"
    if summary.exit_code in (1, 3) and summary.stale:
        meaning += "; and the list of known failures is no longer true"
    if compiled := summary.verdicts.get(Verdict.COMPILED):
        meaning += f", {compiled} compiled only"
    if known := summary.judgements.get(Judgement.KNOWN):
        meaning += f", {known} known failures apart"
    if summary.flaky:
        meaning += f", {summary.flaky} flaky"
    counts = ", ".join(f"{count} {name}" for name, count in summary.judgements.items()) or "no cell"
    return (
        f"{name}: {meaning}.",
        f"{summary.results} of {summary.planned} planned cells: {counts}. "
        f"As of {summary.as_of}, {summary.seconds:.0f} s, exit code {summary.exit_code}.",
    )


def promises_broken(summary: Summary) -> int:
    """How many cells, and goldens that call a new target too early, break a promise."""
    return summary.judgements.get(Judgement.BROKEN, 0) + sum(len(each.broken) for each in summary.custom_call_changes)


def mark(result: Result) -> str:
    """A cell in a table: the verdict in a word, in brackets outside the window, with the judgement where it stands out."""
    text = f"sig{result.signal}" if result.verdict is Verdict.CRASH and result.signal else SHORT[result.verdict]
    if not result.promised:
        text = f"[{text}]"
    text += {Judgement.BROKEN: "!", Judgement.KNOWN: "k"}.get(result.judgement, "")
    return text + ("~" if result.flaky else "")


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


def window(result: Result) -> str:
    """The direction, and the window in numbers."""
    return f"{result.direction}: {arithmetic(result)}"


def happened(result: Result) -> str:
    """What a cell came to, in one line: stage, verdict and the message's first line."""
    return f"stage {result.stage}: {first_line(result.message) or result.verdict}"


def first_line(text: str) -> str:
    """The first line of a message, cut to a length that a terminal bears."""
    line = plain(text).strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 300 else line[:297] + "..."


def release(who: WriterOf | ReaderOf) -> str:
    """A writer or reader with its day."""
    return f"jax {who.jax} with jaxlib {who.jaxlib} (built {who.built})"


def sides(result: Result) -> str:
    """The case, who wrote it and who read it."""
    return (
        f"{result.case}, written by {release(result.writer)} and read by {release(result.reader)} on {result.platform},"
    )


def sentence(result: Result) -> str:
    """Both sides, and what happened."""
    how = ""
    if result.verdict is Verdict.NUMERICS and not result.promised:
        how = ", outside the window: wrong numbers are never fine"
    return f"{sides(result)} {HAPPENED[result.verdict]}{how}."


def evidence(result: Result, *, whole: bool = False) -> list[tuple[str, str]]:
    """What a cell is judged by, each with its label: window, stage, message, stderr, and the command to see it.

    `whole`: all that is kept of stderr, not only the lines that say why an error came.
    """
    return [
        ("window", window(result)),
        ("stage", str(result.stage)),
        *([("mode", "compiled only, for a device that is not here")] if result.mode is Mode.COMPILE else []),
        ("message", result.message or str(result.verdict)),
        ("device", ", ".join(filter(None, (result.device, result.driver)))),
        ("foreseen", result.foreseen),
        ("flaky", result.flaky),
        ("stderr", result.stderr if whole else _telling(result)),
        ("reproduce", result.reproduce),
    ]


def labelled(label: str, text: str) -> list[str]:
    """Lines with a label before the first; none where the text says nothing."""
    lines = plain(text).strip().splitlines()
    return [f"  {label if number == 0 else '':<10} {line}".rstrip() for number, line in enumerate(lines)]


def listed(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of labelled texts."""
    return [line for label, text in pairs for line in labelled(label, text)]


def alike(results: Iterable[Result]) -> list[list[Result]]:
    """Results that tell the same story: same platform, verdict, stage and message but for names and numbers in it."""
    groups: dict[tuple[str, str, str, str], list[Result]] = {}
    for result in results:
        message = re.sub(r"'[^']*'|\d+|(?<=Function )\S+|(?<=function )\S+", "_", first_line(result.message))
        groups.setdefault((result.platform, result.verdict, result.stage, message), []).append(result)
    return list(groups.values())


def few(names: Sequence[str]) -> str:
    """Names, or the first of many."""
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _telling(result: Result) -> str:
    """The lines of stderr that say why, for errors whose Python exception does not."""
    if result.verdict is not Verdict.ERROR:
        return ""
    return "\n".join(line for line in result.stderr.splitlines() if "error" in line.lower())[:600]
