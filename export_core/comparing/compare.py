"""Are these the outputs that the writer saw, and if not, how far off?

Shapes and dtypes must be the same. Integers, booleans, PRNG keys and float0 must be equal; floats and complex numbers may differ by
``atol + rtol * abs(expected)``, or by some units in the last place; NaN equals NaN, infinities must agree in sign.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from export_core.comparing.comparators import check_comparator, own_verdict
from export_core.comparing.factors import FACTORS, Part, parts_of
from export_core.comparing.ulp import ulp_distance
from export_core.goldens import Comparison, Leaf
from export_core.goldens.arrays import Array
from export_core.tolerances import FLOATS, Tolerance, Tolerances, tolerance_for

FIRST_ROWS = 5


@dataclass(frozen=True)
class Row:
    """One element that differs."""

    index: tuple[int, ...]
    expected: str
    actual: str


@dataclass(frozen=True)
class Difference:
    """How far outputs are from the expected ones.

    `ok` says whether that is within tolerance. The errors are the largest over all outputs (inf where one side is not finite;
    `max_ulp`, in units in the last place, over the floats that are finite on both sides, None where there is none); the rest describes
    the first output that is out of tolerance: its name, how many of its elements differ, the worst element and the first few, and in
    `masks` where one side is NaN or infinite and the other is not. `problem` is set instead where shapes, dtypes or the number of
    outputs differ, and by a user's own comparator.
    """

    ok: bool
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    max_ulp: int | None = None
    problem: str = ""
    output: int | None = None
    of_type: str = ""
    mismatched: int = 0
    total: int = 0
    worst: Row | None = None
    rows: tuple[Row, ...] = ()
    masks: tuple[str, ...] = ()
    tolerance: str = ""

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        errors = f"max abs error {self.max_abs_error:.3g}, max rel error {self.max_rel_error:.3g}"
        if self.max_ulp is not None:
            errors += f", max ulp {self.max_ulp}"
        if self.ok:
            return errors
        name = self.of_type if self.output is None else f"output {self.output} {self.of_type}"
        lines = [f"{name}: {self.mismatched} of {self.total} elements differ ({errors}; allowed {self.tolerance})"]
        lines += [f"  {mask}" for mask in self.masks]
        if self.worst:
            lines.append(f"  worst at {_index(self.worst)}: expected {self.worst.expected}, got {self.worst.actual}")
        lines += [f"  first at {_index(row)}: expected {row.expected}, got {row.actual}" for row in self.rows]
        return "\n".join(lines)


def compare_leaves(
    expected: Sequence[Leaf],
    actual: Sequence[Leaf],
    how: Comparison,
    *,
    platforms: Sequence[str] = (),
    tolerances: Tolerances | None = None,
) -> Difference:
    """Compare flat outputs.

    Args:
        expected: what the writer saw.
        actual: what came out now.
        how: comparator and tolerances, as the golden keeps them.
        platforms: where the two ran, the writer's and the reader's.
        tolerances: what the policy says for platforms.

    Raises `CompareError` when the outputs cannot be compared in this way, or a user's own comparator fails.
    """
    if len(expected) != len(actual):
        return Difference(False, problem=f"expected {len(expected)} outputs, got {len(actual)}")
    for number, (want, got) in enumerate(zip(expected, actual, strict=True)):
        if str(want) != str(got):
            return Difference(False, problem=f"output {number}: expected {want}, got {got}", output=number)
    check_comparator(how.compare)

    def allowed(dtype: str) -> Tolerance | None:
        if dtype not in FLOATS:
            return None
        golden = Tolerance(*(_amount(said, dtype) for said in (how.rtol, how.atol, how.ulp)))
        return tolerance_for(dtype, golden, platforms, tolerances)

    wanted, found = ([leaf.numpy() for leaf in side] for side in (expected, actual))
    if how.compare in FACTORS:
        parts = parts_of(how.compare, wanted, found)
        return _worst_of([_compare_part(how.compare, part, allowed(part.dtype)) for part in parts])
    exact = how.compare == "exact"
    plain = _worst_of(
        [
            replace(_compare(str(leaf), want, got, None if exact else allowed(leaf.dtype), bits=exact), output=number)
            for number, (leaf, want, got) in enumerate(zip(expected, wanted, found, strict=True))
        ]
    )
    if ":" not in how.compare:
        return plain
    problem = own_verdict(how.compare, wanted, found)
    told = "" if problem is None else f"{how.compare}: {problem}"
    return Difference(not told, plain.max_abs_error, plain.max_rel_error, plain.max_ulp, problem=told)


def _amount(said: Any, dtype: str) -> Any:
    return said.get(dtype) if isinstance(said, Mapping) else said


def _worst_of(differences: Sequence[Difference]) -> Difference:
    if not differences:
        return Difference(True, 0.0, 0.0)
    shown = next((difference for difference in differences if not difference.ok), differences[0])
    return replace(
        shown,
        max_abs_error=max(difference.max_abs_error or 0.0 for difference in differences),
        max_rel_error=max(difference.max_rel_error or 0.0 for difference in differences),
        max_ulp=max((each.max_ulp for each in differences if each.max_ulp is not None), default=None),
    )


def _compare_part(name: str, part: Part, allowed: Tolerance | None) -> Difference:
    """Parts are computed: their units in the last place are those of their largest element, and count as relative error."""
    if allowed is not None and allowed.ulp is not None:
        rtol = max(allowed.rtol or 0.0, allowed.ulp * float(np.finfo(part.dtype).eps))
        allowed = Tolerance(rtol, allowed.atol)
    found = _compare(part.what, part.expected, part.actual, allowed, scale=part.scale)
    return replace(found, of_type=f"{name}: {part.what}", max_ulp=None)


def _compare(
    what: str,
    expected: Array,
    actual: Array,
    allowed: Tolerance | None,
    *,
    bits: bool = False,
    scale: Array | None = None,
) -> Difference:
    """Compare two arrays of one shape and dtype; equal values without `allowed`, or equal bits."""
    units = ulp_distance(expected, actual) if _floating(expected) else None
    if bits:
        bad, tolerance = (_bytes(expected) != _bytes(actual)).any(axis=-1), "equal bits"
    elif allowed is None:
        bad, tolerance = ~_same(expected, actual) if _floating(expected) else expected != actual, "equal values"
    else:
        bad, tolerance = _beyond(expected, actual, allowed, units, scale)
    absolute, relative = _errors(expected, actual)
    plain = Difference(
        ok=not bad.any(),
        max_abs_error=_top(absolute),
        max_rel_error=_top(relative),
        max_ulp=None if units is None else _most(units, np.isfinite(_wide(expected)) & np.isfinite(_wide(actual))),
        of_type=what,
        tolerance=tolerance,
    )
    if plain.ok:
        return plain
    indices = np.argwhere(bad)
    ranked = np.where(bad, absolute, -1.0)
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(ranked)), ranked.shape))
    return replace(
        plain,
        mismatched=len(indices),
        total=int(bad.size),
        worst=_row(worst, expected, actual),
        rows=tuple(_row(tuple(int(i) for i in index), expected, actual) for index in indices[:FIRST_ROWS]),
        masks=_masks(expected, actual, bad),
    )


def _beyond(
    expected: Array, actual: Array, allowed: Tolerance, units: Array | None, scale: Array | None
) -> tuple[Array, str]:
    """Which elements are out of tolerance, and what that is in words."""
    want, got = _wide(expected), _wide(actual)
    rtol = allowed.rtol or 0.0
    # Without an atol of its own an array is measured by its largest element, so that a scale of 1e-6 is no free pass.
    atol = np.asarray(rtol * (_largest(want) if scale is None else scale) if allowed.atol is None else allowed.atol)
    with np.errstate(all="ignore"):
        close = np.abs(got - want) <= atol + rtol * np.abs(want)
    words = f"rtol {rtol:.3g}, atol {atol.max(initial=0.0):.3g}"
    if allowed.ulp is not None and units is not None:
        close |= units <= allowed.ulp
        words = f"{allowed.ulp} ulp" if rtol == 0 and not allowed.atol else f"{words}, or {allowed.ulp} ulp"
    # No tolerance reaches over the edge of what is finite: the neighbour of the largest number is still no infinity.
    return ~np.where(np.isfinite(want) & np.isfinite(got), close, _same(want, got)), words


def _errors(expected: Array, actual: Array) -> tuple[Array, Array]:
    """Absolute and relative error of each element as float64; inf where exactly one side is NaN or infinite."""
    want, got = _wide(expected), _wide(actual)
    with np.errstate(all="ignore"):
        if expected.dtype.kind in "iu":  # 64 bits do not fit into a float; modulo 2**64 their distance is exact
            distance = np.maximum(expected, actual).astype(np.uint64) - np.minimum(expected, actual).astype(np.uint64)
        else:
            distance = np.where(_same(want, got), 0.0, np.abs(got - want))
        absolute = np.where(np.isnan(distance), np.inf, distance.astype(np.float64))
        relative = np.where(absolute == 0.0, 0.0, absolute / np.abs(want))
    return absolute, np.where(np.isnan(relative), np.inf, relative)


_KINDS = ("a number", "NaN", "an infinity")


def _masks(expected: Array, actual: Array, bad: Array) -> tuple[str, ...]:
    """Which elements are NaN or infinite on one side only, or another infinity, in a line for each kind."""
    want, got = _kind(expected), _kind(actual)
    lines = []
    for one, other in itertools.product(range(len(_KINDS)), repeat=2):
        count = int((bad & (want == one) & (got == other)).sum())
        if count and (one != other or _KINDS[one] == "an infinity"):
            found = "another infinity" if one == other else _KINDS[other]
            lines.append(f"{found} where {_KINDS[one]} was expected at {count} place{'s' if count > 1 else ''}")
    return tuple(lines)


def _kind(values: Array) -> Array:
    """The place in `_KINDS` of each element."""
    wide = _wide(values)
    return np.where(np.isnan(wide), 1, np.where(np.isinf(wide), 2, 0))


def _floating(values: Array) -> bool:
    return values.dtype.name in FLOATS


def _wide(values: Array) -> Array:
    """Wide enough that the subtraction of two of them does not overflow or round."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _same(want: Array, got: Array) -> Array:
    """Equal, or both NaN: a complex number is NaN when either part is, as in NumPy."""
    same: Array = (want == got) | (np.isnan(want) & np.isnan(got))
    return same


def _bytes(values: Array) -> Array:
    # ascontiguousarray makes a zero-dimensional array one-dimensional, which view needs.
    return np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, values.dtype.itemsize)


def _largest(values: Array) -> float:
    finite = np.abs(_wide(values))[np.isfinite(_wide(values))]
    return float(finite.max()) if finite.size else 0.0


def _top(errors: Array) -> float:
    return float(errors.max()) if errors.size else 0.0


def _most(units: Array, finite: Array) -> int | None:
    return int(units[finite].max()) if finite.any() else None


def _row(index: tuple[int, ...], expected: Array, actual: Array) -> Row:
    return Row(index, str(expected[index]), str(actual[index]))


def _index(row: Row) -> str:
    return f"[{', '.join(map(str, row.index))}]"
