"""Which release wrote an artifact that does not say so: its StableHLO version and its format leave few."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from export_core.artifact.artifact import Artifact

# The first jax of each serialization format that can be told from the slots. Source: the releases' own writers.
_FIRST_JAX = ((12, "0.11.1"), (11, "0.10.1"), (10, "0.10.0"), (8, "0.9.2"), (6, "0.9.0"), (5, "0.8.2"), (2, "0.4.24"))
_LAST_JAX = ((4, "0.8.1"), (6, "0.9.0.1"), (9, "0.9.2"), (11, "0.11.0"))


def writers(artifact: Artifact, stablehlo: Mapping[str, Sequence[str | None]]) -> tuple[str, ...]:
    """Return the jaxlib releases that can have written it, in the order of `stablehlo`; none where no known release fits.

    Args:
        artifact: what was read. Formats from 12 on name their jax, and then only the jaxlib is looked for.
        stablehlo: of each jaxlib release, its StableHLO versions: current, of 4 weeks ago, of 12 weeks ago. jax.export writes for the
            second, plugins for the third, and releases that have neither write for 0.9.0.

    Raises:
        ArtifactError: the module's header cannot be read.
    """
    written = artifact.module.stablehlo_version
    found = []
    for version, (_, week_4, week_12) in stablehlo.items():
        fits = written in (week_4, week_12) if week_4 else written == "0.9.0"
        if fits and _format_fits(artifact, version):
            found.append(version)
    return tuple(found)


def _format_fits(artifact: Artifact, version: str) -> bool:
    envelope = artifact.envelope
    if envelope is None:
        return True
    first, last = envelope.format_range
    since = next((jax for number, jax in _FIRST_JAX if number <= first), "0")
    until = next((jax for number, jax in _LAST_JAX if last <= number), None)
    return _key(since) <= _key(version) and (until is None or _key(version) <= _key(until))


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
