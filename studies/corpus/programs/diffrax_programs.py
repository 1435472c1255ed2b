"""Diffrax: differential equations; solutions are Equinox modules."""

import os

os.environ.setdefault("EQX_ON_ERROR", "nan")  # else a check calls back into Python, which no artifact can contain

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.inputs import normal

start, rates = np.array([1.0, 1.0], np.float32), np.array([1.5, 1.0, 1.0, 3.0], np.float32)


def solve(y, rates, solver, throw=False):
    """The equations of predator and prey."""

    def slope(t, y, rates):
        return jnp.stack([y[0] * (rates[0] - rates[1] * y[1]), y[1] * (rates[2] * y[0] - rates[3])])

    return diffrax.diffeqsolve(
        *(diffrax.ODETerm(slope), solver, 0.0, 4.0, 0.05, y),
        args=rates,
        saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 4.0, 32)),
        stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-5),
        max_steps=256,
        throw=throw,
    ).ys


@pytest.mark.export_compat
def test_forward(export_golden):
    """A stiff equation by an implicit method, which solves a nonlinear equation in each step."""
    export_golden(jax.jit(lambda y, rates: solve(y, rates, diffrax.Kvaerno5())), start, rates)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(lambda y, rates: solve(y, rates, diffrax.Tsit5())), start, rates)


@pytest.mark.export_compat
def test_random_key(export_golden):
    def noisy(y, key):
        path = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(2,), key=key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: -y),
            diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.eye(2), path),
        )
        return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.05, y, max_steps=32, throw=False).ys

    export_golden(jax.jit(noisy), start, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes=("b, 2", None))
def test_symbolic_batch(export_golden):
    batch = 1 + np.abs(normal(0, 16, 2, scale=0.3))
    solutions = jax.jit(jax.vmap(lambda y, rates: solve(y, rates, diffrax.Dopri5()), (0, None)))
    export_golden(solutions, batch, rates).also(batch[:3], rates)


@pytest.mark.export_compat
def test_model_argument(export_golden):
    field = eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(0))

    @eqx.filter_jit
    def neural_ode(field, y):
        term = diffrax.ODETerm(lambda t, y, args: args(y))
        return diffrax.diffeqsolve(term, diffrax.Heun(), 0.0, 1.0, 0.1, y, args=field, max_steps=16, throw=False)

    export_golden(neural_ode, field, start)


@pytest.mark.export_compat
def test_throw(export_golden):
    export_golden(jax.jit(lambda y: solve(y, rates, diffrax.Tsit5(), throw=True)), start)
