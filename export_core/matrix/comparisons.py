"""How goldens are compared under a policy: a rule of its table `numbers`, and quirks on top of it.

Both are applied before cells are planned, since the keys of stored outcomes and what is sent to other machines follow
from the goldens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from export_core.goldens import Comparison, Golden, Manifest
from export_core.matrix.quirks import apply_quirks, source_name, tolerances_in_words
from export_core.policy import NumbersRule, Policy
from export_core.policy.patterns import matches


def under_policy(goldens: Iterable[Golden], policy: Policy) -> list[Golden]:
    """The goldens with the comparisons of the policy; on disk they stay as they are.

    Raises `MatrixError` for a quirk with a tolerance that the golden's comparator would not look at.
    """
    return apply_quirks([under_rules(golden, policy.numbers) for golden in goldens], policy.quirks)


def under_rules(golden: Golden, numbers: Sequence[NumbersRule]) -> Golden:
    """A golden with the comparison of the first rule that matches it, or as it is."""
    if (rule := rule_of(golden.manifest, numbers)) is None:
        return golden
    manifest = msgspec.structs.replace(golden.manifest, comparison=comparison_by(rule))
    source = source_name(rule)
    return replace(golden, manifest=manifest, sources=dict.fromkeys(Comparison.__struct_fields__, source))


def rule_of(manifest: Manifest, numbers: Sequence[NumbersRule]) -> NumbersRule | None:
    """The first rule that matches a golden, or None."""
    return next((rule for rule in numbers if rule_matches(rule, manifest)), None)


def rule_matches(rule: NumbersRule, manifest: Manifest) -> bool:
    """Whether a rule is about a golden, by its case and its writer."""
    writer = manifest.writer
    return any(matches(manifest.case, pattern) for pattern in rule.cases) and any(
        matches(name, pattern) for name in (writer.jaxlib, writer.id) for pattern in rule.writers
    )


def comparison_by(rule: NumbersRule) -> Comparison:
    """The comparison that a rule prescribes."""
    return Comparison(rule.compare, rule.rtol, rule.atol, rule.ulp)


def comparison_in_words(comparison: Comparison | NumbersRule) -> str:
    """``eigh, rtol 0.001``; ``the default`` where nothing is set."""
    comparator = [] if comparison.compare == Comparison().compare else [comparison.compare]
    return ", ".join([*comparator, *tolerances_in_words(comparison)]) or "the default"
