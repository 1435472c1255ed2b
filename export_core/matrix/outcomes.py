"""What does a worker's reply say of a cell: how far it came, what happened, or that the machine failed and not the artifact?"""

from __future__ import annotations

import signal
from pathlib import Path

from export_core.comparing.compare import Difference
from export_core.comparing.errors import CompareError
from export_core.environments.errors import InfrastructureFault
from export_core.environments.placement import Mode
from export_core.goldens import GoldenError
from export_core.matrix.cell import Cell, Outcome, Verdict
from export_core.matrix.checks import checked
from export_core.matrix.driverless import find_driverless
from export_core.matrix.limits import GIB, Limits
from export_core.matrix.refusals import find_refusal
from export_core.releases import Calendar
from export_core.tolerances import Tolerances
from export_core.worker.protocol import Reply, Stage

FROM_OUTSIDE = frozenset({1, 2, 9, 15})
"""SIGHUP, SIGINT, SIGKILL and SIGTERM, which Windows lacks in part: somebody sends them, such as the system when memory is short."""


def outcome_of(
    cell: Cell, reply: Reply, outputs: Path, *, calendar: Calendar, tolerances: Tolerances, limits: Limits
) -> Outcome:
    """What a reply that was no fault says of a cell, whose outputs lie in a folder.

    Raises `InfrastructureFault` where they do not, or cannot be read.
    """
    stage = reply.stage

    def ended(stage: Stage, verdict: Verdict, message: str = "", difference: Difference | None = None) -> Outcome:
        return Outcome(
            *(cell, stage, verdict, message, reply.signal, reply.stderr, difference, reply.seconds),
            device=reply.device,
            driver=reply.driver,
        )

    if stage is Stage.ENVIRONMENT:  # there is no device to try it on: nothing was asked of the artifact
        said = f"{reply.type}: {reply.message}" if reply.type else reply.message
        said = said or (signal_name(reply.signal) if reply.signal else reply.end)
        return ended(stage, Verdict.NOT_RUN, f"jaxlib {cell.reader.jaxlib} has no {cell.platform} here: {said}")
    at = f"{reply.check}: " if reply.check else ""
    if reply.end == "ok":
        try:
            found = checked(cell, reply, outputs, tolerances)
        except GoldenError as error:  # outputs that are gone, or cannot be read
            raise InfrastructureFault(str(error)) from error
        except CompareError as error:  # a comparator that fails says nothing about the reader
            return ended(Stage.COMPARE, Verdict.NOT_RUN, str(error))
        verdict = Verdict.PASS if not found.problem else Verdict.ERROR if found.difference.ok else Verdict.NUMERICS
        if cell.mode is Mode.COMPILE:
            return ended(Stage.COMPILE, Verdict.COMPILED if verdict is Verdict.PASS else verdict, found.problem)
        return ended(Stage.COMPARE, verdict, found.problem, found.difference)
    if reply.end == "error":
        text = reply.message or ""
        if stage is Stage.READ:  # a module cannot be imported: nothing was asked of the artifact
            return ended(stage, Verdict.NOT_RUN, text or reply.type or "")
        lacks = find_driverless(cell.platform, stage, text, cell.reader.built) if cell.mode is Mode.COMPILE else None
        if lacks:
            return ended(stage, Verdict.NOT_RUN, f"{at}{lacks.meaning}: {text}")
        jax_release = calendar.jax.get(cell.reader.jax)
        jax_built = jax_release.built if jax_release else cell.reader.built
        refusal = find_refusal(stage, reply.type or "", text, jax_built)
        if refusal:
            return ended(stage, Verdict.REFUSED, f"{at}{reply.type}: {text}")
        return ended(stage, Verdict.ERROR, f"{at}{reply.type}: {text}{_targets(cell, stage, text)}")
    if reply.end == "timeout":
        return ended(stage, Verdict.TIMEOUT, f"{at}still in stage {stage} after {limits.timeout:g} s, killed")
    if reply.end == "memory":
        text = f"{at}killed: it used more than the limit of {limits.memory / GIB:.1f} GiB"
        return ended(stage, Verdict.CRASH, text)
    text = reply.message or f"died by {signal_name(reply.signal)}"
    return ended(stage, Verdict.CRASH, f"{at}{text}{_targets(cell, stage, text)}")


def _targets(cell: Cell, stage: Stage, text: str) -> str:
    """The custom-call targets of what does not compile, where the message names none: that of a kernel which cannot be read does not."""
    targets = cell.golden.manifest.custom_calls
    if stage is not Stage.COMPILE or not targets or any(target in text for target in targets):
        return ""
    return f"\nIts custom calls: {', '.join(targets)}."


def fault_of(reply: Reply) -> str:
    """What of the machine, and not of the artifact, brought this reply about; empty where it was the artifact."""
    if reply.end == "fault":
        return f"{reply.type}: {reply.message}" if reply.type else reply.message or ""
    if reply.signal in FROM_OUTSIDE:
        return f"killed from outside, by {signal_name(reply.signal)}: by hand, or by the system when memory was short"
    return ""


def not_run(cell: Cell, problem: str) -> Outcome:
    """The outcome of a cell of which nothing is known."""
    return Outcome(cell, Stage.ENVIRONMENT, Verdict.NOT_RUN, problem)


def signal_name(number: int | None) -> str:
    """``signal 11 (SIGSEGV)``."""
    try:
        return f"signal {number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return f"signal {number}"
