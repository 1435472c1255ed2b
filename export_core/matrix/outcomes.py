"""What a worker's reply says of a cell: how far it came and what happened, or that the machine failed."""

from __future__ import annotations

from pathlib import Path

from export_core.base.errors import InfrastructureFault
from export_core.base.phrases import signal_name
from export_core.base.urls import without_credentials
from export_core.goldens import GoldenError
from export_core.matrix.cell import Cell, Outcome, Verdict
from export_core.matrix.checks import CallResults, check_calls
from export_core.matrix.known_messages import find_driver_need, find_refusal
from export_core.matrix.limits import ReplayOptions
from export_core.numbers.errors import CompareError
from export_core.policy.run_options import GIB
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Reply, Stage

SENT_FROM_OUTSIDE = frozenset({1, 2, 9, 15})
"""SIGHUP, SIGINT, SIGKILL and SIGTERM by number, since Windows lacks some of the names.

A library does not kill its own process by them: a person does, or the system when memory is short.
"""


def outcome_of(cell: Cell, reply: Reply, outputs: Path, options: ReplayOptions) -> Outcome:
    """What a reply that is no fault of the machine says of a cell, whose outputs are in a folder.

    Raises `InfrastructureFault` where the outputs are missing or cannot be read.
    """
    if reply.stage is Stage.ENVIRONMENT:  # there is no device to try it on: the artifact was not tried
        reason = f"{reply.type}: {reply.message}" if reply.type else reply.message
        reason = reason or (signal_name(reply.signal) if reply.signal else reply.end)
        message = f"jaxlib {cell.reader.jaxlib} has no {cell.platform} here: {reason}"
        return _ended(cell, reply, Verdict.NOT_RUN, message)
    if reply.end == "ok":
        return _ran(cell, reply, outputs, options)
    if reply.end == "error":
        return _ended(cell, reply, *_failed(cell, reply, options))
    call = _call(reply)
    if reply.end == "timeout":
        message = f"{call}still in stage {reply.stage} after {options.limits.timeout:g} s, killed"
        return _ended(cell, reply, Verdict.TIMEOUT, message)
    if reply.end == "memory":
        message = f"{call}killed: it used more than the limit of {options.limits.memory / GIB:.1f} GiB"
        return _ended(cell, reply, Verdict.CRASH, message)
    message = reply.message or f"died by {signal_name(reply.signal)}"
    return _ended(cell, reply, Verdict.CRASH, f"{call}{message}{_custom_calls(cell, reply.stage, message)}")


def machine_fault(reply: Reply) -> str:
    """The fault of the machine, and not of the artifact, that caused this reply; empty where the artifact did."""
    if reply.end == "fault":
        return f"{reply.type}: {reply.message}" if reply.type else reply.message or ""
    if reply.signal in SENT_FROM_OUTSIDE:
        return f"killed from outside, by {signal_name(reply.signal)}: by hand, or by the system when memory was short"
    return ""


def not_run(cell: Cell, problem: str) -> Outcome:
    """The outcome of a cell of which nothing is known."""
    return Outcome(cell, Stage.ENVIRONMENT, Verdict.NOT_RUN, without_credentials(problem))


def _ran(cell: Cell, reply: Reply, outputs: Path, options: ReplayOptions) -> Outcome:
    """The outcome of a cell whose calls all ended."""
    try:
        results = check_calls(cell, reply, outputs, options)
    except GoldenError as error:  # outputs that are gone, or cannot be read
        raise InfrastructureFault(str(error)) from error
    except CompareError as error:  # a comparator that fails says nothing about the reader
        return _ended(cell, reply, Verdict.NOT_RUN, str(error), Stage.COMPARE)
    verdict = Verdict.PASS
    if results.problem:
        # Where every number is within its tolerance, something else is wrong: a refusal, a sharding.
        verdict = Verdict.ERROR if results.difference.ok else Verdict.NUMERICS
    if cell.mode is Mode.COMPILE:
        verdict = Verdict.COMPILED if verdict is Verdict.PASS else verdict
        return _ended(cell, reply, verdict, results.problem or _why_no_outputs(cell), Stage.COMPILE)
    return _ended(cell, reply, verdict, results.problem, Stage.COMPARE, results)


def _why_no_outputs(cell: Cell) -> str:
    """Why a golden is compiled only, also where its platform is; empty for one that has outputs."""
    reason = cell.golden.manifest.options.without_outputs
    return f"the golden has no outputs: {reason}" if reason else ""


def _failed(cell: Cell, reply: Reply, options: ReplayOptions) -> tuple[Verdict, str]:
    """The verdict and message of a cell that raised an exception."""
    message = reply.message or ""
    if reply.stage is Stage.READ:  # a module cannot be imported: the artifact was not tried
        way = ". The policy's reader_packages installs what readers need" if "ModuleNotFoundError" in message else ""
        return Verdict.NOT_RUN, (message or reply.type or "") + way
    call = _call(reply)
    need = find_driver_need(cell.platform, reply.stage, message, cell.reader.built)
    if need and cell.mode is Mode.COMPILE:
        return Verdict.NOT_RUN, f"{call}{need.meaning}: {message}"
    jax = options.calendar.jax.get(cell.reader.jax)
    jax_built = jax.built if jax else cell.reader.built
    if find_refusal(reply.stage, reply.type or "", message, jax_built):
        return Verdict.REFUSED, f"{call}{reply.type}: {message}"
    return Verdict.ERROR, f"{call}{reply.type}: {message}{_custom_calls(cell, reply.stage, message)}"


def _ended(
    cell: Cell,
    reply: Reply,
    verdict: Verdict,
    message: str,
    stage: Stage | None = None,
    results: CallResults | None = None,
) -> Outcome:
    """An outcome with what the reply has of its process; `stage` is the reply's unless given."""
    return Outcome(
        cell,
        stage or reply.stage,
        verdict,
        without_credentials(message),
        signal=reply.signal,
        stderr=without_credentials(reply.stderr),
        difference=results.difference if results else None,
        outputs=results.outputs if results else "",
        as_written=bool(results and results.as_written),
        seconds=reply.seconds,
        device=reply.device,
        driver=reply.driver,
        cost=reply.cost,
        timings=reply.timings,
    )


def _call(reply: Reply) -> str:
    """The start of a message: which call of the cell it is about, where it is not the plain one."""
    return f"{reply.check}: " if reply.check else ""


def _custom_calls(cell: Cell, stage: Stage, message: str) -> str:
    """The targets of an artifact that does not compile, where the message names none.

    The message of a kernel that cannot be read, for one, does not say which custom call it belongs to.
    """
    targets = cell.golden.manifest.custom_calls
    if stage is not Stage.COMPILE or not targets or any(target in message for target in targets):
        return ""
    return f"\nIts custom calls: {', '.join(targets)}."
