"""The comparison of outputs with those that the writer saw: whether they agree, and how far off they are.

Shapes and dtypes must be the same. Integers, booleans, PRNG keys and float0 must be equal. Floats and complex numbers
may differ by a few times the noise that the writer measured. If somebody asked for a tolerance, they may differ by
``atol + rtol * abs(expected)``, or by some units in the last place. NaN equals NaN, infinities must agree in sign.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from export_core.base.error_grid import ErrorGrid, is_far_off, is_garbage, times_allowed
from export_core.base.leaf_names import Named
from export_core.base.text import plural
from export_core.base.tolerances import (
    FLOATS,
    GARBAGE,
    GOLDEN,
    PLATFORM_RTOL,
    ROUNDING,
    WITHIN_NOISE,
    Allowed,
    Sources,
    Tolerance,
    Tolerances,
    default_rtol,
    given_tolerance,
    problem_of_name,
    tolerance_for,
)
from export_core.goldens import Check, Comparison, FactorGroup, Golden, Leaf
from export_core.goldens.arrays import Array
from export_core.numbers import CompareError
from export_core.numbers.comparison_of_call import comparison_of
from export_core.numbers.diagnosis import diagnose, error_grid
from export_core.numbers.elements import in_hex, largest, to_double, ulp_distance
from export_core.numbers.factorizations import FACTORIZATIONS, are_factors, parts_of
from export_core.numbers.leaf_paths import outputs_named
from export_core.numbers.noise import (
    FACTOR,
    NO_NOISE,
    PIECE,
    CallNoise,
    Whole,
    call_noise,
    noise_with_floors,
)
from export_core.numbers.user_code import UserCode

FIRST_ROWS = 5  # How many differing elements a message lists.
ERRORS = ("max_abs_error", "max_rel_error", "max_ulp", "max_noise_error")


@dataclass(frozen=True)
class DifferingElement:
    """One element that differs: its index, and both values as NumPy prints them."""

    index: tuple[int, ...]
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.index))}]: expected {self.expected}, got {self.actual}"


@dataclass(frozen=True)
class Difference:
    """The difference between actual outputs and the expected outputs.

    Each error is the largest of all outputs. It is inf if a value is not finite and the other value differs. Fields
    about a single output describe the first output that is out of tolerance.
    """

    ok: bool  # Whether all outputs are within tolerance.
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    max_ulp: int | None = None  # The largest error in units in the last place; None if no pair of floats is finite.
    problem: str = ""
    """What differs, if shapes, dtypes or the number of outputs do, or if a user's own comparator found it."""
    output: int | None = None  # The number of the output; None if the facts are about several outputs.
    named: str = ""  # Its name in messages: its number, with its path where that is known. Empty if it is ok.
    of_type: str = ""  # Its dtype and shape, or the name of what was made from several outputs.
    mismatched: int = 0  # How many of its elements differ.
    total: int = 0  # How many elements it has.
    worst: DifferingElement | None = None  # The element with the largest error, in units of the noise if there is any.
    rows: tuple[DifferingElement, ...] = ()  # The first few elements that differ.
    masks: tuple[str, ...] = ()  # Lines about elements that are NaN or infinite on one side only.
    tolerance: str = ""
    """What was allowed, and by which rule; if all outputs are ok, the rules by which they were compared."""
    max_noise_error: float | None = None  # The largest error in units of the golden's noise; None without noise.
    looks_like: tuple[str, ...] = ()  # Lines that say what kind of difference it is.
    kind: str = ""  # What the outputs that are out of tolerance look like: rounding only if each of them does.
    grid: ErrorGrid | None = None  # Where the errors are in the output.
    first: Difference | None = None  # Of several outputs: the first that is out of tolerance, with its own errors.
    others: str = ""  # How many other outputs are out of tolerance, and the worst of them; empty if none is.

    @property
    def title(self) -> str:
        """The name and type of the output that differs, as the first words of a message."""
        return self.of_type if self.output is None else f"output {self.named or self.output} {self.of_type}"

    @property
    def is_beyond_rounding(self) -> bool:
        """Whether the difference is too large for rounding. If the allowed error is not known, only garbage counts."""
        is_far = is_far_off(times_allowed(self.max_noise_error, self.grid))
        return not self.ok and (is_far or is_garbage(self.max_abs_error, self.kind))

    def __str__(self) -> str:
        if self.first is not None:
            return "\n".join(filter(None, (str(self.first), self.others)))
        if self.problem:
            return self.problem
        if self.max_abs_error is None:  # a comparator that looks at no number
            return f"only {self.tolerance} are compared"
        errors = f"max abs error {self.max_abs_error:.3g}, max rel error {self.max_rel_error:.3g}"
        if self.max_ulp is not None:
            errors += f", max ulp {self.max_ulp}"
        if self.max_noise_error is not None:
            errors += f", max {self.max_noise_error:.3g} times the noise"
        if self.ok:
            return errors
        lines = [
            f"{self.title}: {self.mismatched} of {self.total} elements differ ({errors}; allowed {self.tolerance})"
        ]
        lines += [f"  {line}" for line in (*self.masks, *self.looks_like)]
        if self.worst:
            unit = "" if self.max_noise_error is None else " in units of the noise"
            lines.append(f"  largest error{unit} at {self.worst}")
        lines += [f"  first at {row}" for row in self.rows]
        return "\n".join(lines)


@np.errstate(all="ignore")  # NaN, infinities and overflows are compared, not warned of
def compare_leaves(
    expected: Sequence[Leaf],
    actual: Sequence[Leaf],
    rules: Rules,
    *,
    factors: Sequence[FactorGroup] = (),
    user_code: UserCode | None = None,
    named: Named = str,
) -> Difference:
    """Compare flat outputs with the expected outputs, which the writer saw.

    `factors` are groups of outputs that come directly from a factorization, and are compared as its factors.
    `user_code` is needed only to run a user's own comparator. `named` returns the name of an output in messages. Raises
    `CompareError` if the outputs cannot be compared in this way, or if a user's own comparator fails.
    """
    if len(expected) != len(actual):
        return Difference(False, problem=f"expected {plural(len(expected), 'output')}, got {len(actual)}")
    for number, (leaf, got) in enumerate(zip(expected, actual, strict=True)):
        if str(leaf) != str(got):  # a leaf's text is its dtype and shape: float32[4,8]
            return Difference(False, problem=f"output {named(number)}: expected {leaf}, got {got}", output=number)
    name = rules.comparison.compare
    if problem := problem_of_name(name):
        raise CompareError(problem)
    if name == "shape":
        return Difference(True, tolerance="shapes and dtypes")
    wanted, given = ([leaf.numpy() for leaf in side] for side in (expected, actual))
    groups: list[tuple[str, Sequence[int]]] = []  # A comparator of factors, and the outputs that it takes.
    if name in FACTORIZATIONS:
        groups = [(name, range(len(wanted)))]
    elif name == "allclose":
        groups = [(group.compare, group.outputs) for group in factors if are_factors(group, wanted)]
    in_groups = {output for _, outputs in groups for output in outputs}
    differences = []
    for number, leaf in enumerate(expected):
        if number not in in_groups:
            one = _compare(str(leaf), wanted[number], given[number], rules.of(leaf.dtype, number))
            differences.append(replace(one, output=number, named="" if one.ok else named(number)))
    for comparator, outputs in groups:
        differences += _compare_factors(comparator, outputs, wanted, given, rules, named)
    difference = _worst_of(differences)
    if ":" not in name:
        return difference
    assert user_code, f"compare={name!r}: expected a process in which to run it"
    # The user's own function decides alone; the errors are only reported.
    message = user_code.compare(name, expected, actual)
    errors = {error: getattr(difference, error) for error in ERRORS}
    problem = "" if message is None else f"{name}: {message}"
    return Difference(message is None, **errors, problem=problem, tolerance=name)


@dataclass(frozen=True)
class GoldenOutputs:
    """The outputs that a golden expects, and the comparison of actual outputs with them.

    `platform` is the platform of the actual outputs, and `tolerances` are the tolerances of the policy.
    """

    golden: Golden
    platform: str
    tolerances: Tolerances
    user_code: UserCode | None = None

    @functools.cached_property
    def _noise(self) -> dict[str, CallNoise]:
        return call_noise(self.golden)

    def compare(
        self, check: Check, expected: Sequence[Leaf], actual: Sequence[Leaf], named: Named | None = None
    ) -> Difference:
        """Return the difference between a call's outputs and the expected outputs.

        `expected` are the outputs in the file that `check` names. Outputs that differ are named by number and path, or
        by `named` if that is given.
        """
        manifest = self.golden.manifest
        noise, platforms = self._noise.get(check.outputs or "", NO_NOISE), (manifest.writer.platform, self.platform)
        how = self.golden.compared_as
        rules = Rules(comparison_of(check, how.comparison), noise, platforms, self.tolerances, how.sources)
        factors = () if check.vjp else self.golden.factors
        named = named or outputs_named(self.golden, check)
        return compare_leaves(expected, actual, rules, factors=factors, user_code=self.user_code, named=named)


def _worst_of(differences: Sequence[Difference]) -> Difference:
    """Return one difference for several outputs, with their largest errors.

    Fields about a single output describe the first output that is out of tolerance, or the first output if all are
    within tolerance.
    """
    if not differences:
        return Difference(True, 0.0, 0.0)
    failed = [difference for difference in differences if not difference.ok]
    if not failed:
        return replace(differences[0], **largest_errors(differences), tolerance=rules_in_words(differences))
    first = failed[0] if len(differences) > 1 else None
    merged = replace(failed[0], **largest_errors(differences), kind=kind_of_all(differences))
    return replace(merged, first=first, others=_others(failed[1:]))


def _others(failed: Sequence[Difference]) -> str:
    """Return a line with the number of further outputs out of tolerance, and the worst; empty if there are none.

    The worst output has the largest error in units of the noise, or the largest absolute error if any has no noise.
    """
    measured = [(one.max_noise_error, one.max_abs_error or 0.0, one) for one in failed if not one.problem]
    if not measured:
        return f"also out of tolerance: {plural(len(failed), 'other output')}" if failed else ""
    if all(noise is not None for noise, _, _ in measured):
        error, _, worst = max(measured, key=lambda one: one[0] or 0.0)
        size = f"max {error:.3g} times the noise"
    else:
        _, error, worst = max(measured, key=lambda one: one[1])
        size = f"max abs error {error:.3g}"
    return f"also out of tolerance: {plural(len(failed), 'other output')}, the largest error in {worst.title}: {size}"


def largest_errors(differences: Sequence[Difference]) -> dict[str, Any]:
    """Return the largest value of each `ERRORS` field among outputs or calls; None for a field that all lack."""
    return {
        name: max((error for one in differences if (error := getattr(one, name)) is not None), default=None)
        for name in ERRORS
    }


def kind_of_all(differences: Sequence[Difference]) -> str:
    """Return the worst kind of difference among outputs that are out of tolerance, such as rounding; "" if none is.

    Garbage is the worst kind, and rounding is the least bad. Among the other kinds, the first one is returned.
    """
    kinds = [difference.kind for difference in differences if not difference.ok]
    worse = [kind for kind in kinds if not kind.startswith(ROUNDING)]
    return next((kind for kind in worse if kind.startswith(GARBAGE)), next(iter(worse or kinds), ""))


def rules_in_words(differences: Sequence[Difference]) -> str:
    """Return in words the rules by which these outputs or calls were compared, without repetitions."""
    return "; ".join(dict.fromkeys(difference.tolerance for difference in differences if difference.tolerance))


def _compare_factors(
    comparator: str,
    outputs: Sequence[int],
    wanted: Sequence[Array],
    given: Sequence[Array],
    rules: Rules,
    named: Named,
) -> list[Difference]:
    """Compare parts that are computed from the factors of one factorization, such as the product of the factors.

    Parts are computed in double precision, so distances in units in the last place of their elements mean nothing. A
    tolerance in such units becomes a relative tolerance: it is multiplied by the `eps` of the outputs' dtype. Raises
    `CompareError` if the outputs are not factors of this kind.
    """
    expected, actual = ([arrays[output] for output in outputs] for arrays in (wanted, given))
    differences = []
    for part in parts_of(comparator, expected, actual):
        rule = rules.of(part.dtype, None if part.output is None else outputs[part.output])
        if rule.tolerance is not None:
            rule = replace(rule, tolerance=rule.tolerance.with_ulp_as_rtol(float(np.finfo(part.dtype).eps)))
        difference = _compare(part.what, part.expected, part.actual, rule, part.scale)
        if not difference.ok:
            group = f"outputs {', '.join(map(named, outputs))} as " if len(expected) < len(wanted) else ""
            of = "" if part.mask_of is None else f"output {named(outputs[part.mask_of])}, "
            difference = replace(difference, of_type=f"{group}{comparator}: {of}{part.what}")
        differences.append(replace(difference, max_ulp=None))
    return differences


def _compare(what: str, expected: Array, actual: Array, rule: Rule, scale: Array | None = None) -> Difference:
    """Compare two arrays of the same shape and dtype by a rule.

    `what` names the arrays in messages. `scale` is as in `Rule.compare`.
    """
    if scale is None and expected.size > PIECE and (in_pieces := _compare_pieces(what, expected, actual, rule)):
        return in_pieces
    compared = rule.compare(expected, actual, scale)
    absolute, relative = _errors(expected, actual)
    max_ulp = None
    if expected.dtype.name in FLOATS:
        finite = np.isfinite(to_double(expected)) & np.isfinite(to_double(actual))
        max_ulp = int(ulp_distance(expected, actual)[finite].max()) if finite.any() else None
    bad = compared.bad
    difference = Difference(
        ok=not bad.any(),
        max_abs_error=float(absolute.max(initial=0.0)),
        max_rel_error=float(relative.max(initial=0.0)),
        max_ulp=max_ulp,
        of_type=what,
        tolerance=compared.words,
        max_noise_error=None if compared.in_noise is None else float(compared.in_noise.max(initial=0.0)),
    )
    if difference.ok:
        return difference
    errors = absolute if compared.in_noise is None else compared.in_noise
    diagnosis = diagnose(expected, actual, compared.limit, rule.dtype)
    is_float = rule.dtype in FLOATS and errors is compared.in_noise
    if is_float and (errors[bad] > 0).all() and not (errors > rule.factor).any():
        # What was allowed is less than the writer's own noise. Without an error bits may differ, as for -0.0.
        within = f"{WITHIN_NOISE}{rule.factor:g} times the noise that the writer measured"
        diagnosis = replace(diagnosis, looks_like=within)
    masks = _masks(expected, actual, bad)

    def element(index: Sequence[Any]) -> DifferingElement:
        place = tuple(int(position) for position in index)
        want, got = expected[place], actual[place]
        if str(want) == str(got):  # NaN with another payload
            return DifferingElement(place, *(f"{value} (bits {in_hex(value)})" for value in (want, got)))
        return DifferingElement(place, str(want), str(got))

    indices = np.argwhere(bad)
    ranked = np.where(bad, errors, -1.0)  # a bad one even where no bad one has an error: -0.0 for 0.0
    return replace(
        difference,
        mismatched=len(indices),
        total=int(bad.size),
        worst=element(np.unravel_index(int(np.argmax(ranked)), ranked.shape)),
        rows=tuple(element(index) for index in indices[:FIRST_ROWS]),
        masks=masks,
        looks_like=diagnosis.lines,
        # NaN in place of a number is never rounding, whatever the other elements look like.
        kind="" if masks and diagnosis.looks_like.startswith(ROUNDING) else diagnosis.looks_like,
        grid=error_grid(absolute, compared.limit),
    )


def _compare_pieces(what: str, expected: Array, actual: Array, rule: Rule) -> Difference | None:
    """Compare large arrays piece by piece, which takes less memory, and return their difference.

    None if the arrays are out of tolerance, since describing the difference then takes all elements at once.
    """
    want, got = expected.reshape(-1), actual.reshape(-1)
    noise = None if rule.noise is None else rule.noise.reshape(-1)
    whole = Whole.of(want, noise) if expected.dtype.name in FLOATS else None
    differences = []
    for start in range(0, want.size, PIECE):
        span = slice(start, start + PIECE)
        piece = replace(rule, noise=None if noise is None else noise[span], whole=whole)
        difference = _compare(what, want[span], got[span], piece)
        if not difference.ok:
            return None
        differences.append(difference)
    return _worst_of(differences)


def _errors(expected: Array, actual: Array) -> tuple[Array, Array]:
    """Return the absolute and the relative error of each element as float64.

    Both errors are inf if a value is NaN or infinite and the other value is not the same.
    """
    want, got = to_double(expected), to_double(actual)
    with np.errstate(all="ignore"):
        # 64 bits do not fit into a double. The larger minus the smaller as unsigned, modulo 2**64, is their exact
        # distance.
        if expected.dtype.kind in "iu":
            distance = np.maximum(expected, actual).astype(np.uint64) - np.minimum(expected, actual).astype(np.uint64)
        else:
            distance = np.where(same(want, got), 0.0, np.abs(got - want))
        absolute = np.where(np.isnan(distance), np.inf, distance.astype(np.float64))
        relative = np.where(absolute == 0.0, 0.0, absolute / np.abs(want))  # 0 for equal zeros, not 0 / 0
    return absolute, np.where(np.isnan(relative), np.inf, relative)


def _masks(expected: Array, actual: Array, bad: Array) -> tuple[str, ...]:
    """Return lines about elements where a number, NaN or infinity was expected, and another of these was found.

    An infinity of the other sign counts too. One such line is ``NaN where a number was expected at 2 places``. `bad`
    marks the elements that are out of tolerance.
    """
    sides = []
    for values in (to_double(expected), to_double(actual)):
        is_nan, is_infinite = np.isnan(values), np.isinf(values) & ~np.isnan(values)
        sides.append({"a number": ~is_nan & ~is_infinite, "NaN": is_nan, "an infinity": is_infinite})
    lines = []
    for (one, want), (other, got) in itertools.product(sides[0].items(), sides[1].items()):
        count = int((bad & want & got).sum())
        if count and (one != other or one == "an infinity"):
            kind = "another infinity" if one == other else other
            lines.append(f"{kind} where {one} was expected at {plural(count, 'place')}")
    return tuple(lines)


# --- by which rule elements are judged: equal bits, equal values, a tolerance, or the writer's noise ------------------


@dataclass(frozen=True)
class ComparedElements:
    """The result of a rule for each element of an array: whether it is out of tolerance, and the allowed error."""

    bad: Array  # Which elements are out of tolerance.
    words: str  # What the rule allows, in words.
    limit: Array | None = None  # The error that each element may have; None if they must be equal.
    in_noise: Array | None = None  # The errors in units of the noise; None if there is no noise.


@dataclass(frozen=True)
class Rule:
    """The rule by which the elements of an array are compared.

    The first of these that is set decides: `bits`, `tolerance`, `noise`. If none is set, the values must be equal.
    """

    dtype: str  # The dtype of the outputs; the compared array may have a wider one.
    bits: str = ""  # The name of what asks for equal bits; empty if nothing does.
    tolerance: Allowed | None = None
    noise: Array | None = None  # The noise of each element; beside bits or a tolerance, the unit of reported errors.
    factor: float = FACTOR
    rtol_of_platform: float = 0.0
    whole: Whole | None = None  # Facts about the whole array, if this one is a piece of it.

    def compare(self, expected: Array, actual: Array, scale: Array | None = None) -> ComparedElements:
        """Compare each element of two arrays of the same shape and dtype.

        If no absolute tolerance is set, it is `scale` times the relative tolerance. If `scale` is None, the largest
        expected element takes its place.
        """
        measured = self.noise if self.dtype in FLOATS else None
        by_noise = None if measured is None else self._by_noise(expected, actual, measured, scale)
        if self.bits:
            # ascontiguousarray makes a zero-dimensional array one-dimensional, which view needs.
            sides = (np.ascontiguousarray(values).view(np.uint8) for values in (expected, actual))
            one, other = (bytes_.reshape(*expected.shape, expected.dtype.itemsize) for bytes_ in sides)
            compared = ComparedElements((one != other).any(axis=-1), f"equal bits ({self.bits})")
            return replace(compared, in_noise=by_noise.in_noise) if by_noise else compared
        if self.noise is not None and self.dtype not in FLOATS:
            return _by_jumps(expected, actual, self.noise, self.factor)
        if self.tolerance is not None:
            compared = _beyond(expected, actual, self.tolerance, self._largest(expected) if scale is None else scale)
            return replace(compared, in_noise=by_noise.in_noise) if by_noise else compared
        if by_noise is not None:
            return by_noise
        unequal = ~same(expected, actual) if expected.dtype.name in FLOATS else expected != actual
        return ComparedElements(unequal, "equal values")

    def _by_noise(self, expected: Array, actual: Array, noise: Array, scale: Array | None) -> ComparedElements:
        want, got = to_double(expected), to_double(actual)
        unit = noise_with_floors(expected, noise, self.dtype, scale, self.whole)
        limit, words = self.factor * unit, f"{self.factor:g} times the noise of each"
        if self.rtol_of_platform:
            # The noise is that of the writer's processor, which multiplies in full precision.
            rtol = self.rtol_of_platform
            limit = np.maximum(limit, rtol * (np.abs(want) + self._largest(expected)))
            words += f", or rtol {rtol:.3g} as its platform needs"
        with np.errstate(all="ignore"):
            error = np.abs(got - want)
            close, in_noise = error <= limit, np.where(error == 0, 0.0, error / unit)
        finite, equal = np.isfinite(want) & np.isfinite(got), same(want, got)
        bad = ~np.where(finite, close, equal)
        return ComparedElements(bad, words, limit, np.where(finite, in_noise, np.where(equal, 0.0, np.inf)))

    def _largest(self, expected: Array) -> Array:
        """Return the largest finite magnitude of the whole array, even if `expected` is only a piece of it."""
        return np.asarray(self.whole.largest) if self.whole else largest(to_double(expected), expected.ndim)


@dataclass(frozen=True)
class Rules:
    """The rules of a comparison. Floats are compared by noise, unless a tolerance is set for their dtype."""

    comparison: Comparison  # The comparator and the tolerances of the golden.
    noise: CallNoise = NO_NOISE  # What the writer measured.
    platforms: Sequence[str] = ()  # The platforms of the writer and of the reader.
    tolerances: Tolerances = field(default_factory=dict)  # The tolerances of the policy, by platform.
    sources: Sources = field(default_factory=dict)  # What set each part of the comparison, for messages.

    def of(self, dtype: str, output: int | None = None) -> Rule:
        """Return the rule for an array of this dtype.

        `output` is the index of the output that is compared; None for an array that is computed from several outputs.
        """
        noise = None if output is None or not self.noise.outputs else self.noise.outputs[output]
        measured = Rule(dtype, noise=noise, factor=self.noise.factor)
        if self.comparison.compare == "exact":
            return replace(measured, bits=str(self.sources.get("compare", GOLDEN)))
        if dtype not in FLOATS:
            return measured
        given = given_tolerance(self.comparison, dtype)
        is_asked_for = given != Tolerance() or any(dtype in self.tolerances.get(name, {}) for name in self.platforms)
        if noise is not None and not is_asked_for:
            is_wider = any(platform in PLATFORM_RTOL for platform in self.platforms)
            rtol = default_rtol(dtype, self.platforms) if is_wider else 0.0
            return replace(measured, rtol_of_platform=rtol)
        tolerance = tolerance_for(dtype, given, self.platforms, self.tolerances, self.sources)
        return replace(measured, tolerance=tolerance)


def _by_jumps(expected: Array, actual: Array, noise: Array, factor: float) -> ComparedElements:
    """Compare integers and booleans, of which only elements that jump in the writer's own runs may differ.

    An element jumps if its `noise` is not 0. It may then differ by `factor` times its noise.
    """
    unequal, error = expected != actual, np.abs(to_double(actual) - to_double(expected))
    limit = factor * noise
    bad = unequal & ((noise == 0) | (error > limit))
    in_noise = np.where(unequal, error / np.where(noise > 0, noise, 1.0), 0.0)
    return ComparedElements(bad, "equal values, except elements that jump", limit, np.where(bad, np.inf, in_noise))


def same(want: Array, got: Array) -> Array:
    """Return which elements are equal, or both NaN. As in NumPy, a complex number with a NaN part is NaN."""
    equal: Array = (want == got) | (np.isnan(want) & np.isnan(got))
    return equal


def _beyond(expected: Array, actual: Array, allowed: Allowed, scale: Array) -> ComparedElements:
    """Return which elements are out of tolerance, and the error that each may have.

    If no absolute tolerance is set, it is `scale` times the relative tolerance.
    """
    want, got = to_double(expected), to_double(actual)
    rtol = allowed.rtol
    # Without an atol of its own an array is measured by its largest element. A fixed atol of 1e-5 would accept anything
    # in an array of 1e-6s; none would reject what cancellation leaves where exactly 0 is expected, beside elements of
    # size 1.
    atol = np.asarray(rtol * scale if allowed.atol is None else allowed.atol)
    with np.errstate(all="ignore"):
        limit = atol + rtol * np.abs(want)
        close = np.abs(got - want) <= limit
        if allowed.ulp is not None and expected.dtype.name in FLOATS:
            units = ulp_distance(expected, actual)
            close |= units <= allowed.ulp
            # As if all units from one value to the other had the same size.
            limit = np.maximum(limit, allowed.ulp * np.abs(got - want) / np.maximum(units, 1))
    # No tolerance extends beyond what is finite: an infinity next to the largest number is still a wrong result.
    bad = ~np.where(np.isfinite(want) & np.isfinite(got), close, same(want, got))
    return ComparedElements(bad, allowed.in_words(float(atol.max(initial=0.0))), limit)
