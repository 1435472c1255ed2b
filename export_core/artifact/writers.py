"""The releases that can have written an artifact that names none: its StableHLO version and its format leave few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from export_core.artifact.artifact import Artifact

# The first and the last jax of the serialization formats that the slots tell apart. Source: the releases' own writers.
_FIRST_JAX = (
    (12, (0, 11, 1)),
    (11, (0, 10, 1)),
    (10, (0, 10, 0)),
    (8, (0, 9, 2)),
    (6, (0, 9, 0)),
    (5, (0, 8, 2)),
    (2, (0, 4, 24)),
)
_LAST_JAX = ((4, (0, 8, 1)), (6, (0, 9, 0, 1)), (9, (0, 9, 2)), (11, (0, 11, 0)))


def writers(artifact: Artifact, stablehlo: Mapping[str, Sequence[str | None]]) -> tuple[str, ...]:
    """Return the jaxlib releases that can have written it, in the order of `stablehlo`; empty where no known one fits.

    Args:
        artifact: what was read. Formats from 12 on name their jax; then only the jaxlib is unknown.
        stablehlo: of each jaxlib release, its StableHLO versions: current, of 4 weeks ago, of 12 weeks ago. jax.export
            writes for the second, plugins for the third, and releases that have neither write for 0.9.0.

    Raises:
        ArtifactError: the module's header cannot be read.
    """
    written = artifact.module.stablehlo_version
    fitting = []
    for version, (_, week_4, week_12) in stablehlo.items():
        # jax.export takes the version of 4 weeks ago; a writer whose backend is a plugin, that of 12 weeks ago.
        fits = written in (week_4, week_12) if week_4 else written == "0.9.0"
        if fits and _format_fits(artifact, version):
            fitting.append(version)
    return tuple(fitting)


def _format_fits(artifact: Artifact, version: str) -> bool:
    envelope = artifact.envelope
    if envelope is None:
        return True
    first, last = envelope.format_range
    since = next((jax for number, jax in _FIRST_JAX if number <= first), None)
    until = next((jax for number, jax in _LAST_JAX if last <= number), None)
    own = Version(version).release  # a nightly counts as the release that it becomes
    return (since is None or since <= own) and (until is None or own <= until)
