"""The check that goldens have the writer and the build date that they claim: windows count from them."""

from __future__ import annotations

from collections.abc import Iterable

from export_core.artifact import Artifact
from export_core.artifact.writers import contradiction
from export_core.goldens.errors import GoldenError
from export_core.goldens.manifest_file import RESTORE
from export_core.goldens.store import MANIFEST, Golden
from export_core.releases import Calendar, ReleaseError


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


def check_writer(golden: Golden, artifact: Artifact, calendar: Calendar) -> None:
    """Raise `GoldenError` where the artifact's own bytes show that the claimed writer did not write it.

    By another writer's name a golden would leave its window early. Raises `ArtifactError` for one without a header.
    """
    writer, origin = golden.manifest.writer, golden.manifest.origin
    if origin is not None and "writer" in origin.derived:  # a build between two releases wrote it
        return
    entry = calendar.jaxlib.get(writer.jaxlib)
    if entry and (problem := contradiction(artifact, writer.jax, writer.jaxlib, entry.stablehlo)):
        raise GoldenError(f"{_line(golden, 'jaxlib')}: writer: {problem} {RESTORE}")


def _line(golden: Golden, key: str) -> str:
    """``golden.yaml:5``, the line of a key of the writer, where the file can be read."""
    path = golden.folder / MANIFEST
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return str(path)
    # Only the writer is a table with these keys, and its keys are indented.
    number = next((number for number, line in enumerate(lines, 1) if line.startswith(f"  {key}: ")), None)
    return f"{path}:{number}" if number else str(path)
