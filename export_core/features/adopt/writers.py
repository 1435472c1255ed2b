"""Who wrote an artifact, as a golden records it."""

from __future__ import annotations

from export_core.artifact import Artifact
from export_core.artifact.writers import contradiction, find_writer
from export_core.goldens import GoldenError, Writer
from export_core.goldens.manifest import UNKNOWN
from export_core.releases import Calendar
from export_core.releases.entries import calendar_entries


def writer_of(artifact: Artifact, calendar: Calendar, named: str | None) -> Writer:
    """The writer of an artifact: the one that was named (``0.11.2``, ``0.10.1-jax0.10.2``), or else the only one.

    Raises `GoldenError` where several jaxlibs can have written it, none can, or the named one cannot.
    """
    clues = find_writer(artifact, calendar_entries(calendar))
    jaxlib, _, jax = (named or clues.jaxlib or "").partition("-jax")
    if not jaxlib:
        by = f"jax {clues.jax} wrote it, with one of several jaxlibs" if clues.jax else "it names no writer"
        raise GoldenError(
            f"{artifact.name}: expected an artifact that one jaxlib alone can have written, since windows count from "
            f"the day it was built; {by}. Name the jaxlib with --writer; these fit: "
            f"{', '.join(clues.candidates) or 'none in the calendar'}."
        )
    # An artifact that does not name its jax was most likely written by the jax with the jaxlib's number.
    jax = jax or clues.jax or (jaxlib if jaxlib in calendar.jax else calendar.release(jaxlib).jax)
    known = calendar.jaxlib.get(jaxlib)
    if known and (problem := contradiction(artifact, jax, jaxlib, known.stablehlo)):
        raise GoldenError(f"{artifact.name}: --writer {jaxlib}: {problem}")
    if jax in calendar.jax:
        calendar.pair(jaxlib, jax)
    platforms = artifact.envelope.platforms if artifact.envelope is not None else ()
    return Writer(
        jax=jax,
        jaxlib=jaxlib,
        built=calendar.built(jaxlib),
        python=UNKNOWN,
        platform="cpu" if "cpu" in platforms or not platforms else platforms[0],
    )
