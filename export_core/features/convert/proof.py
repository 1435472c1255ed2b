"""The proof of a conversion: its reader replays the converted artifact in a cold process, on a golden's inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path

from msgspec import structs

from export_core.artifact import Artifact, read_bytes
from export_core.artifact.main_check import dimension_constraints
from export_core.artifact.numerics import factored_outputs
from export_core.artifact.writers import writers
from export_core.base.scratch import scratch_folder
from export_core.features.convert.convert import UNCHANGED, Converted
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens import Comparison, FactorGroup, Golden, GoldenError, Manifest, Writer
from export_core.goldens.adopt import adopt_artifact
from export_core.goldens.arrays import numpy_dtype
from export_core.goldens.made_inputs import made_inputs
from export_core.goldens.manifest import UNKNOWN
from export_core.goldens.store import ARTIFACT, MODULE_TEXT, sha256
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.comparisons import comparison_in_words, under_policy
from export_core.matrix.replay_options import ReplayOptions, opened
from export_core.matrix.result import Result
from export_core.matrix.selection import reader_named
from export_core.matrix.verdicts import Verdict
from export_core.numbers.nothing_compared import nothing_compared
from export_core.policy import Policy
from export_core.policy.run_options import CellLimits
from export_core.readers.cell import Cell
from export_core.readers.worker.protocol import Stage
from export_core.releases import Calendar
from export_core.releases.calendar_entries import calendar_entries

_MOST_BYTES = 1 << 28  # Of all made inputs together: a file may claim arguments of any size.


@dataclass(frozen=True)
class ProofEvidence:
    """What verifies a conversion: a golden's manifest and files; `golden` is its id, None if it is in no store."""

    manifest: Manifest
    files: Mapping[str, bytes]
    golden: str | None = None


def evidence_of(golden: Golden) -> ProofEvidence:
    """Return a stored golden's manifest and files, by which a conversion of its artifact can be verified.

    Raises `GoldenError` if the golden is damaged.
    """
    golden.verify()
    return ProofEvidence(golden.manifest, golden.files(), golden.id)


def given_evidence(artifact: Artifact, inputs: Path, outputs: Path, calendar: Calendar) -> ProofEvidence:
    """Return the evidence that a file of inputs and a file of outputs give.

    Raises `GoldenError` if their arrays are not those that the artifact declares.
    """
    return ProofEvidence(*adopt_artifact(artifact, inputs, outputs, "converted", _writer(artifact, calendar)))


def made_evidence(artifact: Artifact, calendar: Calendar) -> ProofEvidence | None:
    """Return evidence with generated inputs and no outputs, to see whether a reader runs the artifact at all.

    None for a bare module, and if no inputs can be generated.
    """
    if artifact.envelope is None:
        return None
    avals = artifact.envelope.in_avals
    dtypes = (numpy_dtype(aval.dtype) for aval in avals)  # None for keys, whose elements have up to 16 bytes
    widest = max([4, *(dtype.itemsize if dtype else 16 for dtype in dtypes)])
    try:
        constraints = dimension_constraints(artifact)
        inputs, _ = made_inputs(avals, {}, constraints=constraints, most_elements=_MOST_BYTES // widest)
        manifest, files = adopt_artifact(artifact, inputs, None, "converted", _writer(artifact, calendar))
    except GoldenError:
        return None
    options = structs.replace(manifest.options, without_outputs="made inputs, whose outputs are not known")
    return ProofEvidence(structs.replace(manifest, options=options), files)


def _writer(artifact: Artifact, calendar: Calendar) -> Writer:
    """Return a release that may have written the artifact, or the newest if none is known.

    The release only names the golden that is replayed.
    """
    possible = writers(artifact, calendar_entries(calendar))
    release = calendar.release(possible[-1] if possible else calendar.newest())
    return Writer(jax=release.jax, jaxlib=release.jaxlib, built=release.built, python=UNKNOWN, platform="cpu")


def converted_golden(evidence: ProofEvidence, converted: Converted) -> tuple[Manifest, dict[str, bytes]]:
    """Return manifest and files of the golden with the converted artifact in place of the original.

    If nothing was converted, they are those of the original.
    """
    if converted.way == UNCHANGED:
        return evidence.manifest, dict(evidence.files)
    original = evidence.files[ARTIFACT]
    files = {**evidence.files, ARTIFACT: bytes(converted.artifact.data)}
    if converted.module_by:
        files.pop(MODULE_TEXT, None)  # it shows the module of the original
    manifest = structs.replace(
        evidence.manifest,
        files={name: sha256(content) for name, content in files.items()},
        custom_calls=tuple(sorted({call.target for call in converted.artifact.custom_calls})),
        # The factors are known from the original's calls; a replacing algorithm gives other signs and phases.
        factors=evidence.manifest.factors or tuple(starmap(FactorGroup, factored_outputs(read_bytes(original)))),
        converted_from=converted.origin(sha256(original)),
    )
    return manifest, files


def write_unstored(manifest: Manifest, files: Mapping[str, bytes], folder: Path, policy: Policy) -> Golden:
    """Write a golden into the new folder `folder`, and return it with the comparison settings of a policy.

    Unlike a golden of a store, it may have no outputs.
    """
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (golden,) = under_policy([Golden(manifest, folder)], policy)
    return golden


@dataclass(frozen=True)
class Proof:
    """Whether the replay gave the outputs of the golden (`verified`), and a sentence about it (`message`)."""

    verified: bool
    message: str
    outcome: Result | None = None  # The result of the replay, if its outputs were compared with the golden's.


def prove(
    manifest: Manifest,
    files: Mapping[str, bytes],
    evidence: ProofEvidence,
    converted: Converted,
    options: ReplayOptions,
    notify: Callable[[str], None],
) -> Proof:
    """Replay a converted golden in its reader, and return whether that verifies the conversion.

    Args:
        manifest: The manifest of the converted golden.
        files: Its files, as `converted_golden` returns both.
        evidence: The golden before the conversion.
        converted: The conversion.
        options: How cells are replayed.
        notify: Gets a line about what happens.

    Raises:
        ConversionRefused: The reader does not run the artifact, or gives different outputs.
    """
    if "cpu" not in manifest.replayed_on:
        return Proof(False, f"it was exported for {', '.join(manifest.options.platforms)}, which were not tried")
    release = reader_named(converted.reader.release.name, options.calendar)
    with scratch_folder() as scratch, opened(options.user_code, options.policy, options.limits) as user_code:
        options = replace(options, limits=CellLimits(jobs=1), user_code=user_code)  # there is one cell
        golden = write_unstored(manifest, files, scratch / "golden", options.policy)
        notify(f"running the converted artifact in {release.title}")
        ((_, outcome),) = replay_here([Cell(golden, release, "cpu")], options, notify=notify)
        passes = outcome.verdict is Verdict.PASS
        nothing = nothing_compared(golden, "cpu", options.policy.tolerances, user_code) if passes else ""
    reader = release.title
    match outcome.verdict:
        case Verdict.PASS if not nothing:
            outputs = f"the golden {evidence.golden}" if evidence.golden else "--outputs"
            if golden.compared_as.comparison not in (Comparison(), Comparison("exact")):
                outputs += f", compared by {comparison_in_words(golden.compared_as.comparison)}"
            if manifest.factors and converted.replaced and manifest.comparison.compare == Comparison().compare:
                names = " and ".join(dict.fromkeys(group.compare for group in manifest.factors))
                outputs += f", compared as factors of {names}, which are unique up to sign"
            return Proof(True, f"{reader} gives the outputs of {outputs}", outcome)
        case Verdict.PASS if manifest.options.without_outputs and evidence.golden is None:  # of made inputs
            return Proof(False, f"{reader} loads, compiles and runs it; no golden has this artifact")
        case Verdict.PASS:
            return Proof(False, f"{reader} loads, compiles and runs it; nothing was compared: {nothing}")
        case Verdict.NOT_RUN:
            return Proof(False, f"not tried in {reader}: {outcome.message}")
        case Verdict.ERROR if manifest.options.without_outputs and outcome.stage in (Stage.LOWER, Stage.RUN):
            # Sizes that were made up may break a constraint: this is no proof against the artifact.
            return Proof(False, f"{reader} loads it, but does not run it with made inputs: {outcome.message}")
    raise ConversionRefused(
        f"{converted.artifact.name}: not written: the converted artifact ends in {outcome.verdict} in stage "
        f"{outcome.stage}: {outcome.message}"
    )
