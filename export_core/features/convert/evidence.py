"""The inputs and outputs by which a converted artifact is verified: those of a golden, given ones, or made inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from export_core.artifact import Artifact, Aval, Envelope
from export_core.artifact.main_check import dimension_names
from export_core.artifact.writers import writers
from export_core.base.untrusted import read_regular
from export_core.goldens import Comparison, Golden, GoldenError, GoldenStore, Leaf, Manifest, Options, Writer
from export_core.goldens.adopt import adopt_artifact, needs_x64, width_of
from export_core.goldens.adopted_mesh import mesh_for
from export_core.goldens.arrays import KEYS, PLAIN, to_npz
from export_core.goldens.dimensions import size_of
from export_core.goldens.manifest import UNKNOWN, signature_of
from export_core.goldens.store import ARTIFACT, INPUTS, sha256
from export_core.releases import Calendar
from export_core.releases.entries import calendar_entries

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
    entries = calendar_entries(calendar)
    possible = writers(artifact, {x.jaxlib: x.stablehlo for x in entries}, {x.jaxlib: x.all_jax for x in entries})
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
        width = width_of(aval.dtype)
        if width is None:
            return None
        name = f"u{width}"
    dtype = np.dtype(name)
    count = dtype.itemsize
    for size in shape:
        if size is None or size < 0 or (count := count * size) > most_bytes:
            return None
    if aval.dtype in PLAIN or aval.dtype in KEYS:
        return Leaf(aval.dtype, np.ones(shape, dtype))
    return Leaf(aval.dtype, np.zeros(shape, dtype))  # in bits: 0 in every dtype that NumPy lacks
