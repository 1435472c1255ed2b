"""What was accepted on purpose, and why: allowed custom calls, disabled safety checks, comparison rules, quirks."""

import datetime
import itertools
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from export_core.base.text import few
from export_core.base.tolerances import FLOATS, Tolerance, given_tolerance
from export_core.goldens import Comparison, Golden, GoldenError, Leaf
from export_core.matrix.comparisons import comparison_in_words, quirks_of, relaxation, rule_of
from export_core.numbers.compare import Rules, compare_leaves
from export_core.numbers.noise import output_name
from export_core.policy import Policy
from export_core.releases import load_calendar
from export_core.releases.names import title_of

_DISABLED_CHECKS = {"platform": "the platform", "shape_assertions": "shapes", "ALL": "any custom call"}


class Accepted(msgspec.Struct, frozen=True):
    """One thing with one reason, and the cases whose goldens have it."""

    what: str  # What was accepted.
    reason: str  # Why.
    cases: tuple[str, ...]  # The cases, or the goldens, that have it.


def accepted_in(goldens: Iterable[Golden], policy: Policy) -> list[Accepted]:
    """Everything that was accepted for these goldens, by themselves or by the policy, sorted."""
    return merge_accepted(_accepted_for(golden, policy) for golden in goldens)


def _accepted_for(golden: Golden, policy: Policy) -> Iterator[Accepted]:
    manifest, options = golden.manifest, golden.manifest.options
    case, own = (manifest.case,), (golden.id,)
    for target, reason in options.allow.items():
        yield Accepted(f"custom call {target}", reason, case)
    for check, reason in options.disabled_checks.items():
        yield Accepted(f"no check of {_DISABLED_CHECKS.get(check, f'the custom call {check}')}", reason, case)
    if options.without_outputs:
        yield Accepted("no outputs: compiled, and never compared", options.without_outputs, case)
    # What a golden claims of itself that makes a verdict say less.
    if origin := manifest.converted_from:
        what = "a converted artifact: JAX promises nothing for it"
        yield Accepted(what, f"{origin.way} for {title_of(origin.reader)}", own)
    if manifest.origin and (how := manifest.origin.derived.get("writer")):
        yield Accepted("a writer that the artifact does not name", how, own)
    if manifest.comparison.compare == "shape":
        yield Accepted("comparison: shape", "its numbers are not compared", own)
    elif outputs := _outputs_that_may_be_zero(golden):
        what = f"comparison: {comparison_in_words(manifest.comparison)}"
        yield Accepted(what, f"accepts zeros in place of {few(outputs)}", own)
    if rule := rule_of(manifest, policy.numbers):
        yield Accepted(f"numbers: {comparison_in_words(rule)}", rule.reason, own)
    for quirk in quirks_of(manifest, policy.quirks):
        until = f"until {quirk.expires}" if quirk.expires else f"permanent, approved by {quirk.approver}"
        reason = f"{quirk.reason}; owner {quirk.owner}, {quirk.issue}, {until}"
        yield Accepted(f"quirk: {relaxation(quirk)}", reason, own)


def _outputs_that_may_be_zero(golden: Golden) -> list[str]:
    """The outputs for which the golden's own tolerances accept nothing but zeros, as ``output 0``."""
    comparison = msgspec.structs.replace(golden.manifest.comparison, compare=Comparison().compare)
    if comparison == Comparison():
        return []
    try:
        outputs = golden.outputs_of_calls()
    except GoldenError:  # its cells say so
        return []
    names = []
    for file, leaves in outputs.items():
        for number, leaf in enumerate(leaves):
            if leaf.dtype in FLOATS and leaf.data.any() and given_tolerance(comparison, leaf.dtype) != Tolerance():
                zeros = Leaf(leaf.dtype, np.zeros_like(leaf.data))
                if compare_leaves([leaf], [zeros], Rules(comparison)).ok:
                    names.append(f"output {output_name(golden.calls[file].name, number)}")
    return names


def merge_accepted(parts: Iterable[Iterable[Accepted]]) -> list[Accepted]:
    """What was accepted in several parts of one run, together."""
    # By reason too: the same call may be allowed in two cases for two reasons, and both are shown.
    merged: dict[tuple[str, str], set[str]] = {}
    for accepted in itertools.chain.from_iterable(parts):
        merged.setdefault((accepted.what, accepted.reason), set()).update(accepted.cases)
    return [Accepted(*accepted, tuple(sorted(cases, key=_order))) for accepted, cases in sorted(merged.items())]


def _order(name: str) -> tuple[str, datetime.date, str]:
    """Sort key of a case, or of a golden: by case, then by the build date of its writer, unknown ones last."""
    case, _, writer = name.partition("/")
    known = load_calendar().jaxlib.get(writer.partition("-")[0])
    return case, known.built if known else datetime.date.max, name
