"""Diffrax: differential equations; solutions are Equinox modules."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

start = np.array([1.0, 0.5], np.float32)
batch = np.linspace(0.5, 1.5, 8, dtype=np.float32).reshape(4, 2)


def predator_prey(t, y, rate):
    return jnp.stack([y[0] * (rate - y[1]), y[1] * (y[0] - 1)])


def solve(y, rate=1.5, throw=False):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(predator_prey),
        diffrax.Tsit5(),
        t0=0.0,
        t1=2.0,
        dt0=0.1,
        y0=y,
        args=rate,
        saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 2.0, 5)),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
        max_steps=64,
        throw=throw,
    )


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(lambda y: solve(y).ys), start)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(lambda y: solve(y).ys), start)


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


@pytest.mark.export_compat(symbolic_shapes="b, 2")
def test_symbolic_batch(export_golden):
    export_golden(jax.jit(jax.vmap(lambda y: solve(y).ys)), batch).also(batch[:3])


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
    export_golden(jax.jit(lambda y: solve(y, throw=True).ys), start)
