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
    """Return whether a reader registers LAPACK's functions before it runs an artifact.

    No runtime but jaxlib does.
    """
    return not release.runtime and version_numbers(release.jaxlib) >= INITIALIZED_SINCE


def crashes_in_any_export(targets: Iterable[str], release: ReleaseOfReader) -> bool:
    """Return whether a jaxlib dies of one of these calls in a fresh process, whichever jax exported the function."""
    return not release.runtime and not initializes_lapack(release) and any(one.startswith(LAPACK) for one in targets)


def why_not_replaced(targets: Iterable[str], release: ReleaseOfReader) -> str:
    """Return why a conversion for a reader replaces not all of these custom calls; "" if it replaces them.

    A call with a dynamic shape is not replaced either, which its target does not tell.
    """
    for target in targets:
        match = _TARGET.fullmatch(target)
        if match is None or match["family"] not in REPLACED | REPLACED_BY_LAPACK:
            return f"{target} cannot be replaced: no replacement of it is known"
        if match["family"] in REPLACED_BY_LAPACK and (match["ffi"] or not initializes_lapack(release)):
            return f"{target} cannot be replaced: jax has no lowering of it without LAPACK"
    return ""


def lapack_is_replaced(targets: Iterable[str], release: ReleaseOfReader, allow: Collection[str]) -> bool:
    """Return whether a conversion replaces those calls of LAPACK, of an artifact's, that a jaxlib does not run.

    `allow` has the targets that the project accepts.
    """
    calls = [target for target in targets if target.startswith(LAPACK)]
    if initializes_lapack(release):
        promised = stable_targets(release.jax)
        calls = [target for target in calls if target not in promised and target not in allow]
    return not why_not_replaced(calls, release)
