"""Are these the outputs that the writer saw, and if not, how far off?

Shapes and dtypes must be the same. Integers, booleans, PRNG keys and float0 must be equal; floats and complex numbers may differ by
``atol + rtol * abs(expected)``, NaN equals NaN, infinities must agree in sign.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from export_core.goldens import Comparison, Leaf
from export_core.goldens.arrays import Array
from export_core.matrix.errors import MatrixError

DEFAULT_RTOL = {
    "float64": 1e-10,
    "complex128": 1e-10,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
}
"""Relative tolerance of each dtype; about 100 units in the last place, 4 for the 16-bit ones. Narrower floats get COARSE."""

COARSE = 0.25
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

    `ok` says whether that is within tolerance. The errors are the largest over all outputs (inf where one side is not finite);
    the rest describes the first output that is out of tolerance: its number, how many of its elements differ, the worst
    element and the first few. `problem` is set instead where shapes, dtypes or the number of outputs differ.
    """

    ok: bool
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    problem: str = ""
    output: int | None = None
    of_type: str = ""
    mismatched: int = 0
    total: int = 0
    worst: Row | None = None
    rows: tuple[Row, ...] = ()
    tolerance: str = ""

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        if self.ok:
            return f"max abs error {self.max_abs_error:.3g}, max rel error {self.max_rel_error:.3g}"
        lines = [
            f"output {self.output} {self.of_type}: {self.mismatched} of {self.total} elements differ "
            f"(max abs error {self.max_abs_error:.3g}, max rel error {self.max_rel_error:.3g}; allowed {self.tolerance})"
        ]
        if self.worst:
            lines.append(f"  worst at {_index(self.worst)}: expected {self.worst.expected}, got {self.worst.actual}")
        lines += [f"  first at {_index(row)}: expected {row.expected}, got {row.actual}" for row in self.rows]
        return "\n".join(lines)


Transform = Callable[[Sequence[Array]], list[tuple[str, Array]]]


def compare_leaves(expected: Sequence[Leaf], actual: Sequence[Leaf], how: Comparison) -> Difference:
    """Compare flat outputs by the named comparator."""
    if len(expected) != len(actual):
        return Difference(False, problem=f"expected {len(expected)} outputs, got {len(actual)}")
    for number, (want, got) in enumerate(zip(expected, actual, strict=True)):
        if str(want) != str(got):
            return Difference(False, problem=f"output {number}: expected {want}, got {got}", output=number)
    comparator = comparator_named(how.compare)
    if comparator is None:
        pairs = [(str(leaf), leaf.numpy(), other.numpy()) for leaf, other in zip(expected, actual, strict=True)]
        names = [leaf.dtype for leaf in expected]
        exact = how.compare == "exact"
    else:
        wanted = comparator([leaf.numpy() for leaf in expected])
        found = comparator([leaf.numpy() for leaf in actual])
        pairs = [(what, one, other) for (what, one), (_, other) in zip(wanted, found, strict=True)]
        names = [str(one.dtype) for _, one, _ in pairs]
        exact = False
    return _worst_of(
        [_compare(i, *pair, name, how, exact) for i, (pair, name) in enumerate(zip(pairs, names, strict=True))]
    )


def comparator_named(name: str) -> Transform | None:
    """What to compare instead of the outputs themselves, or None to compare those. Raises `MatrixError` for an unknown name."""
    try:
        return COMPARATORS[name]
    except KeyError:
        near = difflib.get_close_matches(name, COMPARATORS, n=1)
        raise MatrixError(
            f"compare={name!r}: expected one of {', '.join(COMPARATORS)}.{f' Did you mean {near[0]!r}?' if near else ''}"
        ) from None


def _worst_of(differences: Sequence[Difference]) -> Difference:
    if not differences:
        return Difference(True, 0.0, 0.0)
    shown = next((difference for difference in differences if not difference.ok), differences[0])
    return Difference(
        **{
            **shown.__dict__,
            "max_abs_error": max(difference.max_abs_error or 0.0 for difference in differences),
            "max_rel_error": max(difference.max_rel_error or 0.0 for difference in differences),
        }
    )


def _compare(
    number: int, what: str, expected: Array, actual: Array, dtype: str, how: Comparison, exact: bool
) -> Difference:
    if expected.shape != actual.shape:
        return Difference(False, problem=f"output {number} {what}: expected shape {expected.shape}, got {actual.shape}")
    floating = "float" in dtype or "complex" in dtype
    if not floating or dtype == "float0" or exact:
        bad = _bits(expected) != _bits(actual) if exact else expected != actual
        tolerance = "equal bits" if exact else "equal values"
    else:
        rtol = how.rtol if how.rtol is not None else DEFAULT_RTOL.get(dtype, COARSE)
        # Without an atol of its own an array is measured by its largest element, so that a scale of 1e-6 is no free pass.
        atol = how.atol if how.atol is not None else rtol * _largest(expected)
        want, got = _wide(expected), _wide(actual)
        with np.errstate(all="ignore"):
            close = np.abs(got - want) <= atol + rtol * np.abs(want)
        bad = ~np.where(np.isfinite(want), close, _same(want, got))
        tolerance = f"rtol {rtol:.3g}, atol {atol:.3g}"
    absolute, relative = _errors(expected, actual)
    if not bad.any():
        return Difference(True, _top(absolute), _top(relative), tolerance=tolerance)
    if bad.ndim > expected.ndim:
        bad = bad.any(axis=-1)
    indices = np.argwhere(bad)
    ranked = np.where(bad, absolute if absolute.shape == bad.shape else 1.0, -1.0)
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(ranked)), ranked.shape))
    return Difference(
        ok=False,
        max_abs_error=_top(absolute),
        max_rel_error=_top(relative),
        output=number,
        of_type=what,
        mismatched=len(indices),
        total=int(bad.size),
        worst=_row(worst, expected, actual),
        rows=tuple(_row(tuple(int(i) for i in index), expected, actual) for index in indices[:FIRST_ROWS]),
        tolerance=tolerance,
    )


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


def _wide(values: Array) -> Array:
    """Wide enough that the subtraction of two of them does not overflow or round."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _same(want: Array, got: Array) -> Array:
    """Equal, or both NaN: a complex number is NaN when either part is, as in NumPy."""
    same: Array = (want == got) | (np.isnan(want) & np.isnan(got))
    return same


def _bits(values: Array) -> Array:
    # ascontiguousarray makes a zero-dimensional array one-dimensional, which view needs.
    return np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, values.dtype.itemsize)


def _largest(values: Array) -> float:
    finite = np.abs(_wide(values))[np.isfinite(_wide(values))]
    return float(finite.max()) if finite.size else 0.0


def _top(errors: Array) -> float:
    return float(errors.max()) if errors.size else 0.0


def _row(index: tuple[int, ...], expected: Array, actual: Array) -> Row:
    return Row(index, str(expected[index]), str(actual[index]))


def _index(row: Row) -> str:
    return f"[{', '.join(map(str, row.index))}]"


# --- what is unique only up to sign, phase or order -------------------------------------------------------------------


def _take(name: str, meaning: str, count: int, outputs: Sequence[Array]) -> Sequence[Array]:
    if len(outputs) != count:
        raise MatrixError(f"compare={name!r}: expected the outputs {meaning}, found {len(outputs)} outputs.")
    return outputs


def _adjoint(matrix: Array) -> Array:
    return np.conj(np.swapaxes(matrix, -1, -2))


def _gram(matrix: Array) -> Array:
    return _adjoint(matrix) @ matrix


def _eigh(outputs: Sequence[Array]) -> list[tuple[str, Array]]:
    """Eigenvalues as they are; eigenvectors through V diag(w) V^H and V^H V. Takes (w, V) as numpy and (V, w) as lax order them."""
    values, vectors = sorted(_take("eigh", "(w, V)", 2, outputs), key=lambda array: array.ndim)
    rebuilt = (vectors * values[..., None, :]) @ _adjoint(vectors)
    return [("eigenvalues", values), ("V diag(w) V^H", rebuilt), ("V^H V", _gram(vectors))]


def _svd(outputs: Sequence[Array]) -> list[tuple[str, Array]]:
    """Singular values as they are; the vectors through U diag(s) V^H, U^H U and V V^H. Takes (U, s, V^H)."""
    left, values, right = _take("svd", "(U, s, V^H)", 3, outputs)
    kept = values.shape[-1]
    rebuilt = (left[..., :kept] * values[..., None, :]) @ right[..., :kept, :]
    return [
        ("singular values", values),
        ("U diag(s) V^H", rebuilt),
        ("U^H U", _gram(left)),
        ("V V^H", _gram(_adjoint(right))),
    ]


def _qr(outputs: Sequence[Array]) -> list[tuple[str, Array]]:
    """Q R, Q^H Q, and that R is upper triangular; the signs of R's diagonal are free. Takes (Q, R)."""
    orthogonal, upper = _take("qr", "(Q, R)", 2, outputs)
    below = np.tril(upper, -1)
    return [
        ("Q R", orthogonal @ upper),
        ("Q^H Q", _gram(orthogonal)),
        ("R below the diagonal", below),
        ("|R|", np.abs(upper)),
    ]


COMPARATORS: dict[str, Transform | None] = {"allclose": None, "exact": None, "eigh": _eigh, "svd": _svd, "qr": _qr}
"""Comparators by name. Those with a function compare what that function makes of the outputs."""
