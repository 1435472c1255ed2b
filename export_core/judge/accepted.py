"""What was accepted on purpose, and why: allowed custom calls, disabled safety checks, comparison rules, quirks."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable

import msgspec

from export_core.goldens import Manifest
from export_core.matrix.comparisons import comparison_in_words, rule_of
from export_core.matrix.quirks import quirks_of, relaxation
from export_core.policy import Policy, Quirk
from export_core.releases import load_calendar


class Accepted(msgspec.Struct, frozen=True):
    """One thing with one reason, and the cases whose goldens have it."""

    what: str
    """What was accepted."""
    reason: str
    """Why."""
    cases: tuple[str, ...]
    """The cases, or the goldens, that have it."""


def accepted_in(manifests: Iterable[Manifest], policy: Policy) -> list[Accepted]:
    """Everything that was accepted for these goldens, by themselves or by the policy, sorted."""
    return merge_accepted(_accepted_for(manifest, policy) for manifest in manifests)


def _accepted_for(manifest: Manifest, policy: Policy) -> list[Accepted]:
    options = manifest.options
    reasons = [(f"custom call {target}", reason) for target, reason in options.allow.items()]
    reasons += [(_disabled_check(check), reason) for check, reason in options.disabled_checks.items()]
    if options.without_outputs:
        reasons.append(("no outputs: compiled, and never compared", options.without_outputs))
    accepted = [Accepted(what, reason, (manifest.case,)) for what, reason in reasons]
    golden = f"{manifest.case}/{manifest.writer.id}"
    if rule := rule_of(manifest, policy.numbers):
        accepted.append(Accepted(f"numbers: {comparison_in_words(rule)}", rule.reason, (golden,)))
    quirks = quirks_of(manifest, policy.quirks)
    return accepted + [Accepted(f"quirk: {relaxation(quirk)}", _quirk_reason(quirk), (golden,)) for quirk in quirks]


def _quirk_reason(quirk: Quirk) -> str:
    until = f"until {quirk.expires}" if quirk.expires else f"permanent, approved by {quirk.approver}"
    return f"{quirk.reason}; owner {quirk.owner}, {quirk.issue}, {until}"


def merge_accepted(parts: Iterable[Iterable[Accepted]]) -> list[Accepted]:
    """What was accepted in several parts of one run, together."""
    # By reason too: the same call may be allowed in two cases for two reasons, and both are shown.
    merged: dict[tuple[str, str], set[str]] = {}
    for accepted in itertools.chain.from_iterable(parts):
        merged.setdefault((accepted.what, accepted.reason), set()).update(accepted.cases)
    return [
        Accepted(what, reason, tuple(sorted(cases, key=_order))) for (what, reason), cases in sorted(merged.items())
    ]


def _order(name: str) -> tuple[str, datetime.date, str]:
    """Sort key of a case, or of a golden: by case, then by the build date of its writer, unknown ones last."""
    case, _, writer = name.partition("/")
    known = load_calendar().jaxlib.get(writer.partition("-")[0])
    return case, known.built if known else datetime.date.max, name


def _disabled_check(check: str) -> str:
    if check == "platform":
        return "no check of the platform"
    if check == "shape_assertions":
        return "no check of shapes"
    return "no check of any custom call" if check == "ALL" else f"no check of the custom call {check}"
