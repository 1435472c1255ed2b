"""What was accepted on purpose, and why: whatever makes a verdict say less, in one line of a report for each reason.

`weakening.py` maps each field of golden.yaml and of a policy to the function here that reports it.
"""

import datetime
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from export_core.artifact import ArtifactError
from export_core.artifact.unread import DIALECTS
from export_core.base.text import few, plural
from export_core.base.tolerances import (
    AMOUNTS,
    FLOATS,
    GOLDEN,
    PLATFORM_RTOL,
    Tolerance,
    amount_for,
    given_tolerance,
    takes_tolerances,
)
from export_core.goldens import Check, Comparison, Golden, GoldenError, Leaf, Manifest
from export_core.matrix.comparisons import comparison_in_words, quirks_of, relaxation, rule_of, tolerances_in_words
from export_core.numbers.compare import Rules, compare_leaves
from export_core.numbers.comparison_of_call import comparison_of
from export_core.numbers.leaf_paths import outputs_named
from export_core.numbers.noise import unusual_noise
from export_core.numbers.nothing_compared import without_values
from export_core.policy import Policy
from export_core.policy.entries import WindowDays
from export_core.releases import load_calendar
from export_core.releases.names import title_of

_DISABLED_CHECKS = {"platform": "the platform", "shape_assertions": "shapes", "ALL": "any custom call"}


class Accepted(msgspec.Struct, frozen=True):
    """Something that makes checks less strict, such as an allowed custom call, with its reason and its cases."""

    what: str  # What was accepted.
    reason: str  # Why.
    cases: tuple[str, ...]  # The cases, or the goldens, that have it; empty for what is accepted of all.

    @property
    def sentence(self) -> str:
        """The sentence that says what was accepted, and for which cases or goldens."""
        return f"{self.what}: {few(self.cases)}." if self.cases else f"{self.what}."

    @property
    def brief(self) -> str:
        """The sentence with the reason before the names of the cases, since a short report may cut off its end."""
        return f"{self.what} ({self.reason}){f': {few(self.cases)}' if self.cases else ''}."


QUIRK = "quirk: "  # Begins what is accepted by a quirk.
_LAST_DAY = re.compile(r", until (\d{4}-\d\d-\d\d)\Z")
Entries = Iterator[Accepted]
Lister = Callable[[Sequence[Golden], Policy], Entries]  # Lists what a field of goldens and of their policy accepts.


def merge_accepted(parts: Iterable[Iterable[Accepted]]) -> list[Accepted]:
    """Return the entries of several parts of a run, sorted; equal entries become one with the cases of all of them."""
    # By reason too: the same call may be allowed in two cases for two reasons, and both are shown.
    merged: dict[tuple[str, str], set[str]] = {}
    for accepted in itertools.chain.from_iterable(parts):
        merged.setdefault((accepted.what, accepted.reason), set()).update(accepted.cases)
    return [Accepted(*accepted, tuple(sorted(cases, key=_order))) for accepted, cases in sorted(merged.items())]


def as_of_day(day: datetime.date, accepted: Accepted) -> Accepted:
    """Return an entry as of a day: the reason of a quirk whose last day has passed then says that it has expired."""
    found = _LAST_DAY.search(accepted.reason) if accepted.what.startswith(QUIRK) else None
    if found is None or datetime.date.fromisoformat(found[1]) >= day:
        return accepted
    return msgspec.structs.replace(accepted, reason=f"{accepted.reason[: found.start()]}, expired on {found[1]}")


def _order(name: str) -> tuple[str, datetime.date, str]:
    """Return the sort key of a case or golden by its name: the case, then the build date of the golden's writer.

    A writer that the calendar does not have comes last.
    """
    case, _, writer = name.partition("/")
    known = load_calendar().jaxlib.get(writer.partition("-")[0])
    return case, known.built if known else datetime.date.max, name


# --- how each is listed -----------------------------------------------------------------------------------------------


def _of_each(list_one: Callable[[Golden, Policy], Entries]) -> Lister:
    """Return a function that calls `list_one` for each of several goldens, and yields the entries of all of them."""

    @functools.wraps(list_one)
    def list_all(goldens: Sequence[Golden], policy: Policy) -> Entries:
        for golden in goldens:
            yield from list_one(golden, policy)

    return list_all


@_of_each
def allowed_calls(golden: Golden, policy: Policy) -> Entries:
    """Yield an entry for each custom call and unknown part of an artifact that the golden or the policy allows."""
    manifest = golden.manifest
    case = (manifest.case,)
    for target, reason in golden.compared_as.allow.items():
        yield Accepted(f"custom call {target}", reason, case)
    # What the policy allows by now may be in goldens that were written before.
    for target in {*manifest.custom_calls}.intersection(policy.allow):
        yield Accepted(f"custom call {target}", policy.allow[target], case)
    parts = {name for name in policy.allow if name.partition(" ")[0].partition(".")[0] in (*DIALECTS, "field")}
    if parts - {*golden.compared_as.allow}:
        for name in sorted(parts.intersection(part.name for _, part in _artifact_of(golden, "unread"))):
            yield Accepted(f"unknown part {name}", policy.allow[name], case)


@_of_each
def disabled_checks(golden: Golden, _: Policy) -> Entries:
    """Yield an entry for each safety check of jax.export that was disabled when the artifact was exported."""
    manifest = golden.manifest
    for check, reason in manifest.options.disabled_checks.items():
        yield Accepted(f"no check of {_check_in_words(check)}", reason, (manifest.case,))


def _check_in_words(check: str) -> str:
    return _DISABLED_CHECKS.get(check, f"the custom call {check}")


@_of_each
def without_outputs(golden: Golden, _: Policy) -> Entries:
    """Yield an entry if a golden has no outputs, or outputs in which no comparison can find a wrong number."""
    options = golden.manifest.options
    if options.without_outputs:
        yield Accepted("no outputs: compiled, and never compared", options.without_outputs, (golden.manifest.case,))
        return
    try:
        problem = without_values(golden)
    except GoldenError:  # its cells report it
        return
    if problem:
        yield Accepted(f"nothing to compare: {problem}", options.nothing_to_compare or "no reason given", (golden.id,))


@_of_each
def registered_modules(golden: Golden, _: Policy) -> Entries:
    """Yield an entry for each Python module of a golden that readers import before they call the artifact."""
    for name in golden.manifest.options.register:
        reason = "a module of the golden, which readers import before they call it"
        yield Accepted(f"registered module {name}", reason, (golden.manifest.case,))


@_of_each
def conversion(golden: Golden, _: Policy) -> Entries:
    """Yield an entry if a golden's artifact was converted for another reader."""
    if origin := golden.manifest.converted_from:
        what = "a converted artifact: JAX promises nothing for it"
        yield Accepted(what, f"{origin.way} for {title_of(origin.reader)}", (golden.id,))


@_of_each
def derived_origin(golden: Golden, _: Policy) -> Entries:
    """Yield an entry for each fact about an adopted golden that was inferred, since its artifact does not record it.

    There is one more entry if a release other than the golden's writer computed its outputs.
    """
    origin, writer = golden.manifest.origin, golden.manifest.writer
    if origin is None:
        return
    for what, how in origin.derived.items():
        yield Accepted(f"a {what} that the artifact does not name", how, (golden.id,))
    if origin.outputs_by not in ("", writer.id.removesuffix(f"-{writer.platform}")):
        reason = "another release than the writer computed them"
        yield Accepted(f"outputs by jaxlib {origin.outputs_by}", reason, (golden.id,))


@_of_each
def not_reproducible(golden: Golden, _: Policy) -> Entries:
    """Yield an entry if two exports of a golden's case gave different artifacts."""
    if not golden.manifest.reproducible:
        reason = "two exports differed: its test compares outputs, and not what is exported"
        yield Accepted("not reproducible", reason, (golden.id,))


@_of_each
def own_comparison(golden: Golden, _: Policy) -> Entries:
    """Yield an entry if golden.yaml asks for a comparison other than the default and `exact`, the strictest.

    A golden compared by `exact` has no entry: older versions recorded the project's tolerances, which `exact` ignores.
    """
    own = _stored_comparison(golden)
    if own == Comparison() or own.compare == "exact":
        return
    what = f"comparison: {comparison_in_words(own)}"
    if own.compare == "shape":
        reason = "its numbers are not compared"
    elif outputs := _outputs_that_may_be_zero(golden, own):
        reason = f"accepts zeros in place of {few(outputs)}"
    elif ":" in own.compare:
        reason = "only a function of the project compares the outputs"
    elif own.compare != Comparison().compare:
        reason = "factors are unique only up to signs, phases and order"
    else:
        reason = "in place of the noise that its writer measured"
    yield Accepted(what, reason, (golden.id,))


def _stored_comparison(golden: Golden) -> Comparison:
    """Return the comparison that golden.yaml asks for, without changes by the policy's rules and quirks."""
    how = golden.compared_as

    def own(name: str) -> Any:
        value, source = getattr(how.comparison, name), how.sources.get(name, GOLDEN)
        if isinstance(value, Mapping):
            value = {dtype: amount for dtype, amount in value.items() if amount_for(dtype, source) == GOLDEN}
            return value or None
        return value if source == GOLDEN else None

    return Comparison(own("compare") or Comparison().compare, *map(own, AMOUNTS))


def _outputs_that_may_be_zero(golden: Golden, own: Comparison) -> list[str]:
    """Return the names of outputs for which a golden's own tolerances would accept zeros.

    A name has the output's number and path, such as ``output 0 (result['b'])``. `own` is the comparison of
    golden.yaml. Outputs that are zero everywhere are left out.
    """
    comparison = msgspec.structs.replace(own, compare=Comparison().compare)
    if comparison == Comparison():
        return []
    try:
        outputs = golden.outputs_of_calls()
    except GoldenError:  # its cells report it
        return []
    names = []
    for file, leaves in outputs.items():
        if not takes_tolerances(comparison_of(golden.calls[file], own).compare):
            continue
        named = outputs_named(golden, golden.calls[file], with_call=True)
        for number, leaf in enumerate(leaves):
            if leaf.dtype in FLOATS and leaf.data.any() and given_tolerance(comparison, leaf.dtype) != Tolerance():
                zeros = Leaf(leaf.dtype, np.zeros_like(leaf.data))
                if compare_leaves([leaf], [zeros], Rules(comparison)).ok:
                    names.append(f"output {named(number)}")
    return names


@_of_each
def stored_factors(golden: Golden, _: Policy) -> Entries:
    """Yield an entry for each group of outputs that golden.yaml says to compare as factors of a factorization.

    Factors that the artifact's custom calls show have no entry: the artifact itself proves them.
    """
    for group in golden.manifest.factors:
        named = ", ".join(map(outputs_named(golden, Check("")), group.outputs))
        what = f"outputs {named} as factors of {group.compare}"
        yield Accepted(what, "factors are unique only up to signs, phases and order", (golden.id,))


@_of_each
def numbers_rule(golden: Golden, policy: Policy) -> Entries:
    """Yield an entry if a rule under `numbers` of the policy replaces the comparison of a golden."""
    if rule := rule_of(golden.manifest, policy.numbers):
        yield Accepted(f"numbers: {comparison_in_words(rule)}", rule.reason, (golden.id,))


@_of_each
def quirks(golden: Golden, policy: Policy) -> Entries:
    """Yield an entry for each quirk of the policy that relaxes a golden, with its reason and its end."""
    for quirk in quirks_of(golden.manifest, policy.quirks):
        until = f"until {quirk.expires}" if quirk.expires else f"permanent, approved by {quirk.approver}"
        reason = f"{quirk.reason}; owner {quirk.owner}, {quirk.issue}, {until}"
        yield Accepted(f"{QUIRK}{relaxation(quirk)}", reason, (golden.id,))


@_of_each
def platform_tolerances(golden: Golden, policy: Policy) -> Entries:
    """Yield an entry for each tolerance of the policy that applies to a golden.

    It has to be for one of the golden's dtypes, and for the platform of its writer or of one of its replays.
    """
    manifest = golden.manifest
    types = {text.partition("[")[0] for text in (*manifest.signature.inputs, *manifest.signature.outputs)}
    calls = golden.calls.values()
    if not any(takes_tolerances(comparison_of(check, golden.compared_as.comparison).compare) for check in calls):
        return
    for platform in sorted({manifest.writer.platform, *manifest.replayed_on}.intersection(policy.tolerances)):
        for dtype, tolerance in policy.tolerances[platform].items():
            words = ", ".join(tolerances_in_words(tolerance))
            if dtype in types and words:
                what = f"tolerances: {words} for {dtype} on {platform}"
                yield Accepted(what, "from the policy, for every golden on that platform", (manifest.case,))


@_of_each
def platform_of_writer(golden: Golden, _: Policy) -> Entries:
    """Yield an entry if a golden is compared within a wider tolerance because its writer ran on an accelerator."""
    platform = golden.manifest.writer.platform
    if platform in PLATFORM_RTOL:
        wider = ", ".join(f"{dtype} {rtol:g}" for dtype, rtol in PLATFORM_RTOL[platform].items())
        yield Accepted(f"written on {platform}: rtol {wider}", "what that platform needs", (golden.manifest.case,))


@_of_each
def other_noise(golden: Golden, policy: Policy) -> Entries:
    """Yield an entry for each of three weaknesses that a golden's noise has.

    A release other than its writer measured the noise, some calls have no noise, or the recorded noise is larger than
    the runs recorded with it usually measure.
    """
    record, writer = golden.manifest.noise, golden.manifest.writer
    if record is None:
        return
    if record.jaxlib != writer.jaxlib:
        reason = "another release than the writer measured it"
        yield Accepted(f"noise measured by jaxlib {record.jaxlib}", reason, (golden.id,))
    if record.unmeasured:
        calls = few([name or "the plain call" for name in record.unmeasured])
        yield Accepted(f"no noise of {calls}", "compared within the default tolerances", (golden.id,))
    if unusual := unusual_noise(golden, policy.tolerances):
        yield Accepted(*unusual, (golden.id,))


ANY_MESSAGE = "INTERNAL: unknown failure\nRESOURCE_EXHAUSTED: out of memory\nname 'x' is not defined"
"""Messages of failures that are not refusals: a `refused` pattern that matches one of them accepts any failure."""


@_of_each
def any_refusal(golden: Golden, _: Policy) -> Entries:
    """Yield an entry for each call of a golden whose `refused` pattern also matches failures that are not refusals."""
    for check in golden.manifest.checks:
        if check.refused is not None and re.search(check.refused, ANY_MESSAGE):
            what = f"{check.name}: refused with any message"
            yield Accepted(what, f"{check.refused!r} also matches other failures", (golden.id,))


def calls_left_out(goldens: Sequence[Golden], _: Policy) -> Entries:
    """Yield an entry if a golden lacks calls that its options ask for, or that other goldens of its case have.

    Calls that its test adds with `also` and `refused` are not known here; the test itself checks them.
    """
    calls: dict[str, set[str]] = {}
    for golden in goldens:
        calls.setdefault(golden.manifest.case, set()).update(check.name for check in golden.manifest.checks)
    for golden in goldens:
        manifest = golden.manifest
        if manifest.is_adopted:  # it has the calls that its artifact has, see `as_its_artifact_has_it`
            continue
        missing = [name for name in _expected_calls(manifest) if name]
        if missing:
            yield Accepted(f"not called: {few(missing)}", "its options ask for these calls", (golden.id,))
        others = sorted(calls[manifest.case] - {check.name for check in manifest.checks} - {*missing})
        if others:
            yield Accepted(f"not called: {few(others)}", "other goldens of its case have these calls", (golden.id,))


def _expected_calls(manifest: Manifest) -> Iterator[str]:
    """Yield the names of calls that a manifest lacks, although an export with its options would add them."""
    options, checks = manifest.options, manifest.checks
    order = options.vjp_order
    has_results = {check.vjp for check in checks if check.refused is None}
    yield from (f"vjp{number}" for number in range(1, order + 1) if number not in has_results)
    if order and not any(check.refused is not None and check.vjp == order + 1 for check in checks):
        yield f"vjp{order + 1}"
    if options.devices > 1:
        if not any(check.refused is None and check.mesh and {*check.mesh} != {*options.mesh} for check in checks):
            yield "other-mesh"
        if not any(
            check.refused is not None and check.mesh and math.prod(check.mesh.values()) == 1 for check in checks
        ):
            yield "one-device"


@_of_each
def as_its_artifact_has_it(golden: Golden, _: Policy) -> Entries:
    """Yield an entry for everything that an artifact has but nothing checks, since golden.yaml does not name it.

    This can be shardings of outputs, and in a golden that no test wrote, derivatives and disabled checks. In one that a
    test wrote, `goldens/verify.py` reports those as errors.
    """
    manifest = golden.manifest
    options, own = manifest.options, (golden.id,)
    if options.devices > 1 and not options.without_outputs:
        where = "which part of each is on which device is not compared"
        if not manifest.out_shardings:
            yield Accepted("no shardings of outputs", where, own)
        if any(check.outputs and not check.out_shardings for check in manifest.checks):
            yield Accepted("no shardings of outputs of further calls", where, own)
    if manifest.test or not (envelope := _artifact_of(golden, "envelope")):
        return
    if envelope.vjp_order > options.vjp_order:
        orders = ", ".join(map(str, range(options.vjp_order + 1, envelope.vjp_order + 1)))
        yield Accepted(f"derivatives of order {orders}: not called", "the golden has no results of them", own)
    disabled = {check.target or check.kind for check in envelope.disabled_checks}
    for check in sorted(disabled - {*options.disabled_checks, *golden.compared_as.allow}):
        yield Accepted(f"no check of {_check_in_words(check)}", "its artifact was exported without this check", own)


def _artifact_of(golden: Golden, name: str) -> Any:
    """Return the attribute `name` of a golden's artifact, or () if it cannot be read, which its cells report."""
    try:
        value = getattr(golden.read_artifact(), name)
        return list(value) if name == "unread" else value
    except (ArtifactError, GoldenError):
        return ()


def shorter_windows(_: Sequence[Golden], policy: Policy) -> Entries:
    """Yield an entry if a window of the policy is shorter than the window that JAX promises."""
    asked, jax = policy.windows, WindowDays()
    if asked.backward < jax.backward or asked.forward < jax.forward:
        what = f"windows: {plural(asked.backward, 'day')} backward, {asked.forward} forward"
        yield Accepted(what, f"JAX promises {jax.backward} and {jax.forward}", ())


def required_outside(_: Sequence[Golden], policy: Policy) -> Entries:
    """Yield an entry if the policy says that cells outside the window need not run (`required: {outside: false}`)."""
    if not policy.required.outside:
        reason = "a cell outside the window that was not run does not make the run incomplete"
        yield Accepted("required: outside: false", reason, ())


def calendar_days(_: Sequence[Golden], policy: Policy) -> Entries:
    """Yield an entry if the policy lets the calendar grow older than by default before headlines report its age."""
    if policy.calendar_days > Policy().calendar_days:
        yield Accepted(f"calendar_days: {policy.calendar_days}", "headlines report an old calendar only after that", ())
