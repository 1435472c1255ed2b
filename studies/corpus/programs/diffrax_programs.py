"""Diffrax, Lineax, Optimistix: equations at real sizes. A check that fails makes their outputs NaN."""

import os

os.environ["EQX_ON_ERROR"] = "nan"  # else a check calls back into Python, which no artifact can contain

import diffrax
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optimistix
import pytest

from studies.corpus.programs.normal import normal


def solve(y, rates, solver, steps=diffrax.PIDController(rtol=1e-3, atol=1e-5)):  # noqa: B008
    def slope(t, y, rates):
        return jnp.stack([y[0] * (rates[0] - rates[1] * y[1]), y[1] * (rates[2] * y[0] - rates[3])])

    saved = diffrax.SaveAt(ts=jnp.linspace(0.0, 4.0, 32))
    return diffrax.diffeqsolve(
        *(diffrax.ODETerm(slope), solver, 0.0, 4.0, 0.05, y),
        args=rates,
        saveat=saved,
        stepsize_controller=steps,
        max_steps=256,
        throw=False,
    ).ys


starts = np.array([1.0, 1.0], np.float32), np.array([1.5, 1.0, 1.0, 3.0], np.float32)


@pytest.mark.export_compat(vjp_order=1)
def test_ode_solve(export_golden):
    export_golden(jax.jit(lambda y, rates: solve(y, rates, diffrax.Tsit5())), *starts)


@pytest.mark.export_compat
def test_stiff_ode_solve(export_golden):
    """An implicit method: a nonlinear solve in each step."""
    export_golden(jax.jit(lambda y, rates: solve(y, rates, diffrax.Kvaerno5())), *starts)


@pytest.mark.export_compat
def test_batch_of_ode_solves(export_golden):
    batch = 1 + np.abs(normal(0, 16, 2, scale=0.3))
    export_golden(jax.jit(jax.vmap(lambda y, rates: solve(y, rates, diffrax.Dopri5()), (0, None))), batch, starts[1])


@pytest.mark.export_compat(vjp_order=1)
def test_linear_solve_by_gmres(export_golden):
    def solve(a, b):
        operator = lineax.MatrixLinearOperator(a + 12 * jnp.eye(48))
        return lineax.linear_solve(operator, b, lineax.GMRES(1e-5, 1e-5, restart=20), throw=False).value

    export_golden(jax.jit(solve), normal(0, 48, 48), normal(1, 48))


@pytest.mark.export_compat(vjp_order=1)
def test_fixed_point(export_golden):
    """A deep equilibrium layer: 64 numbers, the gradient by the implicit function."""

    def layer(w, x):
        solver = optimistix.FixedPointIteration(1e-5, 1e-5)
        start = jnp.zeros(64)
        found = optimistix.fixed_point(
            lambda z, _: jnp.tanh(w @ z + x), solver, start, max_steps=64, throw=False, adjoint=ADJOINT
        )
        return found.value

    export_golden(jax.jit(layer), normal(0, 64, 64, scale=0.04), normal(1, 64))


ADJOINT = optimistix.ImplicitAdjoint(linear_solver=lineax.GMRES(1e-5, 1e-5, restart=20))


@pytest.mark.export_compat
def test_minimum_by_bfgs(export_golden):
    """Rosenbrock's function of twelve variables, 40 steps at most."""

    def rosenbrock(y, scale):
        return jnp.sum(scale * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)

    def find(y, scale):
        solver = optimistix.BFGS(1e-4, 1e-4)
        return optimistix.minimise(rosenbrock, solver, y, scale, max_steps=40, throw=False).value

    export_golden(jax.jit(find), np.full(12, 0.5, np.float32), np.float32(2.0))
