"""Optimistix: root finding and minimisation; solutions are Equinox modules."""

import os

os.environ.setdefault("EQX_ON_ERROR", "nan")  # else a check calls back into Python, which no artifact can contain

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optimistix as optx
import pytest

from studies.corpus.programs.inputs import normal

start = np.array([0.5, 1.5], np.float32)
batch = np.linspace(0.5, 1.5, 8, dtype=np.float32).reshape(4, 2)


def residuals(y, args):
    return jnp.stack([10 * (y[1] - y[0] ** 2), args - y[0]])


def root(y, args=1.0):
    solver = optx.Newton(rtol=1e-5, atol=1e-5)
    return optx.root_find(residuals, solver, y, args, max_steps=32, throw=False).value


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(root), start)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(lambda target: root(start, target)), np.float32(0.9))


@pytest.mark.export_compat
def test_random_key(export_golden):
    def search(key):
        return jax.vmap(root)(0.5 + jax.random.uniform(key, (4, 2)))

    export_golden(jax.jit(search), jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes="b, 2")
def test_symbolic_batch(export_golden):
    export_golden(jax.jit(jax.vmap(root)), batch).also(batch[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    curve = eqx.nn.MLP("scalar", "scalar", 4, 1, key=jax.random.key(0))
    points = jnp.linspace(-1, 1, 8)

    @eqx.filter_jit
    def fit(curve, target):
        params, static = eqx.partition(curve, eqx.is_inexact_array)

        def misfit(params, target):
            return jnp.sum((jax.vmap(eqx.combine(params, static))(points) - target) ** 2)

        solver = optx.BFGS(rtol=1e-3, atol=1e-3)
        return optx.minimise(misfit, solver, params, target, max_steps=8, throw=False)

    export_golden(fit, curve, jnp.sin(points))


@pytest.mark.export_compat
def test_least_squares(export_golden):
    solver = optx.LevenbergMarquardt(rtol=1e-4, atol=1e-4)
    export_golden(jax.jit(lambda y: optx.least_squares(residuals, solver, y, 1.0).value), start)


@pytest.mark.export_compat(vjp_order=1)
def test_fixed_point(export_golden):
    """A deep equilibrium layer: 64 numbers, the gradient by the implicit function."""
    adjoint = optx.ImplicitAdjoint(linear_solver=lineax.GMRES(1e-5, 1e-5, restart=20))

    def layer(w, x):
        solver = optx.FixedPointIteration(1e-5, 1e-5)
        start = jnp.zeros(64)
        found = optx.fixed_point(
            lambda z, _: jnp.tanh(w @ z + x), solver, start, max_steps=64, throw=False, adjoint=adjoint
        )
        return found.value

    export_golden(jax.jit(layer), normal(0, 64, 64, scale=0.04), normal(1, 64))


@pytest.mark.export_compat
def test_minimum_by_bfgs(export_golden):
    """The minimum of Rosenbrock's function of twelve variables, in at most 40 steps."""

    def rosenbrock(y, scale):
        return jnp.sum(scale * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)

    def find(y, scale):
        solver = optx.BFGS(1e-4, 1e-4)
        return optx.minimise(rosenbrock, solver, y, scale, max_steps=40, throw=False).value

    export_golden(jax.jit(find), np.full(12, 0.5, np.float32), np.float32(2.0))
