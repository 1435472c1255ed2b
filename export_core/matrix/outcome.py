"""The outcome of a cell, as it follows from its artifact and from its worker's reply.

Which messages mean that a release refuses an artifact, or needs a driver, is in data/, with the releases that give
them. The same message from any other release is an error.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from export_core.artifact import Artifact, ArtifactError, read
from export_core.artifact.audit import AuditFinding, audit, foreseen, targets_of_jax
from export_core.base.errors import InfrastructureFault
from export_core.base.processes import signal_name
from export_core.base.text import without_credentials
from export_core.base.tolerances import ROUNDING
from export_core.goldens import Check, Golden, GoldenError
from export_core.goldens.arrays import from_npz
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import Result, new_result
from export_core.matrix.verdicts import Verdict
from export_core.numbers import CompareError
from export_core.numbers.compare import Difference, GoldenOutputs, kind_of_all, largest_errors, rules_in_words
from export_core.numbers.elements import bits_of, bits_of_calls
from export_core.numbers.leaf_paths import outputs_named
from export_core.policy import Policy
from export_core.policy.run_options import GIB
from export_core.readers.cell import Cell
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Reply, Stage
from export_core.releases.runtimes import runtime_of
from export_core.releases.stable_targets import promised_by, stable_targets

_DATA = Path(__file__).with_name("data")
_SHARED = [name for name in Reply.__struct_fields__ if name in Result.__struct_fields__]
"""The fields that both a reply and a result have, under the same names. Stage and message may change on the way."""
SENT_FROM_OUTSIDE = frozenset({1, 2, 9, 15})
"""SIGHUP, SIGINT, SIGKILL and SIGTERM by number, since Windows lacks some of the names.

A library does not end its own process by them: a person does, or the system when memory is short.
"""


def audit_problem(golden: Golden, policy: Policy, artifact: Artifact | None = None) -> str:
    """Return the problems for which no reader may compile a golden's artifact; empty if there are none.

    A problem is a part that our artifact reader does not know, or a custom-call target that neither the writer's
    release promises nor the golden or policy allows. A converted artifact may also have the targets that are promised
    by the release for which it was converted. A target that only the cell's reader no longer promises is no problem:
    the cell shows whether it works.

    `artifact` is audited in place of the golden's artifact, for example a reduced one.
    """
    try:
        findings = audit_golden(golden, artifact or golden.read_artifact(), policy)
    except (ArtifactError, GoldenError) as error:
        return str(error)
    return "\n".join(str(finding) for finding in findings if not finding.ok)


def audit_golden(
    golden: Golden, artifact: Artifact, policy: Policy, jaxlib: str | None = None
) -> tuple[AuditFinding, ...]:
    """Return the findings of the audit of a golden's artifact.

    A custom call is fine if the release of the golden's writer promises it, or if the golden or the policy allows it.
    With `jaxlib`, the reader of this version must promise the calls too. Raises `ArtifactError` if the artifact's
    module cannot be read.
    """
    origin = golden.manifest.converted_from
    promised, writer = promised_by(golden.manifest.writer.jax, golden.manifest.writer.jaxlib)
    if origin and "==" not in origin.reader:  # other runtimes have no list
        promised |= stable_targets(origin.reader)
    return audit(
        artifact,
        promised,
        None if jaxlib is None else stable_targets(jaxlib),
        allow={**golden.compared_as.allow, **policy.allow},
        writer=writer,
        reader=f"jaxlib {jaxlib}",
    )


def foreseen_note(cell: Cell) -> str:
    """Return a sentence on whether a cell's accelerator can run the artifact, by its platforms and custom calls.

    The sentence is empty on a CPU, and if the artifact cannot be read.
    """
    if cell.platform == "cpu":
        return ""
    promised, reader = stable_targets(cell.reader.jax), cell.reader.title
    try:
        return foreseen(_artifact(cell.golden.artifact), cell.platform, promised, reader).note
    except ArtifactError:
        return ""


_artifact = functools.lru_cache(maxsize=256)(read)  # Many cells replay one golden.


def outcome_of(cell: Cell, reply: Reply, outputs: Path, options: ReplayOptions) -> Result:
    """Return the outcome of a cell from the reply of its worker, which must not be a `machine_fault`.

    `outputs` is the folder with the outputs of the calls. Raises `InfrastructureFault` if outputs are missing.
    """
    if reply.stage is Stage.ENVIRONMENT:  # there is no device to try it on: the artifact was not tried
        reason = f"{reply.type}: {reply.message}" if reply.type else reply.message
        reason = reason or (signal_name(reply.signal) if reply.signal else reply.end)
        message = f"{cell.reader.title} has no {cell.platform} here: {reason}"
        return _ended(cell, reply, Verdict.NOT_RUN, message)
    if reply.end == "ok":
        return _ran(cell, reply, outputs, options)
    if reply.end == "error":
        return _ended(cell, reply, *_failed(cell, reply, outputs, options))
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
    """Return why the machine, not the artifact, is to blame for a worker's reply; empty if it is not."""
    if reply.end == "fault":
        return f"{reply.type}: {reply.message}" if reply.type else reply.message or ""
    if reply.signal in SENT_FROM_OUTSIDE:
        return f"killed from outside, by {signal_name(reply.signal)}: by hand, or by the system when memory was short"
    return ""


def not_run(cell: Cell, problem: str) -> Result:
    """Return the outcome `not_run` of a cell that could not be run because of a problem."""
    return new_result(cell, Stage.ENVIRONMENT, Verdict.NOT_RUN, without_credentials(problem))


def _ran(cell: Cell, reply: Reply, outputs: Path, options: ReplayOptions) -> Result:
    """Return the outcome of a cell whose calls all ended, by comparing their outputs with those of the golden."""
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
        # A golden without outputs is compiled only, also where its platform is.
        reason = cell.golden.manifest.options.without_outputs
        why = f"the golden has no outputs: {reason}" if reason else ""
        return _ended(cell, reply, verdict, results.problem or why, Stage.COMPILE)
    outcome = _ended(cell, reply, verdict, results.problem, Stage.COMPARE)
    return replace(outcome, **results.found)


def _failed(cell: Cell, reply: Reply, outputs: Path, options: ReplayOptions) -> tuple[Verdict, str]:
    """Return the verdict and message of a cell that raised an exception."""
    message = reply.message or ""
    if reply.stage is Stage.READ:  # a module cannot be imported: the artifact was not tried
        way = ". The policy's reader_packages installs what readers need" if "ModuleNotFoundError" in message else ""
        return Verdict.NOT_RUN, (message or reply.type or "") + way
    call = _call(reply)
    if cell.reader.runtime:
        return _failed_in_runtime(cell, reply, outputs)
    need = find_driver_need(cell.platform, reply.stage, message, cell.reader.built)
    if need and cell.mode is Mode.COMPILE:
        return Verdict.NOT_RUN, f"{call}{need.meaning}: {message}"
    jax = options.calendar.jax.get(cell.reader.jax)
    jax_built = jax.built if jax else cell.reader.built
    if find_refusal(reply.stage, reply.type or "", message, jax_built):
        return Verdict.REFUSED, f"{call}{reply.type}: {message}"
    return Verdict.ERROR, f"{call}{reply.type}: {message}{_custom_calls(cell, reply.stage, message)}"


def _failed_in_runtime(cell: Cell, reply: Reply, outputs: Path) -> tuple[Verdict, str]:
    """Return the verdict and message of a cell that failed in a runtime other than jaxlib.

    The message has up to three lines of stderr that contain ``error:``.
    """
    # Without the folder of its module, which is another one each time.
    message = f"{_call(reply)}{reply.type}: {reply.message}".replace(f"{outputs}/", "")
    errors = [line for line in reply.stderr.replace(f"{outputs}/", "").splitlines() if "error:" in line.lower()]
    if refusal := runtime_of(cell.reader.runtime).refusal(f"{message}\n{reply.stderr}"):
        # The meaning first: what it refuses for is what cells of one cause have in common.
        meaning = refusal.meaning
        if "`jaxexport convert`" in meaning and targets_of_jax(cell.golden.manifest.custom_calls):
            meaning = meaning.partition(": ")[0]  # Without its advice: those calls would stay.
        return Verdict.REFUSED, "\n".join(dict.fromkeys((meaning, message, *errors[:3])))
    return Verdict.ERROR, "\n".join(dict.fromkeys((message, *errors[:3])))


def _ended(cell: Cell, reply: Reply, verdict: Verdict, message: str, stage: Stage | None = None) -> Result:
    """Return the outcome of a cell with this verdict and message, and with the facts in its reply.

    `stage` is how far the cell got; None means the stage in the reply.
    """
    shared = {name: getattr(reply, name) for name in _SHARED} | {"stderr": without_credentials(reply.stderr)}
    return new_result(
        cell, **{**shared, "stage": stage or reply.stage, "message": without_credentials(message)}, verdict=verdict
    )


def _call(reply: Reply) -> str:
    """Return the name of the call in which a cell ended, as the start of a message; empty for the plain call."""
    return f"{reply.check}: " if reply.check else ""


def _custom_calls(cell: Cell, stage: Stage, message: str) -> str:
    """Return a line for the message of a cell that does not compile, with the custom-call targets of its artifact.

    The line is empty if the message names one of them already, or if the cell ended in another stage. A compiler that
    cannot read a kernel does not say to which custom call it belongs.
    """
    targets = cell.golden.manifest.custom_calls
    if stage is not Stage.COMPILE or not targets or any(target in message for target in targets):
        return ""
    return f"\nIts custom calls: {', '.join(targets)}."


# --- what the calls of a cell gave, beside what its golden has --------------------------------------------------------


@dataclass(frozen=True)
class CallResults:
    """How the outputs of a cell's calls differ from those of the golden."""

    difference: Difference  # The largest errors of all calls.
    problem: str = ""  # What is wrong; empty if nothing is.
    outputs: str = ""  # A digest of the bits of all outputs; empty if no outputs were compared.
    as_written: bool = False  # Whether all outputs have the bits of the golden's.

    @property
    def found(self) -> dict[str, Any]:
        """The fields of a `Result` that are known from the comparison, by name."""
        difference = self.difference
        errors = {
            name: _finite(getattr(difference, name)) for name in ("max_abs_error", "max_rel_error", "max_noise_error")
        }
        described = {"allowed": difference.tolerance, "looks_like": difference.kind, "error_grid": difference.grid}
        return {**errors, **described, "outputs": self.outputs, "as_written": self.as_written}


def _finite(error: float | None) -> float | None:
    """Return a numerical error, or None if it is infinite or NaN: JSON cannot hold those, and the message has them."""
    return error if error is not None and math.isfinite(error) else None


def check_calls(cell: Cell, reply: Reply, scratch: Path, options: ReplayOptions) -> CallResults:
    """Compare the outputs and refusals of a cell's calls with those that the golden expects.

    The `problem` in the result is that of the first call that differs. Unless this difference looks like rounding,
    later calls are not compared, and only the digests of their outputs are computed. For a cell that was only compiled,
    only refusals are compared.
    """
    problem = ""
    differences: list[Difference] = []
    expected_bits: list[bytes] = []
    actual_bits: list[bytes] = []
    wanted = GoldenOutputs(cell.golden, cell.platform, options.policy.tolerances, options.user_code)
    for number, check in enumerate(cell.checks):
        prefix = f"{check.name}: " if check.name else ""
        if check.refused is not None:
            message = reply.refusals.get(check.name, "")
            # Another runtime refuses in words of its own.
            if not problem and not (message if cell.reader.runtime else check.expects(message)):
                problem = f"{prefix}expected a refusal with {check.refused!r} in its message, found {message}"
        elif check.outputs is not None and cell.mode is Mode.RUN:
            expected, actual = from_npz(cell.golden.folder / check.outputs), from_npz(scratch / f"{number}.npz")
            expected_bits.append(bits_of(expected))
            actual_bits.append(bits_of(actual))
            if problem and not kind_of_all(differences).startswith(ROUNDING):
                continue
            differences.append(difference := wanted.compare(check, expected, actual))
            problem = problem or ("" if difference.ok else f"{prefix}{difference}")
    return CallResults(
        _largest(differences),
        problem or _sharding_problem(cell, reply),
        outputs=bits_of_calls(actual_bits),
        as_written=bool(actual_bits) and actual_bits == expected_bits,
    )


def _sharding_problem(cell: Cell, reply: Reply) -> str:
    """Return a sentence on the first output that is sharded differently than in the golden; empty if there is none."""
    manifest = cell.golden.manifest
    if cell.mode is Mode.COMPILE or cell.platform in manifest.options.refused_on or cell.reader.runtime:
        return ""
    calls = [(Check(""), manifest.out_shardings, reply.shardings)]
    calls += [(check, check.out_shardings, reply.shardings_of.get(check.name, ())) for check in manifest.checks]
    for check, expected, actual in calls:
        # Adopted and older goldens lack some of them.
        pairs = itertools.zip_longest(expected, actual, fillvalue="none") if expected else ()
        for number, (writer, reader) in enumerate(pairs):
            if writer != reader:
                call, named = f"{check.name}: " if check.name else "", outputs_named(cell.golden, check)
                return f"{call}output {named(number)} is sharded differently: expected {writer}, got {reader}"
    return ""


def _largest(differences: list[Difference]) -> Difference:
    """Return the differences of all calls as one: the largest errors, and the error grid of the first failing call."""
    errors = largest_errors(differences)
    for name in ("max_abs_error", "max_rel_error") if differences else ():
        errors[name] = errors[name] or 0.0  # of a comparison of shapes alone
    is_ok = all(difference.ok for difference in differences)
    grid = next((difference.grid for difference in differences if not difference.ok), None)  # of the reported one
    return Difference(is_ok, **errors, tolerance=rules_in_words(differences), kind=kind_of_all(differences), grid=grid)


# --- messages by which releases are known to refuse an artifact, or to need a driver ----------------------------------


class KnownMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message, as a regular expression, that releases built from `since` to `until` (inclusive) are known to give."""

    message: str
    meaning: str
    since: datetime.date | None = None
    until: datetime.date | None = None

    def is_from(self, text: str, built: datetime.date) -> bool:
        """Return whether a text matches this message, and a release built on this day is known to give it."""
        known = (self.since is None or self.since <= built) and (self.until is None or built <= self.until)
        return known and bool(re.search(self.message, text))


class Refusal(KnownMessage, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A message with which jax releases refuse an artifact on purpose.

    `since` and `until` are build dates of jax.
    """

    stage: str
    exception: str


class NeedsDriver(KnownMessage, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A message with which jaxlib releases report, in compile mode, that they need a driver or a device.

    `since` and `until` are build dates of jaxlib.
    """

    platform: str
    stages: tuple[str, ...]


def find_refusal(stage: str, exception: str, message: str, jax_built: datetime.date) -> Refusal | None:
    """Return the entry in the table of refusals that matches an error; None if the error is not a known refusal."""
    entries = (entry for entry in load_refusals() if (entry.stage, entry.exception) == (stage, exception))
    return next((entry for entry in entries if entry.is_from(message, jax_built)), None)


def find_driver_need(platform: str, stage: str, message: str, built: datetime.date) -> NeedsDriver | None:
    """Return the entry in the table of messages about a missing driver that matches an error; None if there is none."""
    entries = (entry for entry in load_driver_needs() if platform == entry.platform and stage in entry.stages)
    return next((entry for entry in entries if entry.is_from(message, built)), None)


@functools.cache
def load_refusals() -> tuple[Refusal, ...]:
    """Return the table of messages with which jax releases refuse an artifact, from refusals.yaml."""
    return msgspec.yaml.decode((_DATA / "refusals.yaml").read_bytes(), type=tuple[Refusal, ...])


@functools.cache
def load_driver_needs() -> tuple[NeedsDriver, ...]:
    """Return the table of messages about a missing driver or device, from driverless.yaml."""
    return msgspec.yaml.decode((_DATA / "driverless.yaml").read_bytes(), type=tuple[NeedsDriver, ...])
