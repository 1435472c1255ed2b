"""Comparators of factorizations, whose factors are unique only up to sign, phase or order.

Each takes the expected and the actual outputs, of the same shapes and dtypes, and returns the parts to be compared
instead: the matrix that the factors make, and the properties of such factors (orthonormal columns, zeros below a
diagonal). Leading axes are batches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from export_core.goldens import FactorGroup
from export_core.goldens.arrays import Array
from export_core.numbers import CompareError
from export_core.numbers.elements import largest, to_double


@dataclass(frozen=True)
class Part:
    """An expected and an actual array that are compared in place of factors, such as the product of the factors."""

    what: str
    expected: Array
    actual: Array
    dtype: str  # The dtype of the outputs, which decides the tolerance. Unless it is a float, both must be equal.
    scale: Array | None = None  # This times `rtol` is the absolute tolerance; None means the largest expected element.
    output: int | None = None
    """The number of the output that the part is, whose noise counts; None if it is made from several."""
    mask_of: int | None = None  # The number of the factor that it masks, counted from 0; None if it is no mask.
    is_identity: bool = False  # Whether the array must be nearly the identity matrix.


Factors = Sequence[Array]


@dataclass(frozen=True)
class Sides:
    """The expected and the actual factors of one factorization.

    The argument `of` of its methods is the index of the output whose dtype decides the tolerance of the part.
    """

    expected: Factors
    actual: Factors

    def masks(self) -> list[Part]:
        """Return a part for each output with NaN or infinities, which has zeros in place of the finite elements.

        The elements of these parts are compared one by one, since one NaN would hide everything else in a product of
        factors.
        """

        def zero_if_finite(values: Array) -> Array:
            return np.where(np.isfinite(values), np.zeros((), values.dtype), values)

        return [
            Part("where it is not finite", zero_if_finite(want), zero_if_finite(got), want.dtype.name, mask_of=number)
            for number, (want, got) in enumerate(zip(self.expected, self.actual, strict=True))
            if want.dtype.kind in "fc" and not (np.isfinite(want).all() and np.isfinite(got).all())
        ]

    def output(self, what: str, of: int) -> Part:
        """Return a part for a factor that is compared unchanged: the output with the index `of`, a vector."""
        want = self.expected[of]
        return Part(what, to_double(want), to_double(self.actual[of]), want.dtype.name, largest(want, 1), of)

    def matrix(self, what: str, make: Callable[[Factors], Array], of: int = 0) -> Part:
        """Return a part for the matrix that `make` computes from the factors.

        The tolerance for each matrix of a batch depends on the largest element of this matrix.
        """
        matrix = make(self.expected)
        return Part(what, matrix, make(self.actual), self.expected[of].dtype.name, largest(matrix, 2))

    def orthonormal(self, what: str, make: Callable[[Factors], Array], of: int = 0) -> Part:
        """Return a part for A^H A, where `make` returns A: the identity matrix if A has orthonormal columns."""

        def products(outputs: Factors) -> Array:
            columns = to_double(make(outputs))
            return adjoint(columns) @ columns

        return replace(self.matrix(what, products, of), is_identity=True)

    def equal(self, what: str, make: Callable[[Factors], Array]) -> Part:
        """Return a part for the array that `make` computes from the factors, which must be equal without tolerance."""
        return Part(what, make(self.expected), make(self.actual), "bool")

    def excess(self, what: str, make: Callable[[Factors], Array], of: int, scale: Array) -> Part:
        """Return a part for the amounts by which elements are too large; all are 0 if the factors are right.

        `make` computes the amounts from the factors, and negative amounts count as 0. The allowed error is `scale`
        times the relative tolerance.
        """
        expected, actual = (np.maximum(make(side), 0.0) for side in (self.expected, self.actual))
        return Part(what, expected, actual, self.expected[of].dtype.name, scale)


Comparator = Callable[[Sides], list[Part]]


def eigh(sides: Sides) -> list[Part]:
    """Return parts for the eigenvalues w, in order, and for the vectors V: V diag(w) V^H and V^H V.

    NumPy returns (w, V), and jax.lax returns (V, w).
    """
    # Values have one axis less than vectors, so their order shows in any batch.
    values, vectors = (0, 1) if sides.expected[0].ndim < sides.expected[1].ndim else (1, 0)

    def rebuilt(outputs: Factors) -> Array:
        columns = to_double(outputs[vectors])
        return (columns * to_double(outputs[values])[..., None, :]) @ adjoint(columns)

    return [
        *sides.masks(),
        sides.output("eigenvalues", values),
        sides.matrix("V diag(w) V^H", rebuilt, vectors),
        sides.orthonormal("V^H V", lambda outputs: outputs[vectors], vectors),
    ]


def svd(sides: Sides) -> list[Part]:
    """Return parts for the singular values s, in order, and for the vectors U and V: U diag(s) V^H, U^H U and V^H V."""
    count = sides.expected[1].shape[-1]  # with full_matrices there are more vectors, which the product does not show

    def rebuilt(outputs: Factors) -> Array:
        left, values, right = (to_double(output) for output in outputs)
        return (left[..., :count] * values[..., None, :]) @ right[..., :count, :]

    return [
        *sides.masks(),
        sides.output("singular values", 1),
        sides.matrix("U diag(s) V^H", rebuilt),
        sides.orthonormal("U^H U", lambda outputs: outputs[0]),
        sides.orthonormal("V^H V", lambda outputs: adjoint(outputs[2])),
    ]


def qr(sides: Sides) -> list[Part]:
    """Return parts for Q R, for Q^H Q, and for the elements of R below its diagonal.

    If there is a third output, it is the permutation of columns by pivoting; then the diagonal of |R| must not grow.
    """

    def rebuilt(outputs: Factors) -> Array:
        product = to_double(outputs[0]) @ to_double(outputs[1])
        return product if len(outputs) == 2 else undo_permutation(product, outputs[2], axis=-1)

    # R's rows may turn, so only the magnitudes of its diagonal say whether the pivots were the largest.
    def growth(outputs: Factors) -> Array:
        """Return the growth of |R|'s diagonal between neighbouring elements; with pivoting, none may be positive."""
        return np.diff(np.abs(np.diagonal(to_double(outputs[1]), axis1=-2, axis2=-1)), axis=-1)

    parts = [
        *sides.masks(),
        sides.matrix("Q R", rebuilt),
        sides.orthonormal("Q^H Q", lambda outputs: outputs[0]),
        sides.equal("R below the diagonal", lambda outputs: np.tril(outputs[1], -1)),
    ]
    if len(sides.expected) == 3:
        parts.append(sides.equal("permutation, sorted", lambda outputs: np.sort(outputs[2], axis=-1)))
        parts.append(sides.excess("growth of |R|'s diagonal", growth, 1, largest(sides.expected[1], 2)[..., 0]))
    return parts


def lu(sides: Sides) -> list[Part]:
    """Return parts for P^-1 L U, which is the factorized matrix, and for elements of L that are larger than 1.

    If several rows are equally good pivots, any of them may be chosen. So pivots and permutations may differ from the
    expected outputs, as long as they fit each other.
    """
    if any(output.dtype.kind not in "iu" for output in sides.expected[1:]):
        raise ValueError("expected pivots that are integers")
    # LAPACK chooses complex pivots by |re| + |im| (izamax), not by magnitude: then |l| may be up to the root of 2.
    bound = np.sqrt(2.0) if sides.expected[0].dtype.kind == "c" else 1.0

    def rebuilt(outputs: Factors) -> Array:
        factors = to_double(outputs[0])
        rows, columns = factors.shape[-2:]
        rank = min(rows, columns)
        lower = np.tril(factors[..., :rank], -1) + np.eye(rows, rank)
        return undo_permutation(lower @ np.triu(factors[..., :rank, :]), permutation(outputs[1], rows), axis=-2)

    def legal(outputs: Factors) -> Array:
        rows, count = outputs[0].shape[-2], outputs[1].shape[-1]
        # A row is only swapped with itself or one below.
        return np.asarray((outputs[1] >= np.arange(count)) & (outputs[1] < rows))

    parts = [
        *sides.masks(),
        sides.equal("pivots in their rows", legal),
        sides.matrix("P^-1 L U", rebuilt),
        sides.excess("|L| above 1", lambda of: np.abs(np.tril(to_double(of[0]), -1)) - bound, 0, np.asarray(1.0)),
    ]
    if len(sides.expected) == 3:
        made = "permutation that the pivots make"
        parts.append(sides.equal(made, lambda of: of[2] == permutation(of[1], of[0].shape[-2])))
    return parts


def schur(sides: Sides) -> list[Part]:
    """Return parts for Q T Q^H, for Q^H Q, and for the form of T.

    T is upper triangular. For real matrices, it has 2x2 blocks on its diagonal for pairs of complex eigenvalues.
    """

    def rebuilt(outputs: Factors) -> Array:
        triangle, vectors = (to_double(output) for output in outputs)
        return vectors @ triangle @ adjoint(vectors)

    def misformed(outputs: Factors) -> Array:
        """Return which elements of the first diagonal below the main one should be zero and are not.

        A 2x2 block is right only for a pair of complex eigenvalues, that is, if its discriminant is negative. Blocks
        must not overlap.
        """
        triangle = to_double(outputs[0])
        below = np.diagonal(triangle, -1, -2, -1)
        if triangle.dtype.kind == "c":
            return np.asarray(below != 0)
        diagonal, above = np.diagonal(triangle, 0, -2, -1), np.diagonal(triangle, 1, -2, -1)
        real = (diagonal[..., 1:] - diagonal[..., :-1]) ** 2 / 4 + above * below >= 0
        overlap = np.zeros(below.shape, np.bool_)
        overlap[..., 1:] = below[..., :-1] != 0  # the block before already has this row
        return np.asarray((below != 0) & (real | overlap))

    return [
        *sides.masks(),
        sides.matrix("Q T Q^H", rebuilt),
        sides.orthonormal("Q^H Q", lambda outputs: outputs[1]),
        sides.equal("T below its blocks", lambda outputs: np.tril(outputs[0], -2)),
        sides.equal("2x2 blocks of T that should be split", misformed),
    ]


def eig(sides: Sides) -> list[Part]:
    """Return parts for the eigenvalues w in any order, and for the vectors V of any phase.

    Vectors are compared by their norms and by V diag(w) V^-1. For left vectors, this product is not the factorized
    matrix, but it is still unique.
    """
    expected, actual = sides.expected, sides.actual
    name = expected[0].dtype.name
    order = match_eigenvalues(expected[0], actual[0])
    matched = [np.take_along_axis(actual[0], order, -1)]
    matched += [np.take_along_axis(vectors, order[..., None, :], -1) for vectors in actual[1:]]
    # Eigenvalues and V diag(w) V^-1 differ by more than the vectors do, by their condition number.
    conditions = [condition_number(vectors) for vectors in expected[1:]]
    worst = np.maximum.reduce(conditions)[..., 0] if conditions else np.asarray(1.0)
    values = Sides(expected, matched).output("eigenvalues", 0)
    parts = [*Sides(expected, matched).masks(), replace(values, scale=worst * values.scale)]
    # strict=False: left and right vectors are both optional.
    # The norms as well: V diag(w) V^-1 is the same for vectors of any length.
    for side, condition, want, got in zip(("V", "V'"), conditions, expected[1:], matched[1:], strict=False):
        norms, got_norms = (np.linalg.norm(to_double(vectors), axis=-2) for vectors in (want, got))
        matrix, got_matrix = matrix_from_eigen(expected[0], want), matrix_from_eigen(matched[0], got)
        parts.append(Part(f"norms of {side}", norms, got_norms, name))
        parts.append(Part(f"{side} diag(w) {side}^-1", matrix, got_matrix, name, condition * largest(matrix, 2)))
    return parts


class Factorization(NamedTuple):
    """A comparator of a factorization, with the meaning of the outputs that it takes and how many there may be."""

    comparator: Comparator
    meaning: str
    counts: tuple[int, ...]


FACTORIZATIONS = {
    "eigh": Factorization(eigh, "(w, V) or (V, w)", (2,)),
    "eig": Factorization(eig, "(w,), (w, V) or (w, V left, V right)", (1, 2, 3)),
    "svd": Factorization(svd, "(U, s, V^H)", (3,)),
    "qr": Factorization(qr, "(Q, R) or (Q, R, permutation)", (2, 3)),
    "lu": Factorization(lu, "(LU, pivots) or (LU, pivots, permutation)", (2, 3)),
    "schur": Factorization(schur, "(T, Q)", (2,)),
}


def parts_of(name: str, expected: Factors, actual: Factors) -> list[Part]:
    """Return the parts that the comparator of a factorization compares.

    Raises `CompareError` if the number, dtypes or shapes of the outputs do not fit this factorization.
    """
    factorization = FACTORIZATIONS[name]
    try:
        if len(expected) in factorization.counts and all(output.dtype.kind in "fciu" for output in expected):
            with np.errstate(all="ignore"):  # NaN and infinities are compared, not warned of
                return factorization.comparator(Sides(expected, actual))
    except ValueError:
        pass  # shapes that cannot be multiplied
    outputs = ", ".join(f"{output.dtype.name}[{','.join(map(str, output.shape))}]" for output in expected)
    raise CompareError(f"compare={name!r}: expected the outputs {factorization.meaning}, found {outputs or 'none'}.")


ORTHONORMAL = 0.01  # How far inner products of vectors may be from the identity if the vectors are orthonormal.


def are_factors(group: FactorGroup, outputs: Sequence[Array]) -> bool:
    """Return whether outputs of a writer are unchanged factors: with the right shapes, and with orthonormal vectors.

    False for factors that the program has masked or cut, and for factors with NaN.
    """
    factors = [outputs[output] for output in group.outputs]
    try:
        parts = parts_of(group.compare, factors, factors)
    except CompareError:
        return False
    products = [part.expected for part in parts if part.is_identity]
    return all(np.allclose(one, np.eye(one.shape[-1]), rtol=0, atol=ORTHONORMAL) for one in products)


WORST_CONDITION = 100.0
"""The most that errors of eigenvectors may grow when the matrix is rebuilt from them.

They grow by the condition number of the vectors. For a larger growth the user has to give an rtol: to allow for it
would accept any result for a matrix that is nearly defective.
"""


def adjoint(matrix: Array) -> Array:
    """Return the conjugate transpose of each matrix."""
    return np.conj(np.swapaxes(matrix, -1, -2))


def permutation(pivots: Array, rows: int) -> Array:
    """Return the order of rows after the swaps that LAPACK's pivots define. Rows are counted from 0.

    Pivots that are out of range are clipped.
    """
    # Another comparison reports pivots out of range: this one must not crash before it does.
    batch, steps = pivots.shape[:-1], pivots.shape[-1]
    chosen = np.clip(pivots, 0, max(rows - 1, 0)).astype(np.int64).reshape(int(np.prod(batch)), steps)
    order = np.tile(np.arange(rows), (len(chosen), 1))
    batches = np.arange(len(chosen))
    for step in range(steps):
        other = chosen[:, step]
        order[batches, other], order[:, step] = order[:, step].copy(), order[batches, other].copy()
    return order.reshape(*batch, rows)


def undo_permutation(matrix: Array, permuted: Array, axis: int) -> Array:
    """Put rows (axis -2) or columns (axis -1) back where they were before they were permuted."""
    order = np.argsort(permuted, axis=-1, kind="stable")
    return np.take_along_axis(matrix, order[..., None, :] if axis == -1 else order[..., None], axis)


def match_eigenvalues(expected: Array, actual: Array) -> Array:
    """Return, for each expected eigenvalue, the index of the actual eigenvalue with which it is paired.

    The sum of the distances within pairs is the least possible. Sorting would not be enough: if real parts are nearly
    equal, an error in the last place exchanges the members of conjugate pairs.
    """
    size = expected.shape[-1]
    order = np.tile(np.arange(size), (*expected.shape[:-1], 1))
    distances = np.abs(to_double(expected)[..., :, None] - to_double(actual)[..., None, :])
    finite = np.isfinite(distances)
    # Values that are not finite belong together. For other pairs with one, a distance that no sum of finite ones
    # reaches.
    distances = np.where(finite, distances, 4 * size * np.max(distances, initial=1.0, where=finite))
    both_not_finite = ~np.isfinite(expected)[..., :, None] & ~np.isfinite(actual)[..., None, :]
    distances = np.where(both_not_finite, 0.0, distances)
    for batch in np.ndindex(expected.shape[:-1]):
        costs = distances[batch]
        nearest = costs.argmin(axis=-1) if costs.size else np.arange(0)
        if len(np.unique(nearest)) < len(nearest):
            # Else no sum is less. Importing scipy takes as long as five cells; it has no assignment for batches.
            from scipy.optimize import linear_sum_assignment

            nearest = linear_sum_assignment(costs)[1]
        order[batch] = nearest
    return order


def condition_number(vectors: Array) -> Array:
    """Return the condition number of each matrix of vectors, at most WORST_CONDITION.

    The shape (..., 1, 1) of the result broadcasts with the matrices.
    """
    if vectors.size == 0:
        return np.ones((*vectors.shape[:-2], 1, 1))
    finite = np.isfinite(vectors).all(axis=(-2, -1), keepdims=True)
    condition = np.linalg.cond(np.where(finite, to_double(vectors), np.eye(vectors.shape[-1])))[..., None, None]
    return np.clip(np.where(np.isfinite(condition), condition, WORST_CONDITION), 1.0, WORST_CONDITION)


def matrix_from_eigen(values: Array, vectors: Array) -> Array:
    """Return V diag(w) V^-1 for eigenvalues w and vectors V; NaN for a matrix whose vectors are not all finite."""
    if vectors.size == 0:
        return vectors
    finite = np.isfinite(vectors).all(axis=(-2, -1), keepdims=True)
    # Not `inv`, which raises where the vectors of a broken reader are singular.
    inverse = np.linalg.pinv(np.where(finite, to_double(vectors), 0.0), rcond=1e-15)
    return np.where(finite, (to_double(vectors) * to_double(values)[..., None, :]) @ inverse, np.nan)
