"""Quirks: what the policy relaxes for single goldens."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from export_core.base.tolerances import AMOUNTS, GOLDEN, takes_tolerances
from export_core.goldens import Comparison, Golden, Manifest
from export_core.matrix.errors import MatrixError
from export_core.policy import NumbersRule, Quirk


def apply_quirks(goldens: Sequence[Golden], quirks: Sequence[Quirk]) -> list[Golden]:
    """The goldens, with what quirks relax in their manifests.

    Raises `MatrixError` for a tolerance that the golden's comparator would not look at.
    """
    return [_relax(golden, own) if (own := quirks_of(golden.manifest, quirks)) else golden for golden in goldens]


def quirks_of(manifest: Manifest, quirks: Iterable[Quirk]) -> list[Quirk]:
    """The quirks of this golden."""
    return [quirk for quirk in quirks if is_about(quirk, manifest.case, manifest.writer.jaxlib, manifest.writer.id)]


def is_about(quirk: Quirk, case: str, jaxlib: str, writer: str) -> bool:
    """Whether a quirk relaxes the golden of this case by this writer, whose id is the name of the golden's folder."""
    return quirk.case == case and any(fnmatch.fnmatchcase(name, quirk.writer) for name in (jaxlib, writer))


def relaxation(quirk: Quirk) -> str:
    """What a quirk relaxes, in words: ``rtol 0.001, custom call my_target``."""
    return ", ".join([*tolerances_in_words(quirk), *(f"custom call {target}" for target in quirk.allow)])


def tolerances_in_words(entry: Quirk | NumbersRule | Comparison) -> list[str]:
    """Each tolerance that is set: ``rtol 0.001``."""
    return [f"{name} {_amount(value)}" for name in AMOUNTS if (value := getattr(entry, name)) is not None]


def source_name(entry: Quirk | NumbersRule) -> str:
    """How messages about numbers name an entry of a policy: ``export_compat.yaml:12``, in whichever folder it is."""
    return Path(entry.location).name or "policy"


def _relax(golden: Golden, quirks: Sequence[Quirk]) -> Golden:
    manifest, sources = golden.manifest, dict(golden.sources)
    comparison, allow = manifest.comparison, dict(manifest.options.allow)
    for quirk in quirks:
        looser = {name: value for name in AMOUNTS if (value := getattr(quirk, name)) is not None}
        if looser and not takes_tolerances(comparison.compare):
            raise MatrixError(
                f"{quirk.location or 'quirks'}: expected a golden whose comparator takes tolerances, found "
                f"{manifest.case} with {comparison.compare!r}, which looks at none: {relaxation(quirk)} would change "
                "nothing. List a known failure instead."
            )
        for name, value in looser.items():
            own = getattr(comparison, name)
            by = _by_dtype(own, sources.get(name, GOLDEN))
            sources[name] = _override(by, _by_dtype(value, source_name(quirk)))
            comparison = msgspec.structs.replace(comparison, **{name: _override(own, value)})
        allow |= dict.fromkeys(quirk.allow, f"quirk: {quirk.reason}; owner {quirk.owner}, {quirk.issue}")
    options = msgspec.structs.replace(manifest.options, allow=allow)
    manifest = msgspec.structs.replace(manifest, comparison=comparison, options=options)
    return replace(golden, manifest=manifest, sources=sources)


def _override(own: Any, quirk: Any) -> Any:
    """A tolerance by dtype leaves the other dtypes as they were, if those are given by dtype too."""
    return {**own, **quirk} if isinstance(own, Mapping) and isinstance(quirk, Mapping) else quirk


def _by_dtype(amount: Any, source: Any) -> Any:
    """What set a tolerance, for each dtype that the tolerance names, if it names some."""
    return dict.fromkeys(amount, source) if isinstance(amount, Mapping) and isinstance(source, str) else source


def _amount(value: Any) -> str:
    return (
        ", ".join(f"{dtype} {number:g}" for dtype, number in value.items())
        if isinstance(value, Mapping)
        else f"{value:g}"
    )
