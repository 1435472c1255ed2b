"""Products, sums, factorizations and linear solvers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.program import BF16, CONSTANT, DROPPED, EPSILON, LOW, OFF_BY_ONE, SWAPPED, Program


def low_sum(x: Any, dtype: Any) -> Any:
    """Return a sum with every addition rounded to a narrower type."""
    rows = x.reshape(-1, 200) if x.size % 200 == 0 else x.reshape(1, -1)
    total = lambda row: lax.scan(
        lambda carry, term: ((carry + term.astype(dtype)).astype(dtype), None), jnp.zeros((), dtype), row
    )[0]
    return jnp.sum(jax.vmap(total)(rows).astype(x.dtype))


def matmul(a, b, *, dtype=None, turn=False):
    b = b.T if turn else b
    return jnp.matmul(a.astype(dtype), b.astype(dtype)).astype(jnp.float32) if dtype else jnp.matmul(a, b)


def batched_einsum(a, b, *, factor=0.125):
    return jnp.einsum("bij,bjk->bik", a, b) * factor


def integer_product(a, b, *, shift=0):
    return jnp.matmul(a, jnp.roll(b, shift, axis=0))


def cube(a, *, term=1.0):
    return a @ a @ a + term * a


def matrix_chain(a, x, *, factor=0.9, dtype=None):
    def step(vector, _):
        product = a.astype(dtype) @ vector.astype(dtype) if dtype else a @ vector
        return jnp.tanh(factor * product.astype(jnp.float32)), None

    return lax.scan(step, x, None, length=20)[0]


def outer_difference(x, y, *, power=2):
    return jnp.sum((x[:, None, :] - y[None, :, :]) ** power, axis=-1)


def long_sum(x, *, dtype=None, start=0):
    return low_sum(x, dtype) if dtype else jnp.sum(x[start:])


def cumsum(x, *, dtype=None):
    if dtype is None:
        return jnp.cumsum(x)
    add = lambda carry, term: ((carry + term).astype(dtype),) * 2
    return lax.scan(add, jnp.zeros((), dtype), x.astype(dtype))[1].astype(jnp.float32)


def cumulative_logsumexp(x, *, axis=0):
    return lax.cumlogsumexp(x, axis=axis)


def mean_and_variance(x, *, shortcut=False, correction=0):
    mean = jnp.mean(x, axis=-1)
    if shortcut:
        return mean, (jnp.mean(x.astype(jnp.bfloat16) ** 2, axis=-1) - mean**2).astype(jnp.float32)
    return mean, jnp.var(x, axis=-1, ddof=correction)


def dot_of_cancelling(x, y, *, dtype=None):
    return low_sum(x * y, dtype) if dtype else jnp.dot(x, y)


def mixed_scales(x, *, sign=1.0, factor=0.5):
    return jnp.concatenate([jnp.array([1e6], jnp.float32), sign * factor * x])


def cholesky(a, *, epsilon=1e-3):
    return jnp.linalg.cholesky(a @ a.T / a.shape[1] + epsilon * jnp.eye(a.shape[0], dtype=a.dtype))


def inverse(a, *, factor=6.0):
    return jnp.linalg.inv(a + factor * jnp.eye(a.shape[0], dtype=a.dtype))


def ill_conditioned_solve(b, *, size=8, shift=1.0):
    i = jnp.arange(size, dtype=jnp.float32)
    return jnp.linalg.solve(1.0 / (i[:, None] + i[None, :] + shift) + 1e-5 * jnp.eye(size, dtype=jnp.float32), b)


def triangular_solve(a, b, *, lower=True):
    return jax.scipy.linalg.solve_triangular(jnp.tril(a) + 4 * jnp.eye(len(a), dtype=a.dtype), b, lower=lower)


def log_determinant(a, *, factor=3.0):
    return tuple(jnp.linalg.slogdet(a + factor * jnp.eye(len(a), dtype=a.dtype)))


def eigh(a, *, factor=0.5):
    return tuple(jnp.linalg.eigh(factor * (a + a.T)))


def svd(a, *, factor=1.0):
    return tuple(jnp.linalg.svd(factor * a, full_matrices=False))


def qr(a, *, factor=1.0):
    return tuple(jnp.linalg.qr(factor * a))


def singular_values(a, *, start=0):
    return jnp.linalg.svd(a[start:], compute_uv=False)[:6]


def matrix_exponential(a, *, factor=0.1):
    return jax.scipy.linalg.expm(factor * a)


def least_squares(x, y, *, ridge=1e-3):
    return jnp.linalg.solve(x.T @ x + ridge * jnp.eye(x.shape[1], dtype=x.dtype), x.T @ y)


def power_iteration(a, x, *, epsilon=1e-6, steps=10):
    symmetric = a @ a.T

    def step(vector, _):
        vector = symmetric @ vector
        return vector / (jnp.linalg.norm(vector) + epsilon), None

    vector = lax.scan(step, x, None, length=steps)[0]
    return vector, vector @ symmetric @ vector


def conjugate_gradient(a, b, *, diagonal=1.0):
    matrix = a @ a.T / len(a) + diagonal * jnp.eye(len(a), dtype=a.dtype)
    return jax.scipy.sparse.linalg.cg(lambda x: matrix @ x, b, tol=0.0, maxiter=20)[0]


def jacobi_iteration(a, b, *, diagonal=8.0, steps=30):
    off = a - jnp.diag(jnp.diag(a))
    return lax.fori_loop(0, steps, lambda _, x: (b - off @ x) / diagonal, jnp.zeros_like(b))


def tridiagonal(lower, diagonal, upper, b, *, shift=0):
    """The solution of a tridiagonal system by Thomas's algorithm."""

    def forward(carry, row):
        c, d = carry
        low, middle, up, right = row
        pivot = middle - low * c
        return (up / pivot, (right - low * d) / pivot), (up / pivot, (right - low * d) / pivot)

    zero = jnp.zeros((), b.dtype)
    _, (c, d) = lax.scan(forward, (zero, zero), (lower, diagonal, upper, jnp.roll(b, shift)))
    return lax.scan(lambda x, row: (row[1] - row[0] * x,) * 2, zero, (c, d), reverse=True)[1]


def sparse_product(values, rows, columns, x, *, shift=0):
    return jnp.zeros(len(x), x.dtype).at[(rows + shift) % len(x)].add(values * x[columns])


def quaternion_product(a, b, *, sign=-1.0):
    w, x, y, z = a.T
    p, q, r, s = b.T
    return jnp.stack([w * p - x * q - y * r - z * s, w * q + x * p + y * s + sign * z * r,
                      w * r - x * s + y * p + z * q, w * s + x * r - y * q + z * p], axis=-1)  # fmt: skip


PROGRAMS = (
    Program(matmul, (normal(1, 64, 64), normal(2, 64, 64)), {BF16: {"dtype": jnp.bfloat16}, SWAPPED: {"turn": True}, LOW: {"dtype": jnp.float16}}),
    Program(batched_einsum, (normal(3, 4, 32, 24), normal(4, 4, 24, 16)), {CONSTANT: {"factor": 0.1250004}}),
    Program(integer_product, (integers(5, 16, 24, high=100), integers(6, 24, 8, high=100)), {OFF_BY_ONE: {"shift": 1}}),
    Program(cube, (normal(7, 48, 48),), {DROPPED: {"term": 0.0}}),
    Program(matrix_chain, (normal(8, 32, 32) / np.float32(5), normal(9, 32)), {CONSTANT: {"factor": 0.900003}, LOW: {"dtype": jnp.bfloat16}}),
    Program(outer_difference, (normal(10, 24, 8), normal(11, 16, 8)), {}),
    Program(long_sum, (uniform(12, 200_000),), {LOW: {"dtype": jnp.bfloat16}, OFF_BY_ONE: {"start": 1}}),
    Program(cumsum, (normal(13, 4096),), {LOW: {"dtype": jnp.bfloat16}}),
    Program(cumulative_logsumexp, (normal(14, 32, 32),), {SWAPPED: {"axis": 1}}),
    Program(mean_and_variance, (normal(15, 16, 256) + np.float32(10),), {LOW: {"shortcut": True}, OFF_BY_ONE: {"correction": 1}}),
    Program(dot_of_cancelling, (normal(16, 4000), normal(17, 4000)), {LOW: {"dtype": jnp.bfloat16}}),
    Program(mixed_scales, (normal(18, 256),), {CONSTANT: {"factor": 0.500002}}),
    Program(cholesky, (normal(19, 24, 24),), {EPSILON: {"epsilon": 0.0}, CONSTANT: {"epsilon": 1.00001e-3}}, lapack=True),
    Program(inverse, (normal(20, 24, 24),), {CONSTANT: {"factor": 6.00003}}, lapack=True),
    Program(ill_conditioned_solve, (normal(21, 8),), {CONSTANT: {"shift": 1.000003}, OFF_BY_ONE: {"shift": 2.0}}, lapack=True),
    Program(triangular_solve, (normal(22, 24, 24), normal(23, 24, 3)), {SWAPPED: {"lower": False}}, lapack=True),
    Program(log_determinant, (normal(24, 16, 16),), {CONSTANT: {"factor": 3.00001}}, lapack=True),
    Program(eigh, (normal(25, 12, 12),), {CONSTANT: {"factor": 0.500004}}, compare="eigh", lapack=True),
    Program(svd, (normal(26, 12, 8),), {CONSTANT: {"factor": 1.000005}}, compare="svd", lapack=True),
    Program(qr, (normal(27, 12, 8),), {CONSTANT: {"factor": 1.000005}}, compare="qr", lapack=True),
    Program(singular_values, (normal(28, 12, 8),), {OFF_BY_ONE: {"start": 1}}, lapack=True),
    Program(matrix_exponential, (normal(29, 12, 12),), {CONSTANT: {"factor": 0.1000004}}, lapack=True),
    Program(least_squares, (normal(30, 64, 6), normal(31, 64)), {EPSILON: {"ridge": 0.0}}, lapack=True),
    Program(power_iteration, (normal(32, 24, 24), normal(33, 24)), {OFF_BY_ONE: {"steps": 9}}),
    Program(conjugate_gradient, (normal(34, 32, 32), normal(35, 32)), {CONSTANT: {"diagonal": 1.000004}}),
    Program(jacobi_iteration, (normal(36, 16, 16) / np.float32(2), normal(37, 16)), {OFF_BY_ONE: {"steps": 29}, CONSTANT: {"diagonal": 8.00004}}),
    Program(tridiagonal, (-uniform(38, 64), 4 + uniform(39, 64), -uniform(40, 64), normal(41, 64)), {OFF_BY_ONE: {"shift": 1}}),
    Program(sparse_product, (normal(42, 200), integers(43, 200, high=50), integers(44, 200, high=50), normal(45, 50)), {OFF_BY_ONE: {"shift": 1}}),
    Program(quaternion_product, (normal(46, 64, 4), normal(47, 64, 4)), {DROPPED: {"sign": 0.0}}),
)  # fmt: skip
