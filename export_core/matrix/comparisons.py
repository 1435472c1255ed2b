"""How each golden of a run is compared: as golden.yaml or its marker says, with the policy's rules and quirks.

The policy's rules (`numbers`) are applied before cells are planned, and its quirks after them. The goldens carry the
result, so the keys of stored outcomes and what is sent to other machines follow from it.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from export_core.base.tolerances import AMOUNTS, GOLDEN, WITHOUT_TOLERANCE, Tolerance, takes_tolerances
from export_core.goldens import Comparison, Golden, Manifest
from export_core.goldens.store import ComparedAs, ComparedGolden
from export_core.matrix.selection import MatrixError
from export_core.policy import Policy
from export_core.policy.entries import NumbersRule, Quirk, matches


def under_policy(goldens: Iterable[Golden], policy: Policy) -> list[ComparedGolden]:
    """Return the goldens with the comparison that the rules and quirks of a policy give them.

    Raises `MatrixError` if a quirk sets a tolerance that the golden's comparator does not use.
    """
    return apply_quirks([under_rules(golden, policy.numbers) for golden in goldens], policy.quirks)


def under_rules(golden: Golden, numbers: Sequence[NumbersRule]) -> ComparedGolden:
    """Return a golden with the comparison of the first rule in `numbers` that matches it; unchanged if none does."""
    how = golden.compared_as
    if rule := rule_of(golden.manifest, numbers):
        comparison = Comparison(rule.compare, rule.rtol, rule.atol, rule.ulp)
        how = ComparedAs(comparison, how.allow, dict.fromkeys(Comparison.__struct_fields__, source_name(rule)))
    return golden.compared(how)


def rule_of(manifest: Manifest, numbers: Sequence[NumbersRule]) -> NumbersRule | None:
    """Return the first rule in `numbers` that matches a golden; None if none does."""
    return next((rule for rule in numbers if rule_matches(rule, manifest)), None)


def rule_matches(rule: NumbersRule, manifest: Manifest) -> bool:
    """Return whether the patterns of a rule match the case and the writer (jaxlib or id) of a golden."""
    writer = manifest.writer
    return any(matches(manifest.case, pattern) for pattern in rule.cases) and any(
        matches(name, pattern) for name in (writer.jaxlib, writer.id) for pattern in rule.writers
    )


def comparison_in_words(comparison: Comparison | NumbersRule) -> str:
    """Return a comparison in words, such as ``eigh, rtol 0.001``; ``the default`` if nothing is set.

    Tolerances that an older version recorded for `exact` or `shape` are left out, since these use none.
    """
    if comparison.compare in WITHOUT_TOLERANCE:
        return comparison.compare
    comparator = [] if comparison.compare == Comparison().compare else [comparison.compare]
    return ", ".join([*comparator, *tolerances_in_words(comparison)]) or "the default"


def quirks_of(manifest: Manifest, quirks: Iterable[Quirk]) -> list[Quirk]:
    """Return those of the policy's quirks that apply to the golden with this manifest."""
    return [quirk for quirk in quirks if is_about(quirk, manifest.case, manifest.writer.jaxlib, manifest.writer.id)]


def is_about(quirk: Quirk, case: str, jaxlib: str, writer: str) -> bool:
    """Return whether a quirk of the policy applies to the golden of a case by a writer.

    `jaxlib` is the version of the writer's jaxlib. `writer` is the writer's id, the name of the golden's folder.
    """
    return quirk.case == case and any(fnmatch.fnmatchcase(name, quirk.writer) for name in (jaxlib, writer))


def relaxation(quirk: Quirk) -> str:
    """Return what a quirk of the policy allows, in words, such as ``rtol 0.001, custom call my_target``."""
    return ", ".join([*tolerances_in_words(quirk), *(f"custom call {target}" for target in quirk.allow)])


def tolerances_in_words(entry: Quirk | NumbersRule | Comparison | Tolerance) -> list[str]:
    """Return a text for each tolerance that is set, such as ``rtol 0.001`` or ``rtol float32 0.001, float64 1e-06``."""
    words = []
    for name in AMOUNTS:
        value = getattr(entry, name)
        if isinstance(value, Mapping):
            words.append(f"{name} {', '.join(f'{dtype} {amount:g}' for dtype, amount in value.items())}")
        elif value is not None:
            words.append(f"{name} {value:g}")
    return words


def source_name(entry: Quirk | NumbersRule) -> str:
    """Return the name of a policy's entry for messages: its file and line, such as ``export_compat.yaml:12``."""
    return Path(entry.location).name or "policy"


def apply_quirks(goldens: Sequence[Golden], quirks: Sequence[Quirk]) -> list[ComparedGolden]:
    """Return the goldens, each with the tolerances and custom calls that its quirks allow.

    Raises `MatrixError` if a quirk sets a tolerance that the golden's comparator does not use.
    """
    return [_relax(golden, quirks_of(golden.manifest, quirks)) for golden in goldens]


def _relax(golden: Golden, quirks: Sequence[Quirk]) -> ComparedGolden:
    how = golden.compared_as
    comparison, allow, sources = how.comparison, dict(how.allow), dict(how.sources)
    for quirk in quirks:
        looser = {name: value for name in AMOUNTS if (value := getattr(quirk, name)) is not None}
        if looser and not takes_tolerances(comparison.compare):
            raise MatrixError(
                f"{quirk.location or 'quirks'}: expected a golden whose comparator takes tolerances, found "
                f"{golden.manifest.case} with {comparison.compare!r}, which takes none: {relaxation(quirk)} would "
                "change nothing. List a known failure instead."
            )
        for name, value in looser.items():
            own = getattr(comparison, name)
            by = _by_dtype(own, sources.get(name, GOLDEN))
            sources[name] = _override(by, _by_dtype(value, source_name(quirk)))
            comparison = structs.replace(comparison, **{name: _override(own, value)})
        allow |= dict.fromkeys(quirk.allow, f"quirk: {quirk.reason}; owner {quirk.owner}, {quirk.issue}")
    return golden.compared(ComparedAs(comparison, allow, sources))


def _override(own: Any, quirk: Any) -> Any:
    """Return a golden's tolerance after a quirk has replaced it; if both are by dtype, only for the quirk's dtypes."""
    return {**own, **quirk} if isinstance(own, Mapping) and isinstance(quirk, Mapping) else quirk


def _by_dtype(amount: Any, source: Any) -> Any:
    """Return the source of a tolerance, such as a file and line; for a tolerance by dtype, the sources by dtype."""
    return dict.fromkeys(amount, source) if isinstance(amount, Mapping) and isinstance(source, str) else source
