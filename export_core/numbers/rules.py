"""By which rule the elements of an array are judged: equal bits, equal values, a tolerance, or the writer's noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from export_core.base.tolerances import (
    FLOATS,
    GOLDEN,
    PLATFORM_RTOL,
    Allowed,
    Sources,
    Tolerance,
    Tolerances,
    amount_for,
    default_rtol,
    is_asked_for,
    tolerance_for,
)
from export_core.goldens import Comparison, Golden
from export_core.goldens.arrays import Array, Noise
from export_core.numbers.elements import largest, to_double, ulp_distance
from export_core.numbers.noise import FACTOR, FACTOR_OF_INPUTS, Whole, noise_with_floors


@dataclass(frozen=True)
class CallNoise:
    """The noise of a call's outputs, as its golden has it. `narrowest_float` is the narrowest type of its module.

    `factor` is how many times its noise an element may be off.
    """

    outputs: Noise = ()
    narrowest_float: str = ""
    factor: float = FACTOR


NO_NOISE = CallNoise()
"""Of a golden whose writer measured none."""


def call_noise(golden: Golden) -> dict[str, CallNoise]:
    """The noise of each file of outputs of a golden by its name; empty where none was measured."""
    if (record := golden.manifest.noise) is None:
        return {}
    factors = {
        file: FACTOR if record.moved_inside(call.name) else FACTOR_OF_INPUTS for file, call in golden.calls.items()
    }
    return {file: CallNoise(noise, record.narrowest_float, factors[file]) for file, noise in golden.noise().items()}


@dataclass(frozen=True)
class ComparedElements:
    """What a rule says of each element.

    `bad` are those that it refuses, `words` what it allows. `limit` is the error that each may have, None where it must
    be equal. `in_noise` are the errors in units of the noise, None where there is no noise.
    """

    bad: Array
    words: str
    limit: Array | None = None
    in_noise: Array | None = None


@dataclass(frozen=True)
class Rule:
    """How the elements of one array are judged.

    `dtype` is that of the outputs, which the array may only be made of. Without `tolerance` values must be equal, with
    `bits`, which is what asks for it, all bits too. Without `tolerance`, `noise` decides; with it, errors are only
    measured in it. `whole` is set where the array is a piece of another.
    """

    dtype: str
    bits: str = ""
    tolerance: Allowed | None = None
    noise: Array | None = None
    narrowest_float: str = ""
    factor: float = FACTOR
    rtol_of_platform: float = 0.0
    whole: Whole | None = None

    def compare(self, expected: Array, actual: Array, scale: Array | None = None) -> ComparedElements:
        """Compare each element of arrays of one shape and dtype.

        `scale` is multiplied by relative tolerances for the absolute one; None means the largest expected element.
        """
        if self.bits:
            # ascontiguousarray makes a zero-dimensional array one-dimensional, which view needs.
            sides = (np.ascontiguousarray(values).view(np.uint8) for values in (expected, actual))
            one, other = (bytes_.reshape(*expected.shape, expected.dtype.itemsize) for bytes_ in sides)
            return ComparedElements((one != other).any(axis=-1), f"equal bits ({self.bits})")
        if self.noise is not None and self.dtype not in FLOATS:
            return _by_jumps(expected, actual, self.noise, self.factor)
        by_noise = None if self.noise is None else self._by_noise(expected, actual, self.noise, scale)
        if self.tolerance is not None:
            compared = _beyond(expected, actual, self.tolerance, self._largest(expected) if scale is None else scale)
            return replace(compared, in_noise=by_noise.in_noise) if by_noise else compared
        if by_noise is not None:
            return by_noise
        unequal = ~same(expected, actual) if expected.dtype.name in FLOATS else expected != actual
        return ComparedElements(unequal, "equal values")

    def _by_noise(self, expected: Array, actual: Array, noise: Array, scale: Array | None) -> ComparedElements:
        want, got = to_double(expected), to_double(actual)
        unit = noise_with_floors(expected, noise, self.dtype, self.narrowest_float, scale, self.whole)
        limit, words = self.factor * unit, f"{self.factor:g} times the noise of each"
        if self.rtol_of_platform:
            # The noise is that of the writer's processor, which multiplies in full precision.
            rtol = self.rtol_of_platform
            limit = np.maximum(limit, rtol * (np.abs(want) + self._largest(expected)))
            words += f", or rtol {rtol:.3g} as its platform needs"
        with np.errstate(all="ignore"):
            error = np.abs(got - want)
            close, in_noise = error <= limit, error / unit
        finite, equal = np.isfinite(want) & np.isfinite(got), same(want, got)
        bad = ~np.where(finite, close, equal)
        return ComparedElements(bad, words, limit, np.where(finite, in_noise, np.where(equal, 0.0, np.inf)))

    def _largest(self, expected: Array) -> Array:
        """The largest finite magnitude of the whole array."""
        return np.asarray(self.whole.largest) if self.whole else largest(to_double(expected), expected.ndim)


@dataclass(frozen=True)
class Rules:
    """The rules of a comparison between two platforms, the writer's and the reader's, under a policy's tolerances.

    `sources` says what set the parts of the comparison.
    """

    comparison: Comparison
    noise: CallNoise
    platforms: Sequence[str]
    tolerances: Tolerances
    sources: Sources

    def of(self, dtype: str, output: int | None = None) -> Rule:
        """The rule for an array of this dtype: an output, or for None something that is made of outputs."""
        if self.comparison.compare == "exact":
            return Rule(dtype, bits=str(self.sources.get("compare", GOLDEN)))
        noise = None if output is None or not self.noise.outputs else self.noise.outputs[output]
        measured = Rule(dtype, noise=noise, narrowest_float=self.noise.narrowest_float, factor=self.noise.factor)
        if dtype not in FLOATS:
            return measured
        comparison = self.comparison
        given = Tolerance(*(amount_for(dtype, item) for item in (comparison.rtol, comparison.atol, comparison.ulp)))
        if noise is not None and not is_asked_for(dtype, given, self.platforms, self.tolerances):
            is_wider = any(platform in PLATFORM_RTOL for platform in self.platforms)
            rtol = default_rtol(dtype, self.platforms) if is_wider else 0.0
            return replace(measured, rtol_of_platform=rtol)
        tolerance = tolerance_for(dtype, given, self.platforms, self.tolerances, self.sources)
        return replace(measured, tolerance=tolerance)


def _by_jumps(expected: Array, actual: Array, noise: Array, factor: float) -> ComparedElements:
    """Integers and booleans: equal but for those that jump in the writer's own runs."""
    unequal, error = expected != actual, np.abs(to_double(actual) - to_double(expected))
    limit = factor * noise
    bad = unequal & ((noise == 0) | (error > limit))
    in_noise = np.where(unequal, error / np.where(noise > 0, noise, 1.0), 0.0)
    return ComparedElements(bad, "equal values, but for those that jump", limit, np.where(bad, np.inf, in_noise))


def same(want: Array, got: Array) -> Array:
    """Equal, or both NaN: a complex number is NaN when either part is, as in NumPy."""
    equal: Array = (want == got) | (np.isnan(want) & np.isnan(got))
    return equal


def _beyond(expected: Array, actual: Array, allowed: Allowed, scale: Array) -> ComparedElements:
    """Which elements are out of tolerance."""
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
