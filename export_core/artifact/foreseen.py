"""What to expect of an artifact on each platform, foreseen from its bytes and the lists of stable targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact.audit import judge_calls
from export_core.releases.stable_targets import stable_targets

if TYPE_CHECKING:
    from collections.abc import Set

    from export_core.artifact.artifact import Artifact

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_PREFIXES = {
    "cpu": ("lapack_", "blas_"),
    "cuda": ("cusolver_", "cusparse_", "cublas_", "cudnn_", "cu_", "__cu", "__gpu$", "mosaic_gpu"),
    "rocm": ("hipsolver_", "hipsparse_", "hipblas_", "hip_", "__hip", "__gpu$"),
    "tpu": ("tpu_custom_call",),
}
# The TPU compiler's own, which have no prefix.
_TPU = frozenset({"Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors", "Qr", "ApproxTopK"})


class Foreseen(NamedTuple):
    """What is foreseen for a platform in the newest release."""

    platform: str
    """The platform."""
    exported: bool
    """Whether it was exported for that platform."""
    targets: tuple[str, ...]
    """The custom calls that it makes there: those of this platform, and of none in particular."""
    unpromised: tuple[str, ...]
    """Those that the release does not promise."""
    note: str
    """What else is to be known."""


def foreseen(artifact: Artifact, platform: str, promised: Set[str], reader: str) -> Foreseen:
    """Foresee one platform of an artifact.

    Args:
        artifact: what was read.
        platform: one of `PLATFORMS`.
        promised: targets that the reader's release guarantees.
        reader: what to call the reader.

    Raises:
        ArtifactError: a module cannot be read.
    """
    envelope = artifact.envelope
    platforms = PLATFORMS if envelope is None else envelope.platforms
    # With jax's check of platforms off, jax runs it anywhere, as its first platform.
    lifted = envelope is not None and any(check.kind == "platform" for check in envelope.disabled_checks)
    called = {call.target for call in artifact.custom_calls}
    targets = tuple(sorted(target for target in called if belongs(target, platform)))
    calls = [call for call in artifact.custom_calls if call.target in targets]
    unpromised = tuple(finding.target for finding in judge_calls(calls, promised) if not finding.ok)
    exported = platform in platforms
    if not exported and not lifted:
        note = f"refused: it was exported for {', '.join(platforms)}"
    else:
        also = "" if exported else "not exported for it, and the check is off; "
        if artifact.unread:
            note = f"{also}not known: parts of it are not read"
        elif unpromised:
            note = f"{also}calls {', '.join(unpromised)}, which {reader} does not promise to have"
        elif targets:
            promise = "promised by" if envelope is not None else "on the stable list of"
            note = f"{also}calls {', '.join(targets)}, all {promise} {reader}"
        else:
            note = f"{also}makes no custom call"
    return Foreseen(platform, exported, targets, unpromised, note)


def foreseen_everywhere(artifact: Artifact, reader: str | None) -> tuple[Foreseen, ...]:
    """Foresee every platform in the release of a jaxlib, by its list of stable targets; nothing where none is known.

    Raises:
        ArtifactError: a module cannot be read.
    """
    if reader is None:
        return ()
    return tuple(foreseen(artifact, name, stable_targets(reader), f"jaxlib {reader}") for name in PLATFORMS)


def belongs(target: str, platform: str) -> bool:
    """Whether a target is called on a platform: it is that platform's own, or no other's."""
    owners = {name for name, prefixes in _PREFIXES.items() if target.startswith(prefixes)}
    if target in _TPU:
        owners.add("tpu")
    return not owners or platform in owners
