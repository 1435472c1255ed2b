"""What the first replay of a golden says, in its own writer and before it is stored: whether it may be stored."""

from __future__ import annotations

from dataclasses import dataclass

from export_core.base.layout import labelled_lines
from export_core.judge import Judgement, Result
from export_core.judge.verdicts import VERDICTS
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.report.wording import evidence, outcome_line

_GENERAL_ADVICE = (
    "Each call must fit the exported shapes and constraints, the first one too; tree nodes, effects and custom calls "
    "of your own must be registered by a module that the golden holds (register)."
)
_COMPARATOR_ADVICE = (
    "A comparator of your own takes (expected, actual), lists of NumPy arrays, and returns None where they agree, else "
    "text that says what is wrong."
)


@dataclass(frozen=True)
class FirstReplay:
    """What a golden's writer made of it; all is empty where it replays it.

    `problem` is why it may not be stored; `crash` says how the writer's process died; `unknown` is why nobody knows.
    """

    problem: str = ""
    crash: str = ""
    unknown: str = ""


def first_replay(result: Result) -> FirstReplay:
    """Judge the replay of a golden by its own writer, before it is stored.

    A crash is the release's fault: that golden may be stored, since other releases may run it. A refusal, an error or
    other numbers are a fault of what was exported. So is a timeout: a golden that takes longer than a cell may would be
    broken in each reader.
    """
    if result.verdict is Verdict.CRASH:  # also one that is listed as a known failure
        return FirstReplay(crash=outcome_line(result))
    if result.verdict.works or result.judgement is Judgement.KNOWN:
        return FirstReplay()
    if result.verdict is Verdict.NOT_RUN and result.stage is Stage.ENVIRONMENT:
        return FirstReplay(unknown=result.message)
    unrun = result.verdict is Verdict.NOT_RUN
    fault = "Nobody knows what a reader would do" if unrun else "The fault is in what was exported, not in a release"
    advice = VERDICTS[result.verdict].advice or ("" if unrun else _GENERAL_ADVICE)
    if unrun and result.stage is Stage.COMPARE:
        advice = _COMPARATOR_ADVICE
    shown = [pair for pair in evidence(result) if pair[0] in ("stage", "message", "stderr")]
    lines = (
        f"{result.golden}: its own writer cannot replay this golden in a new process: it "
        f"{VERDICTS[result.verdict].phrase}. {fault}: nothing was stored.",
        *labelled_lines(shown),
        advice,
    )
    return FirstReplay(problem="\n".join(line for line in lines if line))
