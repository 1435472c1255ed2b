"""The search for the writer of an artifact: its format, its StableHLO version and the jax that it names.

A function that takes an artifact raises `ArtifactError` if a module of it cannot be read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

from export_core.artifact.artifact import Artifact
from export_core.artifact.audit import AuditFinding, audit
from export_core.artifact.envelope.fields import Envelope
from export_core.artifact.envelope.formats import FIRST_JAX, LAST_JAX, format_in_words
from export_core.base.named_tuple import NamedTuple
from export_core.releases.calendar_entries import CalendarEntry, shipped_entries
from export_core.releases.names import version_numbers
from export_core.releases.stable_targets import stable_targets

# The oldest and the newest calling convention that a jax writes, from this one on. Source: the minimum and the maximum
# of the releases' own writers; docs/reference/calling-conventions.md has them for people.
CONVENTIONS = {(0, 7): (9, 10), (0, 4, 26): (9, 9), (0, 4, 20): (6, 9), (0, 4, 14): (6, 8)}
_WRITTEN_AT_FIRST = "0.9.0"  # The StableHLO version that releases write when none is 4 or 12 weeks old.


class WrittenBy(NamedTuple):
    """The writer of an artifact, as far as the bytes of the artifact show which release it is."""

    jax: str | None  # The jax that the artifact names, null if it names none.
    jaxlib: str | None  # The jaxlib, null if several or none can have written the artifact, and for a bare module.
    candidates: tuple[str, ...]  # All jaxlibs that can have written the artifact.
    producer: str  # The producer's name in the header of the bytecode, such as StableHLO_v1.18.0.
    serialization_version: int | None  # The version of the envelope, null for a bare module.
    formats: tuple[int, int] | None
    """The oldest and the newest format that the envelope can have; null for a bare module."""

    @property
    def possible(self) -> tuple[str, ...]:
        """The jaxlib if it is known, otherwise all jaxlibs that can have written the artifact."""
        return (self.jaxlib,) if self.jaxlib else self.candidates


def find_writer(artifact: Artifact, releases: Sequence[CalendarEntry]) -> WrittenBy:
    """Return the writer of an artifact, by the artifact's format, its StableHLO version and the jax that it names.

    The writer's jaxlib is known only if a single release fits, since a jax runs on all jaxlibs from a minimum to its
    own version.
    """
    envelope = artifact.envelope
    candidates = writers(artifact, releases)
    jax = envelope.jax_version if envelope is not None else None
    if jax is not None:
        works = {release.jaxlib for release in releases if jax in release.all_jax}
        if not works:  # a jax that the calendar lacks works on none that is newer
            try:
                number = version_numbers(jax)  # the artifact names its jax, so that this may be any text
                works = {version for version in candidates if version_numbers(version) <= number}
            except ValueError:
                pass
        candidates = tuple(version for version in candidates if version in works)
    return WrittenBy(
        jax=jax,
        jaxlib=candidates[0] if len(candidates) == 1 and envelope is not None else None,
        candidates=candidates,
        producer=artifact.module.producer,
        serialization_version=None if envelope is None else envelope.serialization_version,
        formats=None if envelope is None else envelope.format_range,
    )


def is_rewritten(artifact: Artifact, writer: WrittenBy, releases: Sequence[CalendarEntry]) -> bool:
    """Return whether an exported artifact was changed after its export, as `jaxexport convert` does.

    It was changed if no release writes its format, calling convention and StableHLO version together, although none of
    these is newer than the known releases. `writer` is what `find_writer` returned for the artifact.
    """
    if artifact.envelope is None or writer.candidates:
        return False
    is_known = writer.jax is None or any(writer.jax in release.all_jax for release in releases)
    written = {stablehlo for release in releases for stablehlo in (*_written(release.stablehlo), release.stablehlo[0])}
    newest = max((version_numbers(stablehlo) for stablehlo in written if stablehlo), default=())
    try:
        return is_known and version_numbers(artifact.module.stablehlo_version or "") <= newest
    except ValueError:  # raw bytecode, or a producer with another name
        return False


def audit_calls(
    artifact: Artifact, writer: WrittenBy, allow: Mapping[str, str], reader: str | None = None
) -> tuple[AuditFinding, ...]:
    """Audit an artifact against the targets that its writer promises.

    If several releases can have written the artifact, only the targets that all of them promise count.

    `allow` has the targets that the policy allows, with their reasons. `reader` is a jaxlib that must promise the
    targets too; None if there is no reader to consider.
    """
    who = writer.possible
    # The list is in jax, which newer artifacts name.
    lists = [stable_targets(version) for version in ((writer.jax,) if writer.jax and who else who)]
    return audit(
        artifact,
        frozenset.intersection(*lists) if lists else None,
        None if reader is None else stable_targets(reader),
        allow=allow,
        writer=f"jaxlib {who[0]}" if len(who) == 1 else f"all of the {len(who)} releases that can have written it",
        reader=f"jaxlib {reader}",
    )


def writers(artifact: Artifact, releases: Sequence[CalendarEntry]) -> tuple[str, ...]:
    """Return the jaxlibs that can have written an artifact, in the order of `releases`; empty if none can.

    A jaxlib fits if a jax that runs on it writes the artifact's format. A bare module names the StableHLO version that
    it was written for: every jaxlib with that version or a newer one counts.
    """
    written = artifact.module.stablehlo_version
    if artifact.envelope is None and artifact.saved_model is None:
        try:
            oldest = version_numbers(written or "")
        except ValueError:
            return ()
        return tuple(
            r.jaxlib for r in releases if r.stablehlo[0] is not None and version_numbers(r.stablehlo[0]) >= oldest
        )
    since, until = _format_by(artifact.envelope) if artifact.envelope is not None else ((), (math.inf,))
    return tuple(
        release.jaxlib
        for release in releases
        if written in _written(release.stablehlo)
        and any(since <= version_numbers(jax) <= until and _writes(jax, artifact) for jax in release.all_jax)
    )


def contradiction(artifact: Artifact, jax: str, jaxlib: str, stablehlo: Sequence[str | None]) -> str:
    """Return why this jax and jaxlib cannot have written an artifact, as a sentence; "" if they can have.

    `stablehlo` has the StableHLO versions of that jaxlib, as in `CalendarEntry`. Versions that are not known are not
    compared.
    """
    if (envelope := artifact.envelope) is not None:
        if envelope.jax_version not in (None, jax):
            return f"expected an artifact by jax {jax}, found one by jax {envelope.jax_version}."
        since, until = _format_by(envelope)
        if not since <= version_numbers(jax) <= until:
            found = format_in_words(*envelope.format_range)
            return f"expected an artifact in a format that jax {jax} writes, found format {found}."
        if not _writes(jax, artifact):
            found = ", ".join(sorted({str(level.calling_convention_version) for level in envelope.levels}))
            return f"expected a calling convention that jax {jax} writes, found {found}."
    written, possible = artifact.module.stablehlo_version, _written(tuple(stablehlo))
    if any(stablehlo) and written not in possible:
        return f"expected a module for StableHLO {' or '.join(possible)}, as jaxlib {jaxlib} writes, found {written}."
    return ""


def _writes(jax: str, artifact: Artifact) -> bool:
    """Return whether a jax can write the calling conventions of an artifact and its derivatives."""
    oldest, newest = _conventions_of(jax)
    levels = artifact.envelope.levels if artifact.envelope is not None else ()
    return all(oldest <= level.calling_convention_version <= newest for level in levels)


@functools.lru_cache(maxsize=1024)
def _conventions_of(jax: str) -> tuple[float, float]:
    """Return the oldest and the newest calling convention that a jax writes; infinity for an unknown newest one."""
    number = version_numbers(jax)
    oldest, newest = next((both for first, both in CONVENTIONS.items() if number >= first), (1, 5))
    # What a release to come can write is not known.
    is_newer = all(number > version_numbers(entry.jax) for entry in shipped_entries()[-1:])
    return oldest, math.inf if is_newer else newest


@functools.lru_cache(maxsize=1024)
def _written(versions: tuple[str | None, ...]) -> tuple[str, ...]:
    """Return the StableHLO versions for which a jaxlib writes modules.

    `versions` are the StableHLO versions of the day of its release, of 4 weeks before, and of 12 weeks before.
    """
    # jax.export takes the version of 4 weeks ago; a writer whose backend is a plugin, that of 12 weeks ago.
    return tuple(dict.fromkeys(filter(None, versions[1:]))) or (_WRITTEN_AT_FIRST,)


def _format_by(envelope: Envelope) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the version numbers of the oldest and the newest jax that write an envelope's format.

    They are `()` if there is no oldest jax, and `(infinity,)` if there is no newest.
    """
    first, last = envelope.format_range
    since = next((jax for number, jax in FIRST_JAX.items() if number <= first), ())
    until = next((jax for number, jax in LAST_JAX.items() if last <= number), (math.inf,))
    return since, until
