"""`jaxexport goldens add` and `noise`: who wrote an artifact, whether its writer replays it, and its noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from export_core.artifact import Artifact
from export_core.artifact.writers import contradiction
from export_core.cli.output import echo
from export_core.goldens import Comparison, Golden, GoldenError, GoldenStore, Manifest, Writer
from export_core.goldens.manifest import UNKNOWN
from export_core.goldens.store import staged_golden
from export_core.inspection.describe import find_writer
from export_core.inspection.noise_text import PROVES_NOTHING, noise_text
from export_core.matrix import Limits, MatrixError, Selection
from export_core.matrix.comparisons import under_policy
from export_core.matrix.noise_runs import with_noise
from export_core.measuring import measure_goldens
from export_core.phrases import plural
from export_core.policy import Policy
from export_core.releases import Calendar, ReleaseError
from export_core.releases.entries import calendar_entries
from export_core.report import first_replay
from export_core.run_options import RunOptions
from export_core.session import Observer, run_matrix


def writer_of(artifact: Artifact, calendar: Calendar, named: str | None) -> Writer:
    """The writer of an artifact: the one that was named (``0.11.2``, ``0.10.1-jax0.10.2``), or else the only one.

    Raises `GoldenError` where several jaxlibs can have written it, none can, or the named one cannot.
    """
    clues = find_writer(artifact, calendar_entries(calendar))
    jaxlib, _, jax = (named or clues["jaxlib"] or "").partition("-jax")
    if not jaxlib:
        by = f"jax {clues['jax']} wrote it, with one of several jaxlibs" if clues["jax"] else "it names no writer"
        raise GoldenError(
            f"{artifact.name}: expected an artifact that one jaxlib alone can have written, since windows count from "
            f"the day it was built; {by}. Name the jaxlib with --writer; these fit: "
            f"{', '.join(clues['candidates']) or 'none in the calendar'}."
        )
    # An artifact that does not name its jax was most likely written by the jax with the jaxlib's number.
    jax = jax or clues["jax"] or (jaxlib if jaxlib in calendar.jax else calendar.release(jaxlib).jax)
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


def replay_by_writer(manifest: Manifest, files: Mapping[str, bytes], policy: Policy) -> str:
    """What the writer of a golden makes of it, in a sentence. Raises `GoldenError` for one that may not be stored."""
    writer = manifest.writer
    selection = Selection(readers=f"{writer.jaxlib}-jax{writer.jax}")
    options = RunOptions(results=None, cache=False)
    observer = Observer(note=_note)
    with staged_golden(manifest, files) as golden:
        try:
            # Known failures are left out: their globs are checked against the width of a whole plan.
            own = msgspec.structs.replace(policy, known_failures=())
            (result,) = run_matrix(own, selection, options, goldens=[golden], observer=observer).results
        except (MatrixError, ReleaseError) as error:
            return f"not replayed: {error}"
    replay = first_replay(result)
    if replay.problem:
        raise GoldenError(replay.problem)
    if replay.unknown:
        return f"not replayed: {replay.unknown}"
    if replay.crash:
        return f"its own writer crashes when it replays it: {replay.crash}"
    return "its own writer replays it"


def with_own_noise(
    manifest: Manifest, files: dict[str, bytes], policy: Policy
) -> tuple[Manifest, dict[str, bytes], str]:
    """A golden with its noise, and what was measured, in a sentence.

    Raises `GoldenError` for one that may not be stored, since its numbers prove nothing.
    """
    with staged_golden(manifest, files) as golden:
        ((_, measured),) = measure_goldens([golden], policy, Limits(), _note)
    if isinstance(measured, str):
        return manifest, files, f"its noise is not known: {measured}"
    (compared,) = under_policy([golden], policy)
    if measured.proves_nothing and compared.manifest.comparison == Comparison():
        raise GoldenError(f"{manifest.case}: {PROVES_NOTHING}")
    return *with_noise(manifest, files, measured), noise_text(measured.record)


def add_noise(store: GoldenStore, goldens: Sequence[Golden], policy: Policy) -> None:
    """Measure the noise of stored goldens and store it with them."""
    known = 0
    for golden, measured in measure_goldens(goldens, policy, Limits(), _note):
        if isinstance(measured, str):
            echo(f"{golden.id}  no noise: {measured}")
            continue
        known += 1
        store.write(*with_noise(golden.manifest, golden.files(), measured))
        echo(f"{golden.id}  {noise_text(measured.record)}")
    echo(f"noise of {known} of {plural(len(goldens), 'golden')} measured")


def _note(text: str) -> None:
    echo(text, err=True)
