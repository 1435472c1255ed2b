"""Quirks: what the policy relaxes for single goldens.

They are applied before cells are planned, since the keys of stored outcomes and what is sent to other machines follow
from the manifests.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from export_core.goldens import Golden, Manifest
from export_core.matrix.errors import MatrixError
from export_core.policy import Quirk

_TOLERANCES = ("rtol", "atol", "ulp")
# A user's own comparator gets no tolerances either.
_WITHOUT_TOLERANCE = ("exact",)


def apply_quirks(goldens: Sequence[Golden], quirks: Sequence[Quirk]) -> list[Golden]:
    """The goldens, with what quirks relax in their manifests; on disk they stay as they are.

    Raises `MatrixError` for a tolerance that the golden's comparator would not look at.
    """
    return [
        replace(golden, manifest=_relax(golden.manifest, own))
        if (own := quirks_of(golden.manifest, quirks))
        else golden
        for golden in goldens
    ]


def quirks_of(manifest: Manifest, quirks: Iterable[Quirk]) -> list[Quirk]:
    """The quirks of this golden."""
    return [quirk for quirk in quirks if is_about(quirk, manifest.case, manifest.writer.jaxlib, manifest.writer.id)]


def is_about(quirk: Quirk, case: str, jaxlib: str, writer: str) -> bool:
    """Whether a quirk relaxes the golden of this case by this writer, whose id is the name of the golden's folder."""
    return quirk.case == case and any(fnmatch.fnmatchcase(name, quirk.writer) for name in (jaxlib, writer))


def relaxation(quirk: Quirk) -> str:
    """What a quirk relaxes, in words: ``rtol 0.001, custom call my_target``."""
    looser = [f"{name} {_amount(value)}" for name in _TOLERANCES if (value := getattr(quirk, name)) is not None]
    return ", ".join([*looser, *(f"custom call {target}" for target in quirk.allow)])


def _relax(manifest: Manifest, quirks: Sequence[Quirk]) -> Manifest:
    comparison, allow = manifest.comparison, dict(manifest.options.allow)
    for quirk in quirks:
        looser = {name: value for name in _TOLERANCES if (value := getattr(quirk, name)) is not None}
        if looser and (comparison.compare in _WITHOUT_TOLERANCE or ":" in comparison.compare):
            raise MatrixError(
                f"{quirk.location or 'quirks'}: expected a golden whose comparator takes tolerances, found "
                f"{manifest.case} with {comparison.compare!r}, which looks at none: {relaxation(quirk)} would change "
                "nothing. List a known failure instead."
            )
        comparison = msgspec.structs.replace(
            comparison, **{name: _override(getattr(comparison, name), value) for name, value in looser.items()}
        )
        allow |= dict.fromkeys(quirk.allow, f"quirk: {quirk.reason}; owner {quirk.owner}, {quirk.issue}")
    return msgspec.structs.replace(
        manifest, comparison=comparison, options=msgspec.structs.replace(manifest.options, allow=allow)
    )


def _override(own: Any, quirk: Any) -> Any:
    """A tolerance by dtype leaves the other dtypes as they were, if those are given by dtype too."""
    return {**own, **quirk} if isinstance(own, Mapping) and isinstance(quirk, Mapping) else quirk


def _amount(value: Any) -> str:
    return (
        ", ".join(f"{dtype} {number:g}" for dtype, number in value.items())
        if isinstance(value, Mapping)
        else f"{value:g}"
    )
