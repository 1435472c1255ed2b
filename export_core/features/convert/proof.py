"""The proof of a conversion: the reader it was made for replays it cold, and its outputs are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING

from msgspec import structs

from export_core.artifact import read_bytes
from export_core.artifact.factored import factored_outputs
from export_core.base.scratch import scratch_folder
from export_core.features.convert.convert import UNCHANGED, Converted
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.evidence import Evidence
from export_core.goldens import Comparison, FactorGroup, Golden, Manifest
from export_core.goldens.manifest import ConvertedFrom
from export_core.goldens.store import ARTIFACT, MODULE_TEXT, sha256
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.comparisons import under_policy
from export_core.matrix.outcome import Outcome, Verdict
from export_core.matrix.replay_options import ReplayOptions
from export_core.numbers.compare import Difference
from export_core.readers.cell import Cell, Limits
from export_core.readers.worker.protocol import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from export_core.policy import Policy
    from export_core.releases import Calendar


@dataclass(frozen=True)
class Proof:
    """What the replay showed: whether the outputs are those of the golden, in a sentence, and the largest errors."""

    verified: bool
    message: str
    difference: Difference | None = None


def converted_golden(
    evidence: Evidence, converted: Converted, origin: ConvertedFrom
) -> tuple[Manifest, dict[str, bytes]]:
    """The golden with the converted artifact in place of the original; the golden itself where nothing was changed."""
    if converted.way == UNCHANGED:
        return evidence.manifest, dict(evidence.files)
    original = read_bytes(evidence.files[ARTIFACT])
    files = {**evidence.files, ARTIFACT: bytes(converted.artifact.data)}
    if converted.module_by:
        files.pop(MODULE_TEXT, None)  # it shows the module of the original
    manifest = structs.replace(
        evidence.manifest,
        files={name: sha256(content) for name, content in files.items()},
        custom_calls=tuple(sorted({call.target for call in converted.artifact.custom_calls})),
        # The original's calls say it; another algorithm in their place gives other signs and phases.
        factors=evidence.manifest.factors or tuple(starmap(FactorGroup, factored_outputs(original))),
        converted_from=origin,
    )
    return manifest, files


def prove(
    manifest: Manifest,
    files: Mapping[str, bytes],
    evidence: Evidence,
    converted: Converted,
    policy: Policy,
    calendar: Calendar,
    notify: Callable[[str], None],
) -> Proof:
    """Replay a converted golden in its reader.

    Args:
        manifest: of the converted golden; with `files`, as `converted_golden` gives them.
        files: its files.
        evidence: what it was made of.
        converted: the artifact and its reader.
        policy: tolerances and allowed calls.
        calendar: the releases.
        notify: called with a line about what happens meanwhile.

    Raises:
        ConversionRefused: the reader does not run it, or gives other outputs.
    """
    jaxlib = converted.reader.jaxlib
    if "cpu" not in manifest.replayed_on:
        return Proof(False, f"it was exported for {', '.join(manifest.options.platforms)}, which were not tried")
    outcome = _replayed(manifest, files, converted, policy, calendar, notify)
    compared_as = ""
    if manifest.factors and converted.replaced and manifest.comparison.compare == Comparison().compare:
        names = " and ".join(dict.fromkeys(group.compare for group in manifest.factors))
        compared_as = f", compared as factors of {names}, which are unique up to sign"
    difference = outcome.difference
    match outcome.verdict:
        case Verdict.PASS if evidence.compared:
            name = f"golden {evidence.golden}" if evidence.golden else "outputs that were given"
            return Proof(True, f"jaxlib {jaxlib} gives the outputs of the {name}{compared_as}", difference)
        case Verdict.PASS:
            return Proof(False, f"jaxlib {jaxlib} loads, compiles and runs it; no golden has this artifact")
        case Verdict.NOT_RUN:
            return Proof(False, f"not tried in jaxlib {jaxlib}: {outcome.message}")
        case Verdict.ERROR if not evidence.compared and outcome.stage in (Stage.LOWER, Stage.RUN):
            # Sizes that were made up may break a constraint: this is no proof against the artifact.
            return Proof(False, f"jaxlib {jaxlib} loads it, and does not run it with inputs of ones: {outcome.message}")
    raise ConversionRefused(
        f"{converted.artifact.name}: not written: the converted artifact ends in {outcome.verdict} in stage "
        f"{outcome.stage}: {outcome.message}"
    )


def _replayed(
    manifest: Manifest,
    files: Mapping[str, bytes],
    converted: Converted,
    policy: Policy,
    calendar: Calendar,
    notify: Callable[[str], None],
) -> Outcome:
    options = ReplayOptions(calendar, policy, Limits(jobs=1))
    with scratch_folder() as scratch:
        folder = scratch / "golden"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        # Not through a store: inputs that were made, without outputs, are no golden that may be stored.
        (golden,) = under_policy([Golden(manifest, folder)], policy)
        cell = Cell(golden, calendar.release(converted.reader.jaxlib), "cpu")
        (outcome,) = replay_here([cell], options, notify=notify)
    return outcome
