"""The wording that all formats share: a cell with its dates and evidence, similar cells, the headline of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from export_core.environments.placement import Mode
from export_core.escaping import plain_text
from export_core.judge import Judgement, Result, Summary
from export_core.judge.result import ReaderOf, WriterOf
from export_core.matrix import Verdict
from export_core.phrases import plural
from export_core.releases import Direction

VERDICT_PHRASES = {
    Verdict.PASS: "ran and agrees with the writer's outputs",
    Verdict.COMPILED: "compiled",
    Verdict.NUMERICS: "ran with different numbers",
    Verdict.REFUSED: "was refused",
    Verdict.ERROR: "failed",
    Verdict.CRASH: "crashed",
    Verdict.TIMEOUT: "timed out",
    Verdict.NOT_RUN: "was not run",
}
"""A verdict as the predicate of a sentence about a cell."""

VERDICT_MARKS = {
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

HEADLINES = {
    0: ("KEPT", "every promised cell ran and agrees"),
    1: ("BROKEN", "at least one promise is broken"),
    3: ("INCOMPLETE", "not every planned cell has a result that counts"),
    4: ("STALE LIST", "the list of known failures is no longer true"),
}
"""What an exit code says of a run."""

JUDGEMENT_MEANINGS = {
    Judgement.BROKEN: "promised, and it fails; or wrong numbers on any date",
    Judgement.INCOMPLETE: "has no result",
    Judgement.KNOWN: "promised, and it fails exactly as the list of known failures says",
    Judgement.OUTSIDE: "not promised, and it fails",
    Judgement.BONUS: "not promised, and it works",
    Judgement.KEPT: "promised, and it works",
}
"""What a judgement says, the worst first."""

LEGEND = (
    "ok agrees · num different numbers · ref refused · err error · sig killed by a signal · time timed out · - not "
    "run\n"
    "comp compiled only: nothing ran\n"
    "[..] outside the window · ! broken promise · k known failure · ~ flaky: had another verdict last time"
)

_LONGEST_LINE = 300


def first_line(text: str) -> str:
    """The first line of a message, cut to a length that is readable in a terminal."""
    line = plain_text(text).strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 3] + "..."


def labelled_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Texts with their labels, each label before the first line of its text. Empty texts are left out."""
    return [
        f"  {label if number == 0 else '':<10} {line}".rstrip()
        for label, text in pairs
        for number, line in enumerate(plain_text(text).strip().splitlines())
    ]


def headline(summary: Summary) -> tuple[str, str]:
    """What an exit code means for this run, and the line with the counts, the date and the exit code."""
    name, meaning = HEADLINES[summary.exit_code]
    if summary.exit_code == 0 and not summary.verdicts.get(Verdict.PASS):
        meaning = "no promised cell fails"  # what is only compiled does not agree
    if promised_nothing(summary):
        name, meaning = "NOTHING PROMISED", "every cell is outside its window"
    # Incomplete outranks broken as an exit code; the headline must not hide what is broken.
    if summary.exit_code == 3 and (broken := _broken_promises(summary)):
        meaning += f"; and {broken} promise{'s are' if broken > 1 else ' is'} broken"
    if summary.exit_code in (1, 3) and summary.stale:
        meaning += "; and the list of known failures is no longer true"
    if compiled := summary.verdicts.get(Verdict.COMPILED):
        meaning += f", {compiled} compiled only"
    if known := summary.judgements.get(Judgement.KNOWN):
        meaning += f", except for {plural(known, 'known failure')}"
    if summary.flaky:
        meaning += f", {summary.flaky} flaky"
    if summary.partial:
        meaning += f"; partial: {plain_text(summary.partial)}"
    counts = counts_line(summary.judgements) or "no cell"
    return (
        f"{name}: {meaning}.",
        f"{summary.results} of {summary.planned} planned cells: {counts}. "
        f"As of {summary.as_of}, {summary.seconds:.0f} s, exit code {summary.exit_code}.",
    )


def promised_nothing(summary: Summary) -> bool:
    """Whether the first thing to say of a run is that no promise was tested: nothing is broken, missing or stale."""
    missing = summary.uncovered or summary.judgements.get(Judgement.INCOMPLETE)
    return bool(summary.unpromised) and summary.exit_code in (0, 3) and not missing


def counts_line(counts: dict[str, int]) -> str:
    """``6 kept, 2 bonus``."""
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _broken_promises(summary: Summary) -> int:
    """How many cells, and goldens that call a new target too early, break a promise."""
    early = sum(len(change.broken) for change in summary.custom_call_changes)
    return summary.judgements.get(Judgement.BROKEN, 0) + early


def cell_mark(result: Result) -> str:
    """A cell in a table: the verdict in a word, in brackets outside the window, with a mark for some judgements."""
    mark = VERDICT_MARKS[result.verdict]
    if result.verdict is Verdict.CRASH and result.signal:
        mark = f"sig{result.signal}"
    # Brackets before the marks for judgements: wrong numbers outside the window are `[num]!`.
    if not result.promised:
        mark = f"[{mark}]"
    mark += {Judgement.BROKEN: "!", Judgement.KNOWN: "k"}.get(result.judgement, "")
    return mark + ("~" if result.flaky else "")


def window_line(result: Result) -> str:
    """The direction, and the arithmetic of the window."""
    return f"{result.direction}: {window_arithmetic(result)}"


def window_arithmetic(result: Result) -> str:
    """The window in numbers: ``reader built 155 days after the writer; promised: 180 days, until 2026-11-14``."""
    if result.direction is Direction.SAME:
        return f"reader and writer were built on the same day; promised until {result.promised_until}"
    after = "after" if result.direction is Direction.BACKWARD else "before"
    # From the dates, not the policy: a result contains no lengths of windows.
    length = abs((result.promised_until - result.writer.built).days)
    edge = "until" if result.direction is Direction.BACKWARD else "back to"
    inside = "promised" if result.promised else "outside the promise"
    return (
        f"reader built {result.days} days {after} the writer; {inside}: {length} days, {edge} {result.promised_until}"
    )


def outcome_line(result: Result) -> str:
    """What happened to a cell, in one line: its stage, then the first line of the message or the verdict."""
    return f"stage {result.stage}: {first_line(result.message) or result.verdict}"


def writer_and_reader(result: Result) -> str:
    """The case, the release that wrote it and the one that read it. Without a full stop: a sentence may go on."""
    writer, reader = _release(result.writer), _release(result.reader)
    return f"{result.case}, written by {writer} and read by {reader} on {result.platform}"


def is_own_writer(result: Result) -> bool:
    """Whether the reader of a cell is the writer of its golden: the same release on the same platform."""
    writer, reader = result.writer, result.reader
    return (writer.jax, writer.jaxlib, writer.platform) == (reader.jax, reader.jaxlib, result.platform)


def cell_sentence(result: Result) -> str:
    """The case, its writer and reader, and what happened."""
    suffix = ""
    if result.verdict is Verdict.NUMERICS and not result.promised:
        suffix = ", which breaks the promise outside the window too"
    return f"{writer_and_reader(result)}, {VERDICT_PHRASES[result.verdict]}{suffix}."


def _release(side: WriterOf | ReaderOf) -> str:
    return f"jax {side.jax} with jaxlib {side.jaxlib} (built {side.built})"


def release_name(release: ReaderOf) -> str:
    """``jaxlib 0.11.2 with jax 0.12.0.1 (built 2026-09-17)``; jax only where it has another number."""
    jax = "" if release.jax == release.jaxlib else f" with jax {release.jax}"
    return f"jaxlib {release.jaxlib}{jax} (built {release.built})"


def error_size(noise: float | None, absolute: float | None) -> str:
    """How large an error is: in units of the writer's noise where it was measured, else as it is."""
    if noise is not None:
        return f"{noise:.3g} x noise"
    return "not finite" if absolute is None else f"off by {absolute:.2g}"


def evidence(result: Result, *, all_of_stderr: bool = False) -> list[tuple[str, str]]:
    """What a cell is judged by, with labels: window, stage, message, stderr, and the command that reproduces it.

    `all_of_stderr`: all that the result has of it, not only the lines that explain an error.
    """
    return [
        ("window", window_line(result)),
        ("stage", str(result.stage)),
        *([("mode", "compiled only: nothing ran")] if result.mode is Mode.COMPILE else []),
        ("message", result.message or str(result.verdict)),
        ("device", ", ".join(filter(None, (result.device, result.driver)))),
        ("foreseen", result.foreseen),
        ("flaky", result.flaky),
        ("stderr", result.stderr if all_of_stderr else _error_lines(result)),
        ("reproduce", result.reproduce),
    ]


def _error_lines(result: Result) -> str:
    """The lines of stderr that say why, for errors whose Python exception does not."""
    if result.verdict is not Verdict.ERROR:
        return ""
    return "\n".join(line for line in result.stderr.splitlines() if "error" in line.lower())[:600]


def group_similar(results: Iterable[Result]) -> list[list[Result]]:
    """Results grouped by platform, verdict, stage and message, where names and numbers in a message do not count."""
    groups: dict[tuple[str, str, str, str], list[Result]] = {}
    for result in results:
        # Quoted names, figures and the name of the function are what one error has different in each case.
        message = re.sub(r"'[^']*'|\d+|(?<=Function )\S+|(?<=function )\S+", "_", first_line(result.message))
        groups.setdefault((result.platform, result.verdict, result.stage, message), []).append(result)
    return list(groups.values())
