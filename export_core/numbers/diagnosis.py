"""The kind of a difference: a pattern, lost precision, rounding or garbage; and how errors are distributed.

A pattern (a wrong sign, a factor, an offset, exchanged axes) predicts a value for each element that differs. It is
named only if nearly all of these elements have the predicted values, and if that is more than chance.

An element that is off by 1,000 times what is allowed has the predicted value, within what is allowed, by chance in one
of 1,000 cases. It therefore counts as 10 bits of evidence.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from export_core.base.error_grid import LONGEST_LINE, MOST_COLUMNS, MOST_ROWS, ErrorGrid
from export_core.base.tolerances import ALL_ZERO, BEYOND, FLOATS, NAN_TO_ZERO, NEAR, ROUNDING
from export_core.goldens.arrays import Array
from export_core.numbers.elements import finfo, to_double

_SAMPLE = 5_000  # How many elements are searched for a pattern if more differ.
_NEARLY_ALL = 0.98
_ENOUGH_BITS = 12.0  # Bits of evidence beyond the cost of choosing the pattern: one false claim in 4,000.
_MOST_BITS = 20.0  # The most bits of evidence of one element.
_FIXED_PATTERN_BITS = 4.0  # The cost of choosing one of a dozen fixed patterns.
_FREE_NUMBER_BITS = 20.0  # The cost of a factor or an offset that is fitted to the elements.
_NO_PATTERN = "no pattern"
_SMALL = 10  # An array with at most this many elements has no histogram: a message lists them.
_FEW = 4
_DECADES = (1, 10, 100, 1000)
_LARGEST_FLOAT16 = 65520.0  # From here on, numbers become infinite in float16.

_TYPES = (("bfloat16", 8), ("TensorFloat-32 or float16", 11), ("float32", 24))
"""Narrower types and the bits of their mantissas.

TensorFloat-32 and float16 round alike.
"""

_PRECISION = {"float64": 53, "complex128": 53, "float32": 24, "complex64": 24, "float16": 11}
_LEVELS = {8: (-9.9, -6.0), 11: (-12.9, -11.0), 24: (-25.9, -20.0)}
"""The range of the base-2 logarithm of the median relative error, by the bits of the mantissa.

A single rounding gives about minus the bits minus 1.5; products and sums of rounded numbers give more.
"""
_BETWEEN = (-14.4, -5.0)  # The levels with several possible causes: sums in float16, means in bfloat16.
_ENOUGH = 16  # The fewest elements whose distribution says something.
_ALTERNATING = 0.25  # The least share of neighbours whose errors have different signs, if rounding made them.
_SPREAD = 8  # Times the median: one rounding makes errors of up to 3 times, sums of many 3.5 times (98 % of them).
_RELATED = 0.3  # The least correlation of errors and values that rounding does not make.
_MANY = 24  # The fewest elements that show whether errors are related to values.
_SMOOTH = 0.15  # The same share along an axis. A softmax shares the error of its sum along one, and has more.
_PREDICTED = 0.6  # The least share of the square of errors that values predict, and rounding does not.
_FEW_COLUMNS = 4  # The most columns that are looked at together, such as place and speed.
_SMALLEST_FLOAT16 = 2.0**-24
_FAR = 1000  # Times the largest expected number, and times what is allowed: a larger number is garbage.


@dataclass(frozen=True)
class Diagnosis:
    """The likely kind of a difference, and a histogram of its errors. A field is empty if nothing is known."""

    looks_like: str = ""
    histogram: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the diagnosis for a message."""
        kind = self.looks_like if self.looks_like.startswith(_NO_PATTERN) else f"looks like: {self.looks_like}"
        return tuple(line for line in (kind if self.looks_like else "", self.histogram) if line)


def diagnose(expected: Array, actual: Array, limit: Array | None, dtype: str = "") -> Diagnosis:
    """Return the kind of difference between `actual` and `expected`, arrays of the same shape and dtype.

    `limit` is the allowed error of each element, as float64 of the same shape; None if elements must be equal. `dtype`
    is the dtype of the outputs if the arrays have another one, as the parts of factorizations, which are computed in
    doubles. A pattern is named only if it explains nearly all elements that differ; if many differ, a sample is
    searched.
    """
    dtype = dtype or expected.dtype.name
    with np.errstate(all="ignore"):
        want, got = to_double(expected), to_double(actual)
        limit_of_floats = limit if expected.dtype.name in FLOATS else None
        finite = np.isfinite(want) & np.isfinite(got)
        error = np.abs(got - want)
        differs = (expected != actual) & ~(np.isnan(want) & np.isnan(got))
        if limit_of_floats is not None:
            differs = np.where(finite, ~(error <= limit_of_floats) & (error != 0), differs)
        if not differs.any():
            return Diagnosis()
        kinds = []
        if (one_sided := differs & ~finite).any():
            kinds.append(_not_finite(want, got, one_sided, dtype))
        if (numbers := differs & finite).any():
            elements = _Elements(want, got, limit_of_floats, numbers, dtype)
            beyond = _beyond_range(elements)
            kinds += [beyond, _pattern(elements) or ("" if beyond else _without_pattern(elements, dtype))]
        histogram = _histogram(error, differs, want, limit, dtype)
    return Diagnosis("; ".join(filter(None, kinds)), histogram)


class _Elements:
    """The elements that differ and are finite in both arrays, or a sample of them if they are many.

    `expected` and `actual` are the whole arrays, in double precision. `differs` marks the elements that differ, and
    `limit` has the allowed errors (None if elements must be equal). The sample has the flat indices `at`, the values
    `want` and `got`, and the allowed errors `allowed`. `eps` is the relative step of the dtype, 0 for integers, and
    `tiny` its smallest normal number.
    """

    def __init__(self, expected: Array, actual: Array, limit: Array | None, differs: Array, dtype: str) -> None:
        self.expected, self.actual, self.limit, self.differs = expected, actual, limit, differs
        self.eps, self.tiny = _steps(dtype)
        at = np.flatnonzero(differs)
        if at.size > _SAMPLE:
            at = np.sort(at[np.random.default_rng(0).integers(0, at.size, _SAMPLE)])
        self.at, self.want, self.got = at, expected.reshape(-1)[at], actual.reshape(-1)[at]
        self.allowed = np.full(at.size, 0.0 if self.eps else 0.5)
        if self.eps and limit is not None:
            self.allowed = limit.reshape(-1)[at]

    @property
    def close(self) -> float:
        """The largest relative distance between two floats that may be one result, rounded in different orders."""
        return min(8 * self.eps, max(self.eps, 1e-6))

    @property
    def vary(self) -> bool:
        """Whether the expected values differ from each other. If they are all equal, too many patterns fit."""
        return self.want.size == 1 or bool((np.abs(self.want - self.want[0]) > self.allowed).any())

    def fit(self, predicted: Array, cost: float = _FIXED_PATTERN_BITS, allowed: Array | None = None) -> float:
        """Return the share of the elements that a pattern explains; 0 if it may explain them by chance.

        `predicted` are the values of the pattern, and `cost` is the number of bits that choosing the pattern costs.
        `allowed` are the allowed errors; None for those of the elements.
        """
        allowed = np.maximum(self.allowed if allowed is None else allowed, self.close * np.abs(predicted))
        fits = np.abs(self.got - predicted) <= allowed
        bits = np.log2(np.clip(np.abs(self.got - self.want) / allowed, 1.0, 2**_MOST_BITS))[fits].sum()
        return float(fits.mean()) if fits.mean() >= _NEARLY_ALL and bits - cost >= _ENOUGH_BITS else 0.0


def _steps(dtype: str) -> tuple[float, float]:
    """Return the relative step of a float type and its smallest normal number; 0 and 0 for integers."""
    info = finfo(dtype) if dtype in FLOATS else None
    return (float(info.eps), float(info.smallest_normal)) if info else (0.0, 0.0)


def _not_finite(want: Array, got: Array, one_sided: Array, dtype: str) -> str:
    """Return the pattern of elements that are NaN or infinite in only one of two arrays; empty if they have none."""
    want, got, finite = want[one_sided], got[one_sided], want[np.isfinite(want)]
    if (np.isnan(want) & (got == 0)).mean() >= _NEARLY_ALL:
        return NAN_TO_ZERO
    if (np.isinf(want) & np.isfinite(got) & (np.abs(got) == np.abs(got).max())).mean() >= _NEARLY_ALL:
        return "infinities replaced by a number" if want.size > 1 else ""
    beyond = int((np.abs(finite) >= _LARGEST_FLOAT16).sum())
    overflowed = (np.abs(want) >= _LARGEST_FLOAT16) & np.isinf(got)
    if dtype != "float16" and overflowed.all() and beyond == want.size < finite.size:
        return "as if computed in float16: numbers beyond 65504 are infinite"
    return ""


def _beyond_range(elements: _Elements) -> str:
    """Return a text about numbers far beyond the range of the expected numbers; empty if there are none."""
    sizes = np.abs(elements.expected)
    largest = float(sizes.max(initial=0.0, where=np.isfinite(sizes)))
    far = (np.abs(elements.got) > _FAR * largest) & (np.abs(elements.got - elements.want) > _FAR * elements.allowed)
    if not largest or not far.any():
        return ""
    return f"{BEYOND}up to {float(np.abs(elements.got).max()):.3g}, where at most {largest:.3g} was expected"


def _pattern(elements: _Elements) -> str:
    """Return the name of the pattern that explains the elements that differ; empty if no pattern does."""
    errors = np.abs(elements.got - elements.want)
    if np.median(errors / np.abs(elements.want)) <= elements.close:  # rounding, which many patterns fit
        return ""
    text, best = "", 0.0
    for name, share in _patterns(elements):  # simple ones first: the first of equals is taken
        if share > best:
            text, best = name, share
        if best == 1.0:
            break
    return text


def _patterns(elements: _Elements) -> Iterator[tuple[str, float]]:
    """Yield the names of the patterns, simple patterns first, each with the share of the elements that it explains."""
    want, got, fit = elements.want, elements.got, elements.fit
    # Exactly 0 is no chance in floats; an integer has few values that it can be.
    bits = _MOST_BITS if elements.eps else np.log2(np.abs(want) + 1).mean()
    zeros = float((got == 0).mean())
    if zeros >= _NEARLY_ALL and bits * want.size >= _ENOUGH_BITS:
        denormal = (np.abs(want) < elements.tiny).all()
        yield "denormals flushed to zero" if denormal else ALL_ZERO, zeros
    if not elements.vary:
        return
    yield "the elements that differ have the wrong sign", fit(-want)
    if want.dtype.kind == "c":
        yield "the elements that differ are complex conjugates", fit(np.conj(want))
    if want.size <= 2:
        return
    # The elements that are large beside what is allowed have the exact ratios.
    precise = np.abs(want) / elements.allowed
    chosen = (precise >= np.median(precise)) & (want != 0)
    if chosen.any():
        factor = _median(got[chosen] / want[chosen])
        for number, cost in [(_simple(factor), _FIXED_PATTERN_BITS), (factor, _FREE_NUMBER_BITS)]:
            if number not in (0, -1):
                allowed = elements.allowed * max(1.0, abs(number))
                yield f"a constant factor of {_in_digits(number)}", fit(number * want, cost, allowed)
    offset = _median(got - want)
    cost = _FREE_NUMBER_BITS if elements.eps else _FIXED_PATTERN_BITS
    yield f"a constant offset of {offset:.6g}", fit(want + offset, cost)
    yield from _transposed(elements)


def _simple(factor: complex) -> float:
    """Return the whole number to which a factor is close, or the reciprocal of such a number; 0 if there is none.

    The number 1 does not count, since multiplying by 1 changes nothing.
    """
    for value, invert in ((factor, False), (1 / factor if factor else 0.0, True)):
        whole = round(value.real) if abs(value) < 1e4 else 0
        if whole not in (0, 1) and abs(value - whole) <= 1e-3 * abs(value):
            return 1 / whole if invert else float(whole)
    return 0.0


def _in_digits(factor: complex) -> str:
    """Return a factor in six digits, or as 1 plus its difference from 1 if six digits would show only 1."""
    text = f"{factor:.6g}"
    return f"1 {factor.real - 1:+.3g}".replace(" +", " + ").replace(" -", " - ") if text in ("1", "1+0j") else text


def _median(values: Array) -> complex:
    if values.dtype.kind == "c":
        return complex(np.median(values.real), np.median(values.imag))
    return float(np.median(values))


def _transposed(elements: _Elements) -> Iterator[tuple[str, float]]:
    """Yield the name of each exchange of two axes, with the share of the elements that it explains.

    At least nine tenths of the elements that do not differ must fit the exchange too.
    """
    shape = elements.expected.shape
    for one, other in itertools.combinations(range(len(shape)), 2):
        if not shape[one] == shape[other] > 1:
            continue
        moved = np.swapaxes(elements.expected, one, other)
        moved = np.where(np.isfinite(moved), moved, 0)
        allowed = np.full(shape, 0.0 if elements.eps else 0.5)
        if elements.limit is not None:
            allowed = np.maximum(elements.limit, np.swapaxes(elements.limit, one, other))
        near = np.abs(elements.actual - moved) <= np.maximum(allowed, elements.close * np.abs(moved))
        same = ~elements.differs
        if np.count_nonzero(near[same]) >= 0.9 * np.count_nonzero(same):
            text = "transposed" if len(shape) == 2 else f"axes {one} and {other} exchanged"
            at = elements.at
            yield text, elements.fit(moved.reshape(-1)[at], allowed=allowed.reshape(-1)[at])


def _without_pattern(elements: _Elements, dtype: str) -> str:
    """Return a text about lost precision or rounding, or else about the typical size of the errors.

    Without lost precision, the text is empty for elements that are too few, all equal, or booleans.
    """
    if elements.eps and (lost := _lost_precision(elements, dtype)):
        return lost
    if elements.want.size < _FEW or not elements.vary or dtype == "bool":
        return ""
    size = float(np.median(np.abs(elements.got - elements.want) / np.abs(elements.want)))
    errors = f"of about {size:.0e} of the values" if size < 0.25 else "as large as the values"
    return f"{_NO_PATTERN}: errors {errors}"


def _lost_precision(elements: _Elements, dtype: str) -> str:
    """Return a text about the loss of precision that explains the errors of floats; empty if none explains them."""
    expected, actual = elements.expected.reshape(-1), elements.actual.reshape(-1)
    if expected.size > _SAMPLE:
        sample = np.random.default_rng(0).integers(0, expected.size, _SAMPLE)
        expected, actual = expected[sample], actual[sample]
    # Where both are zero, as after a relu, no type makes an error.
    usable = np.isfinite(expected) & np.isfinite(actual) & ((expected != 0) | (actual != 0))
    want, got = expected[usable], actual[usable]
    types = [(name, bits) for name, bits in _TYPES if bits < _PRECISION.get(dtype, 0)]

    def representable(values: Array, bits: int) -> float:
        """Return the share of the numbers whose mantissas fit into `bits` bits."""
        parts = np.concatenate([values.real, values.imag]) if values.dtype.kind == "c" else values
        mantissas = np.ldexp(np.frexp(parts)[0], bits)
        return float((mantissas == np.rint(mantissas)).mean())

    for name, bits in types if want.size >= _ENOUGH else []:
        # The numbers are the expected ones with mantissas of fewer bits, which the expected ones do not have.
        allowed = 2.0 ** (1 - bits) * np.abs(want) + (_SMALLEST_FLOAT16 if bits == 11 else 0.0)
        if representable(got, bits) < _NEARLY_ALL or representable(want, bits) >= 0.5:
            continue
        if (np.abs(got - want) <= allowed).mean() >= _NEARLY_ALL:
            return f"rounded to {name}"
        # Several roundings in this type; larger errors have another cause.
        if np.median(np.abs(got - want) / np.abs(want)) <= 2.0 ** (3 - bits) and np.unique(got).size >= _ENOUGH:
            return f"as if computed in {name}: the values have at most its {bits} bits"
    return _rounding(elements, want, got) or _level(elements, want, got, types)


def _rounding(elements: _Elements, want: Array, got: Array) -> str:
    """Return a text that says that the errors look like rounding; empty if they do not.

    Errors of rounding are near the allowed errors, small compared with the largest element, similar in size, and of
    both signs. `want` and `got` are expected and actual elements of the whole array.
    """
    errors = np.abs(elements.got - elements.want)
    if elements.limit is not None and (errors > NEAR * elements.allowed).any():
        return ""
    worst, sizes = errors.max(), np.abs(elements.expected)
    scale = sizes.max(initial=0.0, where=np.isfinite(sizes))
    # Types with many bits may lose more of them: 2^-14 is left of float32's 2^-24, 2^-5 of bfloat16's 2^-8.
    if worst > scale * (elements.eps / 2) ** 0.6:
        return ""
    want, got = _once(np.concatenate([want, elements.want]), np.concatenate([got, elements.got]))
    absolute = np.abs(got - want)
    for error in (absolute, absolute / np.abs(want)):  # beside the largest element, or each beside itself
        # Several errors are about as large as the largest one, of both signs.
        alike = error >= error.max(initial=0.0, where=np.isfinite(error)) / 10
        if alike.sum() >= _FEW and _is_random(want[alike], got[alike]):
            return f"{ROUNDING}errors of both signs, at most {_power(worst / scale)} of the largest element"
    return ""


def _level(elements: _Elements, want: Array, got: Array, types: Sequence[tuple[str, int]]) -> str:
    """Return a text that names the float type whose rounding causes errors of this size; empty if no type does.

    The errors must be distributed like errors of rounding. `want` and `got` are expected and actual elements of the
    whole array. `types` are the narrower types that are possible, with the bits of their mantissas.
    """
    want, got = _once(want, got)
    if want.size < _MANY or not _is_random(want, got):
        return ""
    size = math.sqrt(float(np.square(np.abs(want)).mean()))
    for scale, name in ((np.abs(want), "each value"), (np.full(want.shape, size), "the values' root mean square")):
        relative = np.abs(got - want) / scale
        middle = float(np.median(relative))
        # Rounding bounds the errors: where some are far larger than most, or they follow the values, it made none.
        if not 0 < np.quantile(relative, _NEARLY_ALL) <= _SPREAD * middle or _is_related(want / scale, got / scale):
            continue
        if _is_smooth(elements) or _is_predicted(elements):
            return ""
        level, about = math.log2(middle), f"errors of about {_power(middle)} of {name}"
        for type_name, bits in types:
            if _LEVELS[bits][0] < level <= _LEVELS[bits][1]:
                return f"as if computed in {type_name}: {about}"
        return f"as if precision was lost: {about}" if types and _BETWEEN[0] < level <= _BETWEEN[1] else ""
    return ""


def _once(want: Array, got: Array) -> tuple[Array, Array]:
    """Return the different expected values in rising order, each with the actual value of its first element.

    A value that occurs twice, as in a symmetric matrix, would look like two neighbours with the same error.
    """
    values, first = np.unique(want, return_index=True)
    return values, got[first]


def _is_related(want: Array, got: Array) -> bool:
    """Return whether errors rise or fall with the values, or are larger where the values are near zero.

    The errors of a formula with a different constant often rise or fall in this way. The errors of a wave with a
    different frequency are largest where the wave is zero.
    """
    errors, least = got - want, max(_RELATED, 3 / math.sqrt(want.size))
    return abs(_correlation(want.real, errors.real)) > least or _correlation(np.abs(want), np.abs(errors)) < -least


def _correlation(one: Array, other: Array) -> float:
    """Return how closely two arrays are related, from -1 to 1; 0 if one of them is constant."""
    one, other = one - one.mean(), other - other.mean()
    size = math.sqrt(float(np.square(one).sum() * np.square(other).sum()))
    return float((one * other).sum()) / size if size else 0.0


def _is_smooth(elements: _Elements) -> bool:
    """Return whether nearly all errors of neighbours along an axis have the same sign.

    An integration over time drifts in this way if a constant is different, and also if it is computed in a narrower
    type. This function cannot distinguish these two causes.
    """
    want, errors = elements.expected.real, (elements.actual - elements.expected).real
    for axis in range(errors.ndim):
        values, signs = np.moveaxis(want, axis, 0), np.sign(np.moveaxis(errors, axis, 0))
        products = (signs[1:] * signs[:-1])[values[1:] != values[:-1]]  # Equal values have equal errors.
        signs_alike, differ = np.count_nonzero(products > 0), np.count_nonzero(products < 0)
        if signs_alike + differ >= _ENOUGH - 1 and differ < _SMOOTH * (signs_alike + differ):
            return True
    return False


def _is_predicted(elements: _Elements) -> bool:
    """Return whether the values in a row predict the row's errors, as position and speed do if the time is wrong.

    The answer is False for arrays with many columns, where rounded weights cause such errors too.
    """
    want, errors = elements.expected.real, (elements.actual - elements.expected).real
    if want.ndim < 2 or not 1 < want.shape[-1] <= _FEW_COLUMNS:
        return False
    want, errors = (values.reshape(-1, values.shape[-1]) for values in (want, errors))
    rows = np.flatnonzero(np.isfinite(want).all(1) & np.isfinite(errors).all(1))[:_SAMPLE]
    if rows.size < _ENOUGH:
        return False
    want, errors = (values[rows] / (np.abs(values[rows]).max() or 1.0) for values in (want, errors))
    want, errors = want - want.mean(0), errors - errors.mean(0)
    rest = errors - want @ np.linalg.lstsq(want, errors, rcond=None)[0]
    return bool((np.square(rest).sum(0) < (1 - _PREDICTED) * np.square(errors).sum(0)).any())


def _is_random(want: Array, got: Array) -> bool:
    """Return whether errors have both signs, also among elements of nearly the same value.

    The errors of a different formula depend on the value, so that elements of nearly the same value have errors of the
    same sign.
    """
    order = np.argsort(want.real, kind="stable")
    signs = (got - want).real[order] > 0
    is_mixed = signs.size < _ENOUGH or (signs[1:] != signs[:-1]).mean() >= _ALTERNATING
    return bool(0.1 <= signs.mean() <= 0.9 and is_mixed)


def _power(value: float) -> str:
    return f"2^{round(math.log2(value))}"


def _histogram(error: Array, differs: Array, want: Array, limit: Array | None, dtype: str) -> str:
    """Return a line with the number of elements for each size of errors; empty for small or boolean arrays.

    Errors of floats are counted in units of the allowed error, or of the last place if elements must be equal. Errors
    of integers are counted in units of 1.
    """
    if error.size <= _SMALL or dtype == "bool":
        return ""
    units, name = error, "errors"
    if (eps := _steps(dtype)[0]) and limit is None:
        # A unit in the last place; of denormal numbers it is larger.
        units, name = error / np.ldexp(eps, np.frexp(np.abs(want))[1] - 1), "errors in units of the last place"
    elif limit is not None and eps:
        units, name = error / limit, "errors in units of what is allowed"
    not_finite = int(np.count_nonzero(differs & ~np.isfinite(error)))
    beyond = [int(np.count_nonzero(units > bound)) - int(np.count_nonzero(np.isposinf(error))) for bound in _DECADES]
    buckets = {"≤1": error.size - beyond[0] - not_finite}
    for (low, high), (above, next_above) in zip(itertools.pairwise(_DECADES), itertools.pairwise(beyond), strict=True):
        buckets[f"{low}–{high}"] = above - next_above
    buckets |= {f">{_DECADES[-1]}": beyond[-1], "not finite": not_finite}
    return f"{name}: " + " · ".join(f"{bucket}: {count}" for bucket, count in buckets.items() if count)


def error_grid(absolute: Array, limit: Array | None) -> ErrorGrid | None:
    """Return the errors in the parts of an array; None if all errors are 0, as for a zero with another sign.

    Args:
        absolute: The absolute error of each element, infinite where one of both values is not finite.
        limit: The allowed error of each element, of the same shape; None if elements must be equal.
    """
    limit = np.zeros(absolute.shape) if limit is None else np.where(np.isfinite(limit), limit, 0.0)
    errors, allowed = (_as_matrix(np.broadcast_to(values, absolute.shape)) for values in (absolute, limit))
    with np.errstate(all="ignore"):
        beyond = np.where(errors == 0, 0.0, errors / allowed)
    if not beyond.any():
        return None
    height, width = errors.shape
    rows, columns = (1, min(width, LONGEST_LINE)) if height == 1 else (min(height, MOST_ROWS), min(width, MOST_COLUMNS))
    pairs = []
    for top, bottom in itertools.pairwise(height * row // rows for row in range(rows + 1)):
        for left, right in itertools.pairwise(width * column // columns for column in range(columns + 1)):
            part = beyond[top:bottom, left:right]
            row, column = np.unravel_index(int(part.argmax()), part.shape)
            at = top + int(row), left + int(column)
            pairs.append(_in_few_digits(float(errors[at]), float(allowed[at])))
    found, wanted = zip(*pairs, strict=True)
    return ErrorGrid(rows, columns, height, width, found, wanted)


def _as_matrix(values: Array) -> Array:
    """Return an array as a matrix: its last axis becomes the columns, and all other axes together become the rows.

    A single column becomes a row.
    """
    matrix = values.reshape(-1, values.shape[-1] if values.ndim > 1 else values.size)
    return matrix.T if matrix.shape[1] == 1 else matrix


def _in_few_digits(error: float, allowed: float) -> tuple[float | None, float]:
    """Return an error and the allowed error in three digits, or in all digits if three do not show which is larger.

    An infinite error is returned as None.
    """
    if not math.isfinite(error):
        return None, float(f"{allowed:.3g}")
    short = float(f"{error:.3g}"), float(f"{allowed:.3g}")
    return short if (short[0] > short[1]) == (error > allowed) else (error, allowed)
