"""Comparison of factorizations: other factors of the same matrix pass, and wrong factors do not."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export_core.base.tolerances import COMPARATORS
from export_core.goldens import Comparison, FactorGroup
from export_core.goldens.arrays import leaf_of
from export_core.numbers import CompareError
from export_core.numbers.compare import Difference, Rules, compare_leaves
from export_core.numbers.factorizations import FACTORIZATIONS, parts_of
from export_core.numbers.noise import CallNoise


def compared(expected, actual, compare, **how) -> Difference:
    wanted, found = ([leaf_of(array) for array in side] for side in (expected, actual))
    return compare_leaves(wanted, found, Rules(Comparison(compare, **how)))


def adjoint(matrix):
    return np.conj(np.swapaxes(matrix, -1, -2))


def matrix(dtype, n=5, m=None):
    real, imaginary = np.random.default_rng(7).standard_normal((2, 2, n, m or n))
    return (real + 1j * imaginary if "complex" in dtype else real).astype(dtype)


def phases(dtype, n):
    angles = np.random.default_rng(8).uniform(0, 2 * np.pi, (2, n))
    return (np.exp(1j * angles) if "complex" in dtype else np.sign(np.cos(angles))).astype(dtype)


EACH = pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])


@EACH
def test_eigenvectors_may_change_sign_but_not_be_wrong(dtype):
    a = matrix(dtype)
    values, vectors = np.linalg.eigh(a + adjoint(a))
    turned = vectors * phases(dtype, 5)[:, None, :]
    assert not compared([values, vectors], [values, turned], "allclose").ok, "plain comparison does not know"
    assert compared([values, vectors], [values, turned], "eigh").ok
    assert compared([vectors, values], [turned, values], "eigh").ok, "as lax orders them"
    wrong = turned.copy()
    wrong[1, 2, 3] *= -1
    for other in (np.roll(vectors, 1, -1), vectors * vectors.dtype.type(1.01), wrong):
        assert not compared([values, vectors], [values, other], "eigh").ok
    assert not compared([values, vectors], [values * values.dtype.type(1.01), vectors], "eigh").ok


@EACH
@pytest.mark.parametrize("full", [False, True], ids=["thin", "full"])
@pytest.mark.parametrize("shape", [(5, 5), (5, 3), (3, 5)], ids=str)
def test_singular_vectors_may_change_sign_only_in_pairs(dtype, full, shape):
    u, s, vh = np.linalg.svd(matrix(dtype, *shape), full_matrices=full)
    turn = phases(dtype, s.shape[-1])
    u2, vh2 = u.copy(), vh.copy()
    u2[..., : s.shape[-1]] *= turn[:, None, :]
    vh2[..., : s.shape[-1], :] *= np.conj(turn)[:, :, None]
    assert compared([u, s, vh], [u2, s, vh2], "svd").ok
    assert not compared([u, s, vh], [u2, s, vh], "svd").ok, "one side alone does not turn"
    assert not compared([u, s, vh], [u2, s * s.dtype.type(1.01), vh2], "svd").ok
    assert not compared([u, s, vh], [u2 * u.dtype.type(2), s, vh2 / vh.dtype.type(2)], "svd").ok, "U is orthogonal"


@EACH
@pytest.mark.parametrize("shape", [(5, 5), (5, 3), (3, 5)], ids=str)
def test_q_and_r_may_change_sign_only_together(dtype, shape):
    q, r = np.linalg.qr(matrix(dtype, *shape))
    turn = phases(dtype, q.shape[-1])
    q2, r2 = q * turn[:, None, :], np.conj(turn)[:, :, None] * r
    assert compared([q, r], [q2, r2], "qr").ok
    assert not compared([q, r], [q2, r], "qr").ok
    assert not compared([q, r], [q2 * q.dtype.type(2), r2 / r.dtype.type(2)], "qr").ok, "Q is orthogonal"
    below = r2.copy()
    below[..., -1, 0] = 1e-14
    assert not compared([q, r], [q2, below], "qr").ok, "R is zero below its diagonal"
    rotated = np.linalg.qr(matrix(dtype, q.shape[-1]))[0]
    assert not compared([q, r], [q @ rotated, adjoint(rotated) @ r], "qr").ok, "R is triangular"


def test_null_space_vectors_must_be_orthonormal_too():
    values, vectors = np.array([0.0, 1.0, 2.0]), np.eye(3)
    stretched = vectors * np.array([2.0, 1.0, 1.0])  # the eigenvalue of the first is 0
    assert not compared([values, vectors], [values, stretched], "eigh").ok
    for shape, side in (((5, 3), 0), ((3, 5), 2)):  # the last vectors of a full factor belong to no singular value
        factors = list(np.linalg.svd(matrix("float64", *shape)))
        other = [factor.copy() for factor in factors]
        other[side][..., -1 if side else slice(None), slice(None) if side else -1] *= 2
        assert not compared(factors, other, "svd").ok, shape


# --- pivots, blocks and any order -------------------------------------------------------------------------------------


def lu_of(a, prefer=max):
    """Return (LU, pivots, permutation) as lax.linalg.lu does; `prefer` chooses among rows that tie for a pivot."""
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    out, pivots = a.copy(), np.zeros((*batch, min(m, n)), np.int32)
    order = np.tile(np.arange(m, dtype=np.int32), (*batch, 1))
    for at in np.ndindex(batch):
        for k in range(min(m, n)):
            sizes = np.abs(out[at][k:, k])
            row = k + prefer(np.flatnonzero(sizes == sizes.max()))
            pivots[at][k] = row
            out[at][[k, row]], order[at][[k, row]] = out[at][[row, k]], order[at][[row, k]]
            if out[at][k, k] != 0:
                out[at][k + 1 :, k] /= out[at][k, k]
                out[at][k + 1 :, k + 1 :] -= np.outer(out[at][k + 1 :, k], out[at][k, k + 1 :])
    return [out, pivots, order]


@EACH
@pytest.mark.parametrize("shape", [(5, 5), (5, 3), (3, 5)], ids=str)
def test_rows_that_tie_for_a_pivot_may_come_in_either_order(dtype, shape):
    a = np.round(matrix(dtype, *shape).real * 2).astype(dtype)
    a[..., :2, 0] = 9
    first, last = lu_of(a, min), lu_of(a, max)
    assert not compared(first, last, "allclose").ok
    assert compared(first, last, "lu").ok
    assert compared(first[:2], last[:2], "lu").ok, "(LU, pivots)"


@EACH
def test_wrong_factors_and_pivots_of_lu_are_found(dtype):
    a = matrix(dtype, 5, 4)
    right = lu_of(a)
    assert compared(right, lu_of(a * a.dtype.type(1)), "lu").ok
    for number in range(3):
        wrong = [part.copy() for part in right]
        wrong[number][1, 2] = (wrong[number][1, 2] + 1) % 5 if number else wrong[number][1, 2] * 1.01
        assert not compared(right, wrong, "lu").ok, number
        assert not compared(right, [*right[:number], np.zeros_like(right[number]), *right[number + 1 :]], "lu").ok
    for out_of_range in (-1, 5, 99):
        pivots = right[1].copy()
        pivots[0, 0] = out_of_range
        assert not compared(right, [right[0], pivots, right[2]], "lu").ok
        assert not compared(right[:2], [right[0], pivots], "lu").ok
    together = [right[0], right[1][::-1].copy(), right[2][::-1].copy()]  # consistent, but of another matrix
    assert not compared(right, together, "lu").ok


def test_an_lu_without_pivoting_differs():
    a = np.array([[1e-3, 1.0], [1.0, 1.0]])
    unpivoted = [np.array([[1e-3, 1.0], [1e3, 1 - 1e3]]), np.array([0, 1], np.int32), np.array([0, 1], np.int32)]
    found = compared(lu_of(a), unpivoted, "lu", rtol=1e-5)
    assert str(found).startswith("lu: |L| above 1: 1 of 4 elements differ")


@pytest.mark.parametrize(("below", "accepted"), [(0.99, True), (1.2, False), (1 + 0.98j, True), (1.6j, False)], ids=str)
def test_elements_of_l_may_be_at_most_1_or_root_2_if_complex(below, accepted):
    a = np.array([[1, 1], [below, 1]])
    order = np.array([0, 1], np.int32)
    unpivoted = [np.array([[1, 1], [below, 1 - below]]), order, order]
    assert compared(lu_of(a), unpivoted, "lu").ok is accepted


def schur_of(blocks, seed=3):
    """Return (T, Q) of a real matrix with these diagonal blocks, and random numbers above them."""
    size = sum(len(block) for block in blocks)
    random = np.random.default_rng(seed)
    upper, at = np.triu(random.standard_normal((size, size)), 1), 0
    for block in blocks:
        upper[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    return [upper, np.linalg.qr(random.standard_normal((size, size)))[0]]


PAIR, TURNED = np.array([[1.0, 2.0], [-0.5, 1.0]]), np.array([[1.0, -0.5], [2.0, 1.0]])
ONE = np.array([[3.0]])


def test_schur_vectors_may_change_sign_and_those_of_a_block_may_swap():
    triangle, vectors = schur_of([PAIR, ONE, PAIR * 2, ONE * 2])
    signs = np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
    assert compared([triangle, vectors], [signs[:, None] * triangle * signs, vectors * signs], "schur").ok
    pair = schur_of([PAIR])
    assert compared(pair, [TURNED, pair[1][:, [1, 0]]], "schur").ok
    for wrong in (np.roll(vectors, 1, -1), vectors * 2, np.zeros_like(vectors)):
        assert not compared([triangle, vectors], [triangle, wrong], "schur").ok
    assert not compared([triangle, vectors], [triangle * (1 + 1e-6), vectors], "schur").ok


def test_a_schur_form_must_be_triangular_by_blocks():
    triangle, vectors = schur_of([PAIR, ONE, ONE])
    full, unit = vectors @ triangle @ vectors.T, np.eye(4)
    assert str(compared([triangle, vectors], [full, unit], "schur")).startswith("schur: T below its blocks: 3 of 16")
    real = schur_of([ONE, ONE * 2])
    whole = real[1] @ real[0] @ real[1].T  # a 2x2 block, with real eigenvalues
    found = compared(real, [whole, np.eye(2)], "schur")
    assert str(found).startswith("schur: 2x2 blocks of T that should be split: 1 of 1 elements differ")
    chained = schur_of([PAIR, ONE])
    chained[0][2, 1] = 1e-20
    assert not compared(schur_of([PAIR, ONE]), chained, "schur").ok, "two blocks may not share a row"


@pytest.mark.parametrize(
    ("triangle", "split"),
    [
        ([[1, 0.9], [-1, 3]], [True]),
        ([[3, 0.5], [-1, 1]], [True]),
        ([[1, 1.0], [-1, 3]], [True]),  # one eigenvalue, twice
        ([[1, 0.6], [-2, 3]], [False]),
        ([[9, 0, 0], [0, 1, 2], [0, -0.5, 1]], [False, False]),
    ],
    ids=str,
)
def test_schur_blocks_of_real_eigenvalues_must_be_split(triangle, split):
    factors = [np.array(triangle, np.float64), np.eye(len(triangle))]
    *_, blocks = parts_of("schur", factors, factors)
    assert blocks.what == "2x2 blocks of T that should be split"
    assert blocks.actual.tolist() == split


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_schur_form_is_triangular(dtype):
    random = np.random.default_rng(5)
    vectors = np.linalg.qr(random.standard_normal((2, 4, 4)) + 1j * random.standard_normal((2, 4, 4)))[0].astype(dtype)
    triangle = np.triu(matrix(dtype, 4))
    turn = phases(dtype, 4)
    turned = np.conj(turn)[:, :, None] * triangle * turn[:, None, :]
    assert compared([triangle, vectors], [np.triu(turned), vectors * turn[:, None, :]], "schur").ok
    below = triangle.copy()
    below[1, 2, 1] = 1e-12
    assert not compared([triangle, vectors], [below, vectors], "schur").ok


def eig_of(a):
    """Return (w, V left, V right), as lax.linalg.eig does."""
    values, right = (part.astype(np.result_type(a, np.complex64)) for part in np.linalg.eig(a))
    left = adjoint(np.linalg.inv(right))
    return [values, left / np.linalg.norm(left, axis=-2, keepdims=True), right]


@EACH
@pytest.mark.parametrize("count", [1, 2, 3])
def test_eigenpairs_may_come_in_any_order_and_phase(dtype, count):
    found = eig_of(matrix(dtype))[:count]
    order, turn = np.array([3, 0, 4, 1, 2]), phases(found[0].dtype.name, 5)[:, None, :]
    other = [found[0][..., order], *(part[..., order] * turn for part in found[1:])]
    assert not compared(found, other, "allclose").ok
    assert compared(found, other, "eig").ok
    assert not compared(found, [other[0] * other[0].dtype.type(1.01), *other[1:]], "eig").ok
    for number in range(1, count):
        for wrong in (np.zeros_like(other[number]), other[number] * 2, np.roll(other[number], 1, -1), found[number]):
            assert not compared(found, [*other[:number], wrong, *other[number + 1 :]], "eig").ok, number


def test_eigenvectors_of_another_length_differ():
    values, vectors = np.array([3.0, 1.0]), np.array([[1.0, 1.0], [1.0, -1.0]]) / 2**0.5
    longer = vectors * np.array([1.5, 0.5]) ** 0.5  # of the same V diag(w) V^-1, and in rows of the same length
    assert compared([values, vectors], [values, -vectors], "eig").ok
    assert "norms of V" in str(compared([values, vectors], [values, longer], "eig"))


def test_conjugate_pairs_may_swap_only_with_their_vectors():
    values, left, right = eig_of(np.array([[1.0, 2.0, 0.0], [-2.0, 1.0, 0.5], [0.0, 0.0, 3.0]]))
    at = [int(np.flatnonzero(values.imag == part)[0]) for part in (values.imag.max(), values.imag.min())]
    order = np.arange(3)
    order[at] = at[::-1]
    nudged = values[order] + np.array([1e-14, -1e-14, 0])  # changes the order of their real parts
    assert compared([values, left, right], [nudged, left[:, order], right[:, order]], "eig").ok
    assert not compared([values, left, right], [nudged, left[:, order], right], "eig").ok
    assert not compared([values, left, right], [nudged, left, right[:, order]], "eig").ok


def test_eigenvalues_are_matched_with_the_least_error(monkeypatch):
    one, other = np.array([0.0, 1e-6, 1.0]), np.array([0.4e-6, -0.6e-6, 1.0])
    assert compared([one], [other], "eig", rtol=0.0, atol=0.7e-6).ok
    assert not compared([one], [other], "eig", rtol=0.0, atol=0.5e-6).ok
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)  # importing it raises
    assert compared([np.array([1.0, 2.0, 3.0])], [np.array([3.0, 1.0, 2.0])], "eig").ok


def test_nearly_dependent_vectors_have_a_limited_tolerance():
    values, vectors = np.array([1.0, 1.0 + 1e-12, 2.0]), np.eye(3)
    vectors[:, 1] = vectors[:, 0] + np.array([0, 1e-12, 0])
    assert compared([values, vectors], [values, vectors], "eig").ok
    assert not compared([values, vectors], [values * (1 + 1e-7), vectors], "eig").ok


@EACH
def test_columns_that_tie_for_a_qr_pivot_may_swap(dtype):
    a = matrix(dtype, 5, 3)[0]
    a[:, 1] = a[:, 0] * (1 if "float" in dtype else 1j)
    a[:, 2] /= 10
    found = [[*np.linalg.qr(a[:, order]), np.array(order, np.int32)] for order in ([0, 2, 1], [1, 2, 0])]
    assert compared(*found, "qr").ok
    q, r, order = found[0]
    assert not compared([q, r, order], [q, r, order[[1, 0, 2]]], "qr").ok
    assert not compared([q, r, order], [q, r, np.zeros_like(order)], "qr").ok
    unsorted = np.linalg.qr(a[:, [2, 0, 1]])
    assert not compared([q, r, order], [*unsorted, np.array([2, 0, 1], np.int32)], "qr").ok, "the diagonal of R grows"


def test_q_of_a_rank_deficient_matrix_may_differ():
    a = np.array([[1.0, 1.0, 2.0], [1.0, 1.0, 3.0], [1.0, 1.0, 5.0]])
    q, r = np.linalg.qr(a)
    r[1, 1] = 0.0
    angle = np.array([[1, 0, 0], [0, 0.6, -0.8], [0, 0.8, 0.6]])
    turned = np.triu(np.linalg.qr(angle.T @ r)[1])
    other = q @ angle @ np.linalg.qr(angle.T @ r)[0]
    assert compared([q, r], [other, turned], "qr", rtol=1e-9).ok


# --- all of them ------------------------------------------------------------------------------------------------------


def factors_of(name, dtype="float64"):
    a = matrix(dtype, 4)
    return {
        "eigh": lambda: list(np.linalg.eigh(a + adjoint(a))),
        "eig": lambda: eig_of(a),
        "svd": lambda: list(np.linalg.svd(a)),
        "qr": lambda: list(np.linalg.qr(a)),
        "lu": lambda: lu_of(a),
        "schur": lambda: [np.stack([part, part]) for part in schur_of([PAIR, ONE, ONE])],
    }[name]()


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_factors_filled_with_a_constant_or_reversed_do_not_agree(name):
    right = factors_of(name)
    assert compared(right, right, name).ok
    for what in (0, 1, np.nan, np.inf, -np.inf):
        filled = [np.full_like(part, what) if part.dtype.kind in "fc" else part for part in right]
        assert not compared(right, filled, name).ok, what
    for number, part in enumerate(right if name != "schur" else []):  # both of the batch are the same there
        assert not compared(right, [*right[:number], part[::-1].copy(), *right[number + 1 :]], name).ok


@pytest.mark.parametrize("name", FACTORIZATIONS)
@settings(max_examples=60)
@given(data=st.data())
def test_one_wrong_element_of_any_factor_is_found(name, data):
    right = factors_of(name)
    number = data.draw(st.integers(0, len(right) - 1))
    part = right[number].copy()
    index = tuple(data.draw(st.integers(0, size - 1)) for size in part.shape)
    if part.dtype.kind == "i":
        part[index] = (part[index] + 1) % 4
    else:
        wrong = data.draw(st.sampled_from(["nan", "inf", "off", "negative"]))
        off = part[index] + 1e-3 * np.abs(part).max()
        part[index] = {"nan": np.nan, "inf": np.inf, "off": off, "negative": -part[index]}[wrong]
        if np.isclose(part[index], right[number][index], rtol=1e-6, atol=1e-12):
            return  # the negative of nothing
    assert not compared(right, [*right[:number], part, *right[number + 1 :]], name).ok


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_each_matrix_of_a_batch_has_its_own_tolerance(name):
    right = factors_of(name)
    large = {"eigh": 0, "eig": 0, "svd": 1, "qr": 1, "lu": 0, "schur": 0}[name]  # the output with its scale
    right[large] = right[large].copy()
    right[large][0] *= 2.0**30
    if name == "lu":  # U has the scale, and L has none
        right[large][0] = np.tril(right[large][0] / 2.0**30, -1) + np.triu(right[large][0])
    wrong = [part.copy() for part in right]
    wrong[large][1] *= 1.001
    assert compared(right, right, name, rtol=1e-9).ok
    assert not compared(right, wrong, name, rtol=1e-5).ok


def test_vectors_of_a_small_matrix_in_a_batch_must_agree():
    values, vectors = factors_of("eigh")
    scaled = values * np.array([[2.0**30], [1.0]])
    turned = np.stack([vectors[0], np.roll(vectors[1], 1, -1)])  # orthonormal as well
    assert not compared([scaled, vectors], [scaled, turned], "eigh", rtol=1e-5).ok


def test_a_small_eigenvalue_may_err_by_the_scale_of_its_matrix():
    values, vectors = np.array([1e-9, 1.0]), np.eye(2)
    assert compared([values, vectors], [values * np.array([2.0, 1.0]), vectors], "eigh", rtol=1e-5).ok


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_factors_of_only_nan_agree_only_with_each_other(name):
    right = factors_of(name)
    failed = [np.full_like(part, np.nan) if part.dtype.kind in "fc" else part for part in right]
    assert compared(failed, failed, name).ok, "LAPACK failed in both"
    assert not compared(failed, right, name).ok
    found = compared(right, failed, name)
    assert "NaN where a number was expected" in str(found)
    assert str(found).startswith(f"{name}: output 0, where it is not finite")


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_ulp_of_factors_is_relative_to_the_largest_element(name):
    narrow = {"float64": "float32", "complex128": "complex64", "int32": "int32"}
    right = [part.astype(narrow[part.dtype.name]) for part in factors_of(name)]
    wrong = [part * part.dtype.type(1 + 2e-6) if part.dtype.kind in "fc" else part for part in right]
    assert compared(right, right, name, ulp=0).ok
    assert not compared(right, wrong, name, ulp=4).ok
    assert compared(right, wrong, name, ulp=100).ok


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_factors_of_empty_matrices_agree(name):
    for shape in ((0, 4, 4), (2, 0, 0)):
        empty = [np.zeros([*shape[:1], *shape[1 : part.ndim]], part.dtype) for part in factors_of(name)]
        assert compared(empty, empty, name).ok, shape


def test_eigenvectors_of_close_eigenvalues_may_mix():
    vectors = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0].astype(np.float32)
    swapped = vectors[:, [1, 0, 2, 3]]
    close, apart = np.float32([0.25, 0.250001, 0.5, 1]), np.float32([0.25, 0.2505, 0.5, 1])
    assert compared([close, vectors], [close, swapped], "eigh").ok
    assert not compared([apart, vectors], [apart, swapped], "eigh").ok


def test_the_message_names_the_factor_that_differs():
    values, vectors = np.linalg.eigh(np.diag([1.0, 2.0]))
    found = compared([values, vectors], [values + 1, vectors], "eigh")
    assert str(found).splitlines()[0] == (
        "eigh: eigenvalues: 2 of 2 elements differ (max abs error 1, max rel error 1; "
        "allowed rtol 1e-10, atol 2e-10 (default of float64))"
    )


MEANINGS = {
    "eigh": "(w, V) or (V, w)",
    "svd": "(U, s, V^H)",
    "qr": "(Q, R) or (Q, R, permutation)",
    "lu": "(LU, pivots) or (LU, pivots, permutation)",
    "schur": "(T, Q)",
    "eig": "(w,), (w, V) or (w, V left, V right)",
}


@pytest.mark.parametrize(("name", "meaning"), MEANINGS.items())
def test_outputs_must_fit_the_named_factorization(name, meaning):
    for outputs, found in (
        ([np.zeros(3, np.float32), *[np.zeros((2, 7), np.float32)] * 4], f"float32[3]{', float32[2,7]' * 4}."),
        ([np.array([True])] * len(factors_of(name)), "bool[1]"),
        ([np.zeros(3 + number, np.float32) for number in range(2 if name != "svd" else 3)], "float32[3], float32[4]"),
    ):
        with pytest.raises(CompareError) as raised:
            compared(outputs, outputs, name)
        assert str(raised.value).startswith(f"compare={name!r}: expected the outputs {meaning}, found {found}")


def test_an_unknown_comparator_suggests_the_nearest_one():
    with pytest.raises(CompareError) as raised:
        compared([np.zeros(1)], [np.zeros(1)], "scur")
    names = "allclose, exact, shape, eigh, eig, svd, qr, lu, schur"
    expected = f"compare='scur': expected one of {names}, or your own function as 'module:function'."
    assert str(raised.value) == f"{expected} Did you mean 'schur'?"
    assert set(COMPARATORS) == {"allclose", "exact", "shape", *FACTORIZATIONS}


def in_groups(expected, actual, *groups) -> Difference:
    """Compare with the default rules, with these groups of outputs as factors."""
    wanted, found = ([leaf_of(array) for array in side] for side in (expected, actual))
    factors = [FactorGroup(name, outputs) for name, outputs in groups]
    return compare_leaves(wanted, found, Rules(Comparison()), factors=factors, named="{0} (result[{0}])".format)


def test_only_outputs_that_are_factors_together_may_change_sign():
    a = matrix("float32")
    (left, values, right), (q, r) = np.linalg.svd(a), np.linalg.qr(a)
    groups = (("svd", (3, 1, 0)), ("qr", (4, 5)))
    turned, flipped = phases("float32", 5), -np.eye(5, dtype=np.float32)
    expected = [right, values, a, left, q, r]
    actual = [turned[..., None] * right, values, a, left * turned[:, None, :], q @ flipped, flipped @ r]
    assert in_groups(expected, actual, *groups).ok
    assert not in_groups(expected, actual, groups[0]).ok
    beside = in_groups(expected, [*actual[:2], a + 1, *actual[3:]], *groups)
    assert not beside.ok
    assert beside.output == 2
    wrong = in_groups(expected, [*actual[:4], q * np.float32(1.01), actual[5]], *groups)
    group = "outputs 4 (result[4]), 5 (result[5]) as qr"
    assert wrong.of_type == f"{group}: Q R"
    lost = in_groups(expected, [*actual[:4], q * np.float32(np.nan), actual[5]], *groups)
    assert lost.of_type == f"{group}: output 4 (result[4]), where it is not finite"


def test_vectors_not_orthonormal_are_compared_by_element():
    a = matrix("float32")
    values, vectors = np.linalg.eigh(a + adjoint(a))
    masked = np.triu(vectors)
    assert in_groups([values, masked], [values, masked], ("eigh", (0, 1))).ok
    assert not in_groups([values, masked], [values, -masked], ("eigh", (0, 1))).ok
    assert in_groups([values, vectors], [values, -vectors], ("eigh", (0, 1))).ok
    longer = vectors * np.float32(1.2)
    assert not in_groups([values, longer], [values, -longer], ("eigh", (0, 1))).ok


def test_factors_of_a_batch_may_change_sign():
    a = matrix("float32").reshape(2, 1, 5, 5)
    values, vectors = np.linalg.eigh(a + adjoint(a))
    assert in_groups([values, vectors], [values, -vectors], ("eigh", (0, 1))).ok
    q, r = np.linalg.qr(matrix("float32"))
    assert not in_groups([q, r], [-q, -r], ("qr", (0, 0))).ok


def test_eigenvalues_are_compared_by_the_noise_of_their_output():
    a = matrix("float64")
    values, vectors = np.linalg.eigh(a + adjoint(a))
    noise = CallNoise((None, np.zeros(vectors.shape), np.full(values.shape, 1e-6)))
    leaves = [leaf_of(array) for array in (np.arange(3), vectors, values)]
    moved = [*leaves[:2], leaf_of(values + 1e-9)]
    group = [FactorGroup("eigh", (2, 1))]
    found = compare_leaves(leaves, moved, Rules(Comparison(), noise), factors=group)
    assert found.max_noise_error == pytest.approx(1e-3)


def test_outputs_that_are_not_factors_are_compared_by_element():
    one, two = np.eye(3), np.ones(3)
    assert in_groups([one, two], [one, two], ("eigh", (1, 1))).ok
    assert not in_groups([one, two], [-one, two], ("eigh", (0,))).ok
