"""The names of comparators, and tolerances by dtype and by platform. No numpy: every pytest run may load it."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from export_core.base.text import did_you_mean

COMPARATORS = ("allclose", "exact", "shape", "eigh", "eig", "svd", "qr", "lu", "schur")
"""What `compare` may name. Anything else is a user's own function, as ``module:function``."""

WITHOUT_TOLERANCE = ("exact", "shape")  # Comparators that look at no tolerance. A user's own function gets none either.

AMOUNTS = ("rtol", "atol", "ulp")  # The kinds of tolerances.

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")

DEFAULT_RTOL = {
    "float64": 1e-10,
    "complex128": 1e-10,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
}
"""Relative tolerance of each dtype: 84 units in the last place of float32, 2 of the 16-bit ones. Others get COARSE."""

COARSE = 0.25  # float8 and narrower: about a unit in the last place of float8_e5m2, which has 2 bits.

PLATFORM_RTOL: dict[str, dict[str, float]] = {
    "tpu": {"float32": 1e-2, "complex64": 1e-2},
    "cuda": {"float32": 1e-3, "complex64": 1e-3},
    "rocm": {"float32": 1e-3, "complex64": 1e-3},
}
"""The relative tolerances that are wider where writer or reader is such a platform.

Unless a program asks for more, XLA multiplies float32 matrices there in bfloat16 (tpu: factors rounded by up to 2e-3
each) or TensorFloat-32 (gpu: 5e-4), by the documentation of `jax.lax.Precision`; both factors are rounded.
"""

FLOATS = (
    *DEFAULT_RTOL,
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
    *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"),
)
"""The dtypes that tolerances are for; of all others every element must be equal."""

ROUNDING = "rounding: "
"""The beginning of the description of a difference that looks like rounding: see numbers/diagnosis.py."""
ALL_ZERO, NAN_TO_ZERO = "the elements that differ are zero", "NaN replaced by zeros"
BEYOND = "beyond the range: "
GARBAGE = (ALL_ZERO, NAN_TO_ZERO, BEYOND)
"""The beginnings of descriptions of differences that no tolerance is meant for."""


class Tolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest allowed error of an element: `atol + rtol * |expected|`, or `ulp` units in the last place.

    None leaves it to the golden, the policy, or the default.
    """

    rtol: Annotated[float | None, Meta(description="Relative tolerance.")] = None
    atol: Annotated[float | None, Meta(description="Absolute tolerance.")] = None
    ulp: Annotated[int | None, Meta(description="Tolerance in units of the last place.")] = None


Tolerances = Mapping[str, Mapping[str, Tolerance]]  # By platform, then by dtype.

Sources = Mapping[str, str | Mapping[str, str]]
"""What set the parts of a comparison (`compare`, `rtol`, `atol`, `ulp`), in a few words for messages.

One text for all dtypes, or one for each dtype. A part that is not named was set by the golden.
"""
GOLDEN = "golden"


class Allowed(NamedTuple):
    """The tolerance of one dtype, as it is applied; `sources` says what set each part, none where all are defaults."""

    rtol: float
    atol: float | None
    ulp: int | None
    dtype: str
    sources: Mapping[str, str]

    def in_words(self, atol: float) -> str:
        """Return the tolerance in words, such as ``rtol 0.001 (export_compat.yaml:12), atol 0.5, or 4 ulp (golden)``.

        Each part has what set it behind it. `atol` is the largest that was applied: where none is set, it follows from
        `rtol`.
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
        """Return this tolerance with its units in the last place, each of `eps`, as relative error."""
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
    """Return the tolerance of a dtype between two platforms, the writer's and the reader's.

    The default is that of the dtype, wider on some platforms. What the golden has, or the policy for one of the
    platforms, is used instead. Of several, the widest of each kind is taken, because a marker was written with one
    platform in mind. `ulp` without `rtol` applies alone. `atol` stays None where it is not set. `sources` tells what
    set the tolerance of the golden.
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
    """Return the part of a comparison for a dtype, from one for all or a mapping; None where it has none."""
    return amount.get(dtype) if isinstance(amount, Mapping) else amount


def given_tolerance(comparison: Any, dtype: str) -> Tolerance:
    """Return the explicit tolerance for a dtype in a golden's comparison, or in a rule for one."""
    return Tolerance(*(amount_for(dtype, getattr(comparison, kind)) for kind in AMOUNTS))


def takes_tolerances(compare: str) -> bool:
    """Return whether a comparator looks at tolerances."""
    return compare not in WITHOUT_TOLERANCE and ":" not in compare


def default_rtol(dtype: str, platforms: Iterable[str] = ()) -> float:
    """Return the relative tolerance of a dtype where none is set."""
    of_dtype = DEFAULT_RTOL.get(dtype, COARSE)
    return max([of_dtype, *(PLATFORM_RTOL.get(name, {}).get(dtype, of_dtype) for name in platforms)])


def read_amount(value: object, *, whole: bool = False) -> Any:
    """Return a tolerance that was read: a number, or numbers by dtype, sorted.

    Args:
        value: what was read.
        where: what messages begin with.
        whole: whether only whole numbers are accepted.

    Raises:
        ValueError: it is anything else.
    """
    if not isinstance(value, Mapping):
        return _number(value, whole=whole)
    if not value:
        raise ValueError("expected at least one dtype with its tolerance, found none.")
    for dtype in value:
        if problem := _problem_of_dtype(dtype):
            raise ValueError(f"{dtype}: {problem}")
    return {dtype: _number(value[dtype], whole=whole, where=f"{dtype}: ") for dtype in sorted(value)}


def problem_of_tolerances(tolerances: Tolerances) -> str:
    """Return what is wrong with tolerances by platform and dtype; empty when nothing is."""
    for platform, by_dtype in tolerances.items():
        if platform not in PLATFORMS:
            return f"{platform}: expected a platform of {', '.join(PLATFORMS)}.{similar_platform(platform)}"
        for dtype, tolerance in by_dtype.items():
            if problem := _problem_of_dtype(dtype):
                return f"{platform}: {dtype}: {problem}"
            for name in tolerance.__struct_fields__:
                if (value := getattr(tolerance, name)) is not None:
                    try:
                        _number(value, whole=name == "ulp")
                    except ValueError as error:
                        return f"{platform}: {dtype}: {name}: {error}"
    return ""


def similar_platform(name: str) -> str:
    """Return a hint at the platform that was meant, to follow a sentence; empty where none is like it."""
    # What JAX's own `jax.devices("gpu")` takes; an artifact is exported for one of the two.
    if name.lower() == "gpu":
        return " Did you mean 'cuda' or 'rocm'?"
    return did_you_mean(name.lower(), PLATFORMS)


def problem_of_name(name: str) -> str:
    """Return why a name is no comparator for `compare`; empty when it is one. A user's own function is not imported."""
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
