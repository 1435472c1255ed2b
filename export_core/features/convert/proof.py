"""The proof of a conversion: with inputs and outputs of a golden, its reader replays it cold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from export_core.artifact import Artifact, Aval, Envelope, read_bytes
from export_core.artifact.main_check import dimension_names
from export_core.artifact.numerics import factored_outputs
from export_core.artifact.writers import writers
from export_core.base.scratch import scratch_folder
from export_core.base.untrusted import read_regular
from export_core.features.convert.convert import UNCHANGED, Converted
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens import (
    Comparison,
    FactorGroup,
    Golden,
    GoldenError,
    GoldenStore,
    Leaf,
    Manifest,
    Options,
    Writer,
)
from export_core.goldens.adopt import adopt_artifact, needs_x64
from export_core.goldens.adopted_mesh import mesh_for
from export_core.goldens.arrays import KEYS, PLAIN, numpy_dtype, to_npz
from export_core.goldens.made_inputs import size_of
from export_core.goldens.manifest import UNKNOWN, ConvertedFrom, signature_of
from export_core.goldens.store import ARTIFACT, INPUTS, MODULE_TEXT, sha256
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.comparisons import under_policy
from export_core.matrix.outcome import Verdict
from export_core.matrix.replay_options import ReplayOptions
from export_core.numbers.compare import Difference
from export_core.readers.cell import Cell, Limits
from export_core.readers.worker.protocol import Stage
from export_core.releases import Calendar
from export_core.releases.entries import calendar_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from export_core.policy import Policy
    from export_core.releases import Calendar


_KEY_WORDS = {"key<fry>": 2, "key<rbg>": 4, "key<urbg>": 4}
_MADE = "made inputs, whose outputs are not known"
_MOST_BYTES = 1 << 28
"""Of all made inputs together: a file may claim arguments of any size."""


@dataclass(frozen=True)
class Evidence:
    """A golden as its manifest and files; `golden` is its id, None where it is in no store.

    `compared` is false for made inputs, whose outputs are not known.
    """

    manifest: Manifest
    files: Mapping[str, bytes]
    golden: str | None = None
    compared: bool = True


def golden_with(artifact: Artifact, root: Path) -> Golden | None:
    """The golden below a folder that has this artifact, byte for byte; None where there is none.

    Raises:
        GoldenError: its manifest cannot be read.
    """
    digest = artifact.sha256.encode()
    for manifest in sorted(root.glob("*/*/golden.yaml")):
        try:
            # As bytes: only the manifest of the right golden is parsed.
            if digest not in read_regular(manifest):
                continue
        except OSError:  # a link or a pipe, which no golden has
            continue
        for golden in GoldenStore(root).generations(manifest.parent.parent.name):
            if golden.manifest.files.get(ARTIFACT) == artifact.sha256:
                return golden
    return None


def evidence_of(golden: Golden) -> Evidence:
    """A golden of a store. Raises `GoldenError` where it is damaged."""
    golden.verify()
    return Evidence(golden.manifest, golden.files(), golden.id, compared=not golden.manifest.options.without_outputs)


def given_evidence(artifact: Artifact, inputs: Path, outputs: Path, calendar: Calendar) -> Evidence:
    """Arrays in files. Raises `GoldenError` for others than the artifact declares."""
    manifest, files = adopt_artifact(artifact, inputs, outputs, "converted", _writer(artifact, calendar))
    return Evidence(manifest, files)


def made_evidence(artifact: Artifact, calendar: Calendar) -> Evidence | None:
    """Inputs of ones, to see whether a reader runs the artifact at all; None where none can be made."""
    envelope = artifact.envelope
    if envelope is None:
        return None
    try:
        mesh = mesh_for(artifact, {})
    except GoldenError:
        return None
    leaves = _made_leaves(envelope)
    if leaves is None:
        return None
    files = {ARTIFACT: bytes(artifact.data), INPUTS: to_npz(leaves)}
    manifest = Manifest(
        case="converted",
        test="",
        name=None,
        writer=_writer(artifact, calendar),
        flags={"jax_enable_x64": needs_x64(envelope)},
        options=Options(platforms=envelope.platforms, mesh=mesh, without_outputs=_MADE),
        comparison=Comparison(),
        signature=signature_of(envelope),
        custom_calls=(),
        files={name: sha256(content) for name, content in files.items()},
    )
    return Evidence(manifest, files, compared=False)


def _writer(artifact: Artifact, calendar: Calendar) -> Writer:
    """One of the releases that can have written it: it only names the golden that is replayed."""
    possible = writers(artifact, calendar_entries(calendar))
    jaxlib = possible[-1] if possible else calendar.newest()
    release = calendar.release(jaxlib)
    return Writer(jax=release.jax, jaxlib=jaxlib, built=release.built, python=UNKNOWN, platform="cpu")


def _made_leaves(envelope: Envelope) -> list[Leaf] | None:
    names = dimension_names(envelope.in_avals)
    sizes = {name: number + 2 for number, name in enumerate(names)}
    leaves = []
    left = _MOST_BYTES
    for aval in envelope.in_avals:
        shape = [size_of(dim, sizes) for dim in aval.shape]
        leaf = _ones(aval, shape, left)
        if leaf is None:
            return None
        left -= leaf.data.nbytes
        leaves.append(leaf)
    return leaves


def _ones(aval: Aval, shape: list[int | None], most_bytes: int) -> Leaf | None:
    """An array of ones; None for a size that is not known or too large, and for a dtype that has no arrays here."""
    if aval.dtype in KEYS:
        name, shape = "uint32", [*shape, _KEY_WORDS[aval.dtype]]
    elif aval.dtype in PLAIN:
        name = aval.dtype
    elif aval.dtype == "float0":
        name = "bool"
    else:
        meant = numpy_dtype(aval.dtype)
        if meant is None:
            return None
        name = f"u{meant.itemsize}"
    dtype = np.dtype(name)
    count = dtype.itemsize
    for size in shape:
        if size is None or size < 0 or (count := count * size) > most_bytes:
            return None
    if aval.dtype in PLAIN or aval.dtype in KEYS:
        return Leaf(aval.dtype, np.ones(shape, dtype))
    return Leaf(aval.dtype, np.zeros(shape, dtype))  # in bits: 0 in every dtype that NumPy lacks


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


def unstored_golden(manifest: Manifest, files: Mapping[str, bytes], folder: Path, policy: Policy) -> Golden:
    """A golden in a new folder, under a policy. It is in no store: one that is without outputs may not be stored."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (golden,) = under_policy([Golden(manifest, folder)], policy)
    return golden


def prove(
    manifest: Manifest,
    files: Mapping[str, bytes],
    evidence: Evidence,
    converted: Converted,
    options: ReplayOptions,
    notify: Callable[[str], None],
) -> Proof:
    """Replay a converted golden in its reader.

    Args:
        manifest: of the converted golden; with `files`, as `converted_golden` gives them.
        files: its files.
        evidence: what it was made of.
        converted: the artifact and its reader.
        options: policy and calendar.
        notify: called with a line about what happens meanwhile.

    Raises:
        ConversionRefused: the reader does not run it, or gives other outputs.
    """
    jaxlib = converted.reader.jaxlib
    if "cpu" not in manifest.replayed_on:
        return Proof(False, f"it was exported for {', '.join(manifest.options.platforms)}, which were not tried")
    options = replace(options, limits=Limits(jobs=1))  # it is one cell
    with scratch_folder() as scratch:
        golden = unstored_golden(manifest, files, scratch / "golden", options.policy)
        (outcome,) = replay_here([Cell(golden, options.calendar.release(jaxlib), "cpu")], options, notify=notify)
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
