"""What kind of difference it is: a pattern, lost precision, rounding or garbage; and how errors are distributed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens.arrays import Array
from export_core.numbers.elements import to_double
from export_core.numbers.patterns import pattern_of
from export_core.numbers.places import NEARLY_ALL, Places
from export_core.numbers.precision import lost_precision

SAMPLE = 5_000
"""Of how many elements a pattern is looked for where more differ."""

_NO_PATTERN = "no pattern"
_SMALL = 10  # a message lists the elements of such an array
_FEW = 4
_DECADES = (1, 10, 100, 1000)
_LARGEST_FLOAT16 = 65520.0  # what is beyond becomes infinite


@dataclass(frozen=True)
class Diagnosis:
    """What the elements that differ look like, and a histogram of the errors. Empty where nothing is to be said."""

    looks_like: str = ""
    histogram: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines for a message."""
        kind = self.looks_like if self.looks_like.startswith(_NO_PATTERN) else f"looks like: {self.looks_like}"
        return tuple(line for line in (kind if self.looks_like else "", self.histogram) if line)


def diagnose(expected: Array, actual: Array, limit: Array | None, dtype: str = "") -> Diagnosis:
    """What is wrong with `actual`, an array of the shape and dtype of `expected`.

    `limit` is the allowed error of each element, as float64 of the same shape; None where elements must be equal.
    `dtype` is in what the arrays were computed, where it is not theirs: parts of factorizations are made in doubles.
    A pattern is named only if it explains nearly all elements that differ; of large arrays a sample is looked at.
    """
    with np.errstate(all="ignore"):
        return _diagnose(expected, actual, limit, dtype or expected.dtype.name)


def _diagnose(expected: Array, actual: Array, limit: Array | None, dtype: str) -> Diagnosis:
    floating = expected.dtype.name in FLOATS
    want, got = to_double(expected), to_double(actual)
    finite = np.isfinite(want) & np.isfinite(got)
    error = np.abs(got - want)
    if not floating or limit is None:
        differs = (expected != actual) & ~(np.isnan(want) & np.isnan(got))
    else:
        differs = np.where(finite, ~(error <= limit) & (error != 0), (want != got) & ~(np.isnan(want) & np.isnan(got)))
    if not differs.any():
        return Diagnosis()
    kinds = []
    if (one_sided := differs & ~finite).any():
        kinds.append(_not_finite(want, got, one_sided, dtype))
    if (numbers := differs & finite).any():
        places = _places(want, got, limit if floating else None, numbers, dtype)
        kinds.append(pattern_of(places) or _without_pattern(places, dtype))
    histogram = _histogram(error, differs, want, limit, dtype)
    return Diagnosis("; ".join(kind for kind in kinds if kind), histogram)


def _places(want: Array, got: Array, limit: Array | None, differs: Array, dtype: str) -> Places:
    """The elements that differ, with what is allowed for each."""
    eps, tiny = _steps(dtype)
    random = np.random.default_rng(0)
    chosen, anywhere = np.flatnonzero(differs), random.integers(0, differs.size, SAMPLE)
    if chosen.size > SAMPLE:
        chosen = np.sort(chosen[random.integers(0, chosen.size, SAMPLE)])
    others = np.unique(anywhere[~differs.reshape(-1)[anywhere]])
    at, elsewhere = (np.unravel_index(flat, want.shape) if want.ndim else () for flat in (chosen, others))
    expected, actual = want.reshape(-1)[chosen], got.reshape(-1)[chosen]
    if not eps:
        allowed = np.full(chosen.size, 0.5)
    elif limit is None:
        allowed = np.zeros(chosen.size)
    else:
        allowed = limit.reshape(-1)[chosen]
    return Places(want, got, limit, eps, tiny, at, elsewhere, expected, actual, allowed)


def _steps(dtype: str) -> tuple[float, float]:
    """The relative step of a float type and its smallest normal number; 0 for integers."""
    if dtype not in FLOATS:
        return 0.0, 0.0
    import ml_dtypes  # it comes with jax; NumPy knows nothing of narrow floats

    info = ml_dtypes.finfo(getattr(ml_dtypes, dtype, dtype))
    return float(info.eps), float(info.smallest_normal)


def _not_finite(want: Array, got: Array, one_sided: Array, dtype: str) -> str:
    """What NaN and infinities on one side only look like; empty where a count of them says all."""
    want, got, finite = want[one_sided], got[one_sided], want[np.isfinite(want)]
    if (np.isnan(want) & (got == 0)).mean() >= NEARLY_ALL:
        return "NaN replaced by zeros"
    if (np.isinf(want) & np.isfinite(got) & (np.abs(got) == np.abs(got).max())).mean() >= NEARLY_ALL:
        return "infinities replaced by a number" if want.size > 1 else ""
    beyond = int((np.abs(finite) >= _LARGEST_FLOAT16).sum())
    overflowed = (np.abs(want) >= _LARGEST_FLOAT16) & np.isinf(got)
    if dtype != "float16" and overflowed.all() and beyond == want.size < finite.size:
        return "as if computed in float16: numbers beyond 65504 are infinite"
    return ""


def _without_pattern(places: Places, dtype: str) -> str:
    """Lost precision or rounding, else how large the errors are; empty for a few elements, or equal ones."""
    if places.eps and (lost := lost_precision(places, dtype)):
        return lost
    if places.want.size < _FEW or not places.vary or dtype == "bool":
        return ""
    size = float(np.median(np.abs(places.got - places.want) / np.abs(places.want)))
    if not size < 0.25:
        return f"{_NO_PATTERN}: garbage, errors as large as the values"
    return f"{_NO_PATTERN}: errors of about {size:.0e} of the values"


def _histogram(error: Array, differs: Array, want: Array, limit: Array | None, dtype: str) -> str:
    """How many elements have errors of which size: in units of what is allowed, else of the last place or of 1."""
    if error.size <= _SMALL or dtype == "bool":
        return ""
    eps, _ = _steps(dtype)
    units, name = error, "errors"
    if eps and limit is None:
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
