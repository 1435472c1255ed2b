"""Which goldens does the policy relax, each on its own? Before they are planned: what is kept, sent away and cached follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from export_core.goldens import Golden, Manifest
from export_core.matrix.errors import MatrixError
from export_core.policy import Quirk

_RELAXING = ("rtol", "atol", "ulp")
_WITHOUT_TOLERANCE = ("exact",)


def relaxed(goldens: Sequence[Golden], quirks: Sequence[Quirk]) -> list[Golden]:
    """The goldens, with what quirks relax in their manifests; on disk they stay as they are.

    Raises `MatrixError` for a tolerance that the golden's comparator would not look at.
    """
    return [
        replace(golden, manifest=_relaxed(golden.manifest, found))
        if (found := quirks_of(golden.manifest, quirks))
        else golden
        for golden in goldens
    ]


def quirks_of(manifest: Manifest, quirks: Iterable[Quirk]) -> list[Quirk]:
    """Those that are about this golden."""
    names = (manifest.writer.jaxlib, manifest.writer.id)
    return [quirk for quirk in quirks if quirk.case == manifest.case and quirk.writer in names]


def relaxes(quirk: Quirk) -> str:
    """What a quirk relaxes: ``rtol 0.001, custom call my_target``."""
    looser = [f"{name} {_amount(value)}" for name in _RELAXING if (value := getattr(quirk, name)) is not None]
    return ", ".join([*looser, *(f"custom call {target}" for target in quirk.allow)])


def _relaxed(manifest: Manifest, quirks: Sequence[Quirk]) -> Manifest:
    comparison, allow = manifest.comparison, dict(manifest.options.allow)
    for quirk in quirks:
        looser = {name: value for name in _RELAXING if (value := getattr(quirk, name)) is not None}
        if looser and (comparison.compare in _WITHOUT_TOLERANCE or ":" in comparison.compare):
            raise MatrixError(
                f"{quirk.location or 'quirks'}: expected a golden whose comparator takes tolerances, found {manifest.case} with "
                f"{comparison.compare!r}, which looks at none: {relaxes(quirk)} would change nothing. List a known failure instead."
            )
        comparison = msgspec.structs.replace(
            comparison, **{name: _over(getattr(comparison, name), value) for name, value in looser.items()}
        )
        allow |= dict.fromkeys(quirk.allow, f"quirk: {quirk.reason}; owner {quirk.owner}, {quirk.issue}")
    return msgspec.structs.replace(
        manifest, comparison=comparison, options=msgspec.structs.replace(manifest.options, allow=allow)
    )


def _over(own: Any, quirk: Any) -> Any:
    """A quirk by dtype leaves the other dtypes as they were, where those are said by dtype too."""
    return {**own, **quirk} if isinstance(own, Mapping) and isinstance(quirk, Mapping) else quirk


def _amount(value: Any) -> str:
    return (
        ", ".join(f"{dtype} {number:g}" for dtype, number in value.items())
        if isinstance(value, Mapping)
        else f"{value:g}"
    )
