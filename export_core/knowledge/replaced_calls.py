"""Which custom calls of LAPACK a conversion replaces for a reader, and why not the others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from export_core.artifact.audit import LAPACK
from export_core.base.named_tuple import TYPE_CHECKING
from export_core.releases.names import version_numbers
from export_core.releases.stable_targets import stable_targets

INITIALIZED_SINCE = (0, 10, 0)
"""The first jaxlib that initializes LAPACK for an artifact: https://github.com/jax-ml/jax/issues/29610."""

_TARGET = re.compile(r"(?:lapack|blas)_[sdcz](?P<family>[a-z]+?)(?P<ffi>_ffi)?")

REPLACED = {"potrf", "getrf", "geqrf", "orgqr", "ungqr", "syevd", "heevd", "gesdd", "trsm", "gtsv"}
"""The functions of LAPACK, without the letter of the element type, that jax computes without LAPACK too."""

REPLACED_BY_LAPACK = {"geev", "gees"}
"""The functions whose old calls are replaced by newer calls of LAPACK alone."""


if TYPE_CHECKING:
    from export_core.releases.calendar import Release
    from export_core.releases.calendar_entries import CalendarEntry

    ReleaseOfReader = CalendarEntry | Release


def initializes_lapack(release: ReleaseOfReader) -> bool:
    """Return whether a reader registers LAPACK's functions before it runs an artifact; only newer jaxlibs do."""
    return not release.runtime and version_numbers(release.jaxlib) >= INITIALIZED_SINCE


def crashes_in_any_export(targets: Iterable[str], release: ReleaseOfReader) -> bool:
    """Return whether a jaxlib crashes in a fresh process at one of these custom calls, whichever jax exported it."""
    return not release.runtime and not initializes_lapack(release) and any(one.startswith(LAPACK) for one in targets)


def why_not_replaced(targets: Iterable[str], release: ReleaseOfReader) -> str:
    """Return why a conversion for a reader cannot replace one of these custom calls; "" if it can replace them all.

    Calls with dynamic shapes cannot be replaced either, but targets do not show shapes.
    """
    for target in targets:
        match = _TARGET.fullmatch(target)
        if match is None or match["family"] not in REPLACED | REPLACED_BY_LAPACK:
            return f"{target} cannot be replaced: no replacement of it is known"
        if match["family"] in REPLACED_BY_LAPACK and (match["ffi"] or not initializes_lapack(release)):
            return f"{target} cannot be replaced: jax has no lowering of it without LAPACK"
    return ""


def lapack_to_replace(targets: Iterable[str], release: ReleaseOfReader, allow: Collection[str]) -> list[str]:
    """Return the LAPACK calls of an artifact that a jaxlib does not run, which a conversion would have to replace.

    `targets` are the artifact's custom-call targets. Those in `allow` need no replacement in a jaxlib that initializes
    LAPACK.
    """
    calls = [target for target in targets if target.startswith(LAPACK)]
    if not initializes_lapack(release):
        return calls
    promised = stable_targets(release.jax)
    return [target for target in calls if target not in promised and target not in allow]


def lapack_is_replaced(targets: Iterable[str], release: ReleaseOfReader, allow: Collection[str]) -> bool:
    """Return whether a conversion replaces all LAPACK calls of an artifact that a jaxlib does not run.

    The arguments are those of `lapack_to_replace`.
    """
    return not why_not_replaced(lapack_to_replace(targets, release, allow), release)
