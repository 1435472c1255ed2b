"""Lineax: linear systems; operators and solutions are Equinox modules."""

import os

os.environ.setdefault("EQX_ON_ERROR", "nan")  # else a check calls back into Python, which no artifact can contain

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest

from studies.corpus.programs.inputs import normal

matrix = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
vector = np.array([1, 2, 3], np.float32)
batch = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
positive = lx.positive_semidefinite_tag


def by_cg(matrix, vector):
    operator = lx.MatrixLinearOperator(matrix, positive)
    return lx.linear_solve(operator, vector, lx.CG(rtol=1e-5, atol=1e-5), throw=False).value


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(by_cg), matrix, vector)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(by_cg), matrix, vector)


@pytest.mark.export_compat
def test_random_key(export_golden):
    def trace(matrix, key):
        probe = jax.random.rademacher(key, (3,), jnp.float32)
        return probe @ by_cg(matrix, probe)

    export_golden(jax.jit(trace), matrix, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes=(None, "b, 3"))
def test_symbolic_batch(export_golden):
    export_golden(jax.jit(jax.vmap(by_cg, (None, 0))), matrix, batch).also(matrix, batch[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    @eqx.filter_jit
    def solve(operator, vector):
        return lx.linear_solve(operator, vector, lx.LU(), throw=False)

    export_golden(solve, lx.MatrixLinearOperator(jnp.asarray(matrix)), vector)


@pytest.mark.export_compat
def test_throw(export_golden):
    operator = lx.MatrixLinearOperator(jnp.asarray(matrix), positive)
    export_golden(jax.jit(lambda vector: lx.linear_solve(operator, vector, lx.Cholesky()).value), vector)


@pytest.mark.export_compat(vjp_order=1)
def test_linear_solve_by_gmres(export_golden):
    def solve(a, b):
        operator = lx.MatrixLinearOperator(a + 12 * jnp.eye(48))
        return lx.linear_solve(operator, b, lx.GMRES(1e-5, 1e-5, restart=20), throw=False).value

    export_golden(jax.jit(solve), normal(0, 48, 48), normal(1, 48))
