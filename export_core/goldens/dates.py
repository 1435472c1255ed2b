"""The check of what goldens claim of themselves, writer, build date and conversion: windows count from them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from export_core.artifact import Artifact
from export_core.artifact.envelope.encode import encode
from export_core.artifact.writers import contradiction
from export_core.goldens import jax_goldens
from export_core.goldens.errors import GoldenError
from export_core.goldens.manifest import ConvertedFrom, Manifest
from export_core.goldens.manifest_file import RESTORE
from export_core.goldens.store import ARTIFACT, MANIFEST, Golden
from export_core.releases import Calendar, ReleaseError
from export_core.untrusted import decode_json, read_regular


def check_dates(goldens: Iterable[Golden], calendar: Calendar, *, all_known: bool = True) -> None:
    """Raise `GoldenError`, naming file and line, for each golden whose writer was built on another day.

    `all_known`: a writer that the calendar lacks is an error too, since nothing contradicts the date that its golden
    claims. Without it, such a golden is not checked.
    """
    problems = []
    for golden in goldens:
        writer = golden.manifest.writer
        try:
            built = calendar.built(writer.jaxlib)
        except ReleaseError as error:  # with what it is like, and what to do
            if all_known:
                problems.append(f"{_line(golden, 'jaxlib')}: writer.jaxlib: {error}")
            continue
        if built != writer.built:
            problems.append(
                f"{_line(golden, 'built')}: writer.built: expected {built}, the build date of jaxlib "
                f"{writer.jaxlib} in the calendar, found {writer.built}. {RESTORE}"
            )
    if problems:
        raise GoldenError("\n".join(problems))


def check_claims(goldens: Iterable[Golden], calendar: Calendar, *, all_known: bool = True) -> None:
    """Raise `GoldenError` for a golden whose bytes or whose date contradict what it says of itself.

    Raises `ArtifactError` for an artifact without a header. See `check_dates` for `all_known`.
    """
    goldens = list(goldens)
    for golden in goldens:
        check_writer(golden, golden.read_artifact(), calendar)
    check_dates(goldens, calendar, all_known=all_known)


def is_unusual(manifest: Manifest) -> bool:
    """Whether a golden says that its artifact is not as its writer exported it."""
    return manifest.converted_from is not None or (manifest.origin is not None and "writer" in manifest.origin.derived)


def check_writer(golden: Golden, artifact: Artifact, calendar: Calendar) -> None:
    """Raise `GoldenError` where the artifact's own bytes show that the claimed writer did not write it.

    By another writer's name, or as a converted artifact, a golden would leave its window early. Raises `ArtifactError`
    for one without a header.
    """
    writer = golden.manifest.writer
    entry = calendar.jaxlib.get(writer.jaxlib)
    problem = contradiction(artifact, writer.jax, writer.jaxlib, entry.stablehlo) if entry else ""
    if golden.manifest.converted_from is not None:
        _check_conversion(golden, artifact, by_writer=entry is not None and not problem)
    elif problem and not jax_goldens.is_known(artifact, writer):
        raise GoldenError(f"{_line(golden, 'jaxlib')}: writer: {problem} {RESTORE}")


class _Record(msgspec.Struct):
    """What a conversion's record says that can be checked."""

    sha256: str
    converted_from: ConvertedFrom


def _check_conversion(golden: Golden, artifact: Artifact, *, by_writer: bool) -> None:
    """Raise `GoldenError` unless the golden lists the record of its conversion, and its artifact can be converted.

    `by_writer`: whether nothing in the artifact contradicts its writer. Then it has to be as `jaxexport convert`
    encodes an envelope, which no jax does.
    """
    origin, name = golden.manifest.converted_from, f"{ARTIFACT}.converted.json"
    where = f"{golden.folder / MANIFEST}: converted_from"
    if name not in golden.manifest.files:
        raise GoldenError(f"{where}: expected the record {name} of the conversion under `files`, found none. {RESTORE}")
    try:
        record: _Record = decode_json(golden.content(name), _Record)
    except msgspec.MsgspecError as error:
        raise GoldenError(f"{golden.folder / name}: not the record of a conversion: {error}. {RESTORE}") from None
    if origin != record.converted_from or record.sha256 != artifact.sha256:
        raise GoldenError(f"{where}: expected what {name} says, found the record of another artifact. {RESTORE}")
    envelope = artifact.envelope
    if record.converted_from.sha256 == artifact.sha256 or (
        by_writer and (envelope is None or encode(envelope) != bytes(artifact.data))
    ):
        raise GoldenError(
            f"{where}: expected a converted artifact, found one as jaxlib {golden.manifest.writer.jaxlib} writes it. "
            f"Delete `converted_from`. {RESTORE}"
        )


def _line(golden: Golden, key: str) -> str:
    """``golden.yaml:5``, the line of a key of the writer, where the file can be read."""
    path = golden.folder / MANIFEST
    try:
        lines = read_regular(path).decode(errors="replace").splitlines()
    except OSError:
        return str(path)
    # Only the writer is a table with these keys, and its keys are indented.
    number = next((number for number, line in enumerate(lines, 1) if line.startswith(f"  {key}: ")), None)
    return f"{path}:{number}" if number else str(path)
