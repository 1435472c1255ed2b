"""The names of comparators, and tolerances by dtype and by platform. No numpy: every pytest run may load it."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from export_core.base.platforms import PLATFORMS, similar_platform
from export_core.base.text import did_you_mean

COMPARATORS = ("allclose", "exact", "shape", "eigh", "eig", "svd", "qr", "lu", "schur")
"""The built-in comparators, which `compare` may name. Any other value is a user's own ``module:function``."""

WITHOUT_TOLERANCE = ("exact", "shape")  # Comparators that look at no tolerance. A user's own function gets none either.

AMOUNTS = ("rtol", "atol", "ulp")  # The kinds of tolerances.

LEVELS = (
    " Write them by platform and dtype, such as tolerances: {cpu: {float32: {rtol: 1e-3}}}. Those of new goldens on "
    "all platforms are a key of their own, such as rtol: {float32: 1e-3}."
)
"""An example of a policy's tolerances, for the message about one that lacks the platform or the dtype."""

DEFAULT_RTOL = {
    "float64": 1e-10,
    "complex128": 1e-10,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
}
"""The relative tolerance of each dtype: 84 units in the last place of float32, 2 of 16-bit floats.

Any other dtype gets `COARSE`.
"""

COARSE = 0.25  # float8 and narrower: about a unit in the last place of float8_e5m2, which has 2 bits.

PLATFORM_RTOL: dict[str, dict[str, float]] = {
    "tpu": {"float32": 1e-2, "complex64": 1e-2},
    "cuda": {"float32": 1e-3, "complex64": 1e-3},
    "rocm": {"float32": 1e-3, "complex64": 1e-3},
}
"""The relative tolerances by platform that are wider than `DEFAULT_RTOL`, if writer or reader run on the platform.

Unless a program asks for more, XLA multiplies float32 matrices there in bfloat16 (tpu: factors rounded by up to 2e-3
each) or TensorFloat-32 (gpu: 5e-4), by the documentation of `jax.lax.Precision`; both factors are rounded.
"""

FLOATS = (
    *DEFAULT_RTOL,
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
    *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"),
)
"""The dtypes that tolerances are for. In arrays of any other dtype, all elements must be equal."""

ROUNDING = "rounding: "
"""The beginning of the description of a difference that looks like rounding: see numbers/diagnosis.py."""
WITHIN_NOISE = f"{ROUNDING}within "
"""The beginning of the description of a difference that only fails because less than the noise is allowed."""
ALL_ZERO, NAN_TO_ZERO = "the elements that differ are zero", "NaN replaced by zeros"
BEYOND = "beyond the range: "
GARBAGE = (ALL_ZERO, NAN_TO_ZERO, BEYOND)
"""The beginnings of descriptions of differences that no tolerance should hide."""
NOISE_FACTOR = 4.0  # How many times its noise an element may be off. The curve: docs/evidence/numbers-measured.md.
NEAR = 100  # Times what is allowed: a larger error is not rounding.


class Tolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest allowed error of an element: `atol + rtol * |expected|`, or `ulp` units in the last place.

    A field that is None is decided by the golden, the policy, or the default of the dtype.
    """

    rtol: Annotated[float | None, Meta(description="Relative tolerance.")] = None
    atol: Annotated[float | None, Meta(description="Absolute tolerance.")] = None
    ulp: Annotated[int | None, Meta(description="Tolerance in units of the last place.")] = None


Tolerances = Mapping[str, Mapping[str, Tolerance]]  # By platform, then by dtype.

Sources = Mapping[str, str | Mapping[str, str]]
"""The origin of each part of a comparison (`compare`, `rtol`, `atol`, `ulp`), such as the policy, in words.

A part has a text for all dtypes, or a text for each dtype. A part that is missing was set by the golden.
"""
GOLDEN = "golden"


class Allowed(NamedTuple):
    """The tolerance that a comparison applies to a dtype, as marker, settings and policy together decide it."""

    rtol: float  # The relative tolerance.
    atol: float | None  # The absolute tolerance; None if it follows from `rtol`.
    ulp: int | None  # The tolerance in units of the last place; None if not set.
    dtype: str
    sources: Mapping[str, str]  # What set each part that is not a default, by the part's name.

    def in_words(self, atol: float) -> str:
        """Return the tolerance in words, such as ``rtol 0.001 (export_compat.yaml:12), atol 0.5, or 4 ulp (golden)``.

        The source of each part follows in brackets. `atol` is the largest absolute tolerance that was applied, which
        follows from `rtol` if no absolute tolerance is set.
        """
        parts = []
        if self.ulp is None or self.rtol or self.atol:
            # An rtol of 0 that nothing has set comes with the atol that is set.
            default = f"default of {self.dtype}" if self.rtol else self.sources.get("atol", "")
            by_rtol = self.sources.get("rtol", default)
            parts = [(f"rtol {self.rtol:.3g}", by_rtol), (f"atol {atol:.3g}", self.sources.get("atol", by_rtol))]
        if self.ulp is not None:
            parts.append((f"{'or ' if parts else ''}{self.ulp} ulp", self.sources["ulp"]))
        # What one source has set is listed together.
        groups = itertools.groupby(parts, key=lambda part: part[1])
        return ", ".join(f"{', '.join(text for text, _ in group)} ({source})" for source, group in groups)

    def with_ulp_as_rtol(self, eps: float) -> Allowed:
        """Return this tolerance with `ulp` turned into a relative tolerance: `eps` for each unit in the last place."""
        if self.ulp is None:
            return self
        rtol = self.ulp * eps
        sources = {**self.sources, "rtol": self.sources["ulp"]} if rtol >= self.rtol else self.sources
        return self._replace(rtol=max(self.rtol, rtol), ulp=None, sources=sources)


def tolerance_for(
    dtype: str,
    golden: Tolerance,
    platforms: Sequence[str] = (),
    tolerances: Tolerances | None = None,
    sources: Sources | None = None,
) -> Allowed:
    """Return the tolerance of a dtype for a comparison between a writer and a reader.

    If neither the golden nor the policy sets a tolerance, the default of the dtype applies, which is wider on some
    platforms. If both set one, the wider amount of each kind applies, since a marker is written with one platform in
    mind.

    Args:
        dtype: the dtype of the array.
        golden: the tolerance that the golden sets.
        platforms: the platforms of the writer and the reader.
        tolerances: the tolerances that the policy sets, by platform and dtype.
        sources: where the tolerance of the golden comes from, for messages.

    Returns:
        The tolerance. Its `rtol` is 0 if only `ulp` is set, and its `atol` is None if no absolute tolerance is set.
    """
    policy = tolerances or {}
    given = {name: policy[name][dtype] for name in dict.fromkeys(platforms) if dtype in policy.get(name, {})}
    widest: dict[str, Any] = {}
    by: dict[str, str] = {}
    for kind in AMOUNTS:
        amounts = [(getattr(golden, kind), amount_for(dtype, (sources or {}).get(kind, GOLDEN)))]
        amounts += [(getattr(tolerance, kind), f"tolerances.{name}") for name, tolerance in given.items()]
        if stated := [(amount, source) for amount, source in amounts if amount is not None]:
            widest[kind], by[kind] = max(stated, key=operator.itemgetter(0))
    ulp = widest.get("ulp")
    rtol = widest.get("rtol", default_rtol(dtype, platforms) if ulp is None else 0.0)
    return Allowed(rtol, widest.get("atol"), ulp, dtype, by)


def amount_for(dtype: str, amount: Any) -> Any:
    """Return the amount of a tolerance for a dtype; None if there is none for this dtype.

    `amount` is one value for all dtypes, or a mapping from dtype to value.
    """
    return amount.get(dtype) if isinstance(amount, Mapping) else amount


def given_tolerance(comparison: Any, dtype: str) -> Tolerance:
    """Return the tolerance that a golden's comparison, or a comparison rule of the policy, sets for a dtype."""
    return Tolerance(*(amount_for(dtype, getattr(comparison, kind)) for kind in AMOUNTS))


def takes_tolerances(compare: str) -> bool:
    """Return whether a comparator uses tolerances: a user's own function, `exact` and `shape` do not."""
    return compare not in WITHOUT_TOLERANCE and ":" not in compare


def default_rtol(dtype: str, platforms: Iterable[str] = ()) -> float:
    """Return the default relative tolerance of a dtype: the widest of its defaults on these platforms."""
    of_dtype = DEFAULT_RTOL.get(dtype, COARSE)
    return max([of_dtype, *(PLATFORM_RTOL.get(name, {}).get(dtype, of_dtype) for name in platforms)])


def read_amount(value: object, *, whole: bool = False) -> Any:
    """Check a tolerance from a file or a marker and return it: a number, or numbers by dtype, sorted by dtype.

    Args:
        value: the value to check.
        whole: whether only whole numbers are accepted.

    Raises:
        ValueError: The value is not a tolerance; the message says why.
    """
    if not isinstance(value, Mapping):
        return _number(value, whole=whole)
    if not value:
        raise ValueError("expected at least one dtype with its tolerance, found none.")
    for dtype in value:
        if problem := _problem_of_dtype(dtype):
            raise ValueError(f"{dtype}: {problem}")
    return {dtype: _number(value[dtype], whole=whole, where=f"{dtype}: ") for dtype in sorted(value)}


def problems_of_tolerances(tolerances: Tolerances) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield everything that is wrong with tolerances by platform and dtype, as (path, message)."""
    for platform, by_dtype in tolerances.items():
        if platform not in PLATFORMS:
            advice = similar_platform(platform) or LEVELS
            yield (platform,), f"expected a platform of {', '.join(PLATFORMS)}.{advice}"
            continue
        for dtype, tolerance in by_dtype.items():
            if problem := _problem_of_dtype(dtype):
                yield (platform, dtype), problem + (LEVELS if dtype in (*AMOUNTS, *PLATFORMS) else "")
                continue
            for name in tolerance.__struct_fields__:
                if (value := getattr(tolerance, name)) is not None:
                    try:
                        _number(value, whole=name == "ulp")
                    except ValueError as error:
                        yield (platform, dtype, name), str(error)


def problem_of_name(name: str) -> str:
    """Return why a name cannot be the value of `compare`; "" if it can. The function of a user is not imported."""
    if name in COMPARATORS or ":" in name:
        return ""
    return (
        f"compare={name!r}: expected one of {', '.join(COMPARATORS)}, or your own function as "
        f"'module:function'.{did_you_mean(name, COMPARATORS)}"
    )


def _problem_of_dtype(dtype: object) -> str:
    if dtype in FLOATS:
        return ""
    return f"expected a floating-point dtype such as float32.{did_you_mean(str(dtype), FLOATS)}"


def _number(value: Any, *, whole: bool, where: str = "") -> float | int:
    # True is an Integral to Python; `0 <= value < inf` is false for NaN.
    is_number = not isinstance(value, bool) and isinstance(value, Integral if whole else Real)
    if is_number and 0 <= value < math.inf:
        return int(value) if whole else float(value)
    kind = "whole" if whole else "finite"
    raise ValueError(f"{where}expected a {kind} number of 0 or more, found {value!r}.")
