"""Optimizers and train steps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import normal, uniform
from studies.corpus.programs.planted.networks import layer_norm
from studies.corpus.programs.program import CONSTANT, DROPPED, EPSILON, LOW, OFF_BY_ONE, SEED, Program


def _adam(parameters, gradients, first, second, step, epsilon=1e-8, rate=1e-3, beta=0.999):
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: beta * v + (1 - beta) * g * g, second, gradients)
    moved = jax.tree.map(
        lambda p, m, v: p - rate * (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - beta**step)) + epsilon),
        parameters,
        first,
        second,
    )
    return moved, first, second


def adam_after_normalization(x, w, b, *, epsilon=1e-8):
    """Adam's first step for a bias without effect, which turns the rounding errors of its gradient into ±rate."""
    parameters = {"w": w, "b": b}
    loss = lambda p: jnp.mean(layer_norm(x @ p["w"] + p["b"], axis=0) ** 3)
    zero = jax.tree.map(jnp.zeros_like, parameters)
    return _adam(parameters, jax.grad(loss)(parameters), zero, zero, 1, epsilon)[0]


def network(parameters, x, dtype=jnp.float32):
    one, two = parameters["one"].astype(dtype), parameters["two"].astype(dtype)
    return (jax.nn.relu(x.astype(dtype) @ one) @ two).astype(jnp.float32)


def adam_train_steps(one, two, x, y, *, epsilon=1e-3, beta=0.999, first=1, dtype=jnp.float32):
    parameters = {"one": one, "two": two}
    loss = lambda p: jnp.mean((network(p, x, dtype) - y) ** 2)

    def step(carry, number):
        value, gradients = jax.value_and_grad(loss)(carry[0])
        return _adam(carry[0], gradients, *carry[1:], number, epsilon, beta=beta), value

    zero = jax.tree.map(jnp.zeros_like, parameters)
    (parameters, _, _), losses = lax.scan(step, (parameters, zero, zero), jnp.arange(10, dtype=jnp.float32) + first)
    return parameters, losses


def momentum_steps(one, two, x, y, *, momentum=0.9, decay=1e-2):
    loss = lambda p: jnp.mean((network(p, x) - y) ** 2)

    def step(carry, _):
        parameters, velocity = carry
        gradients = jax.grad(loss)(parameters)
        velocity = jax.tree.map(lambda v, g, p: momentum * v + g + decay * p, velocity, gradients, parameters)
        return (jax.tree.map(lambda p, v: p - 0.01 * v, parameters, velocity), velocity), None

    parameters = {"one": one, "two": two}
    return lax.scan(step, (parameters, jax.tree.map(jnp.zeros_like, parameters)), None, length=20)[0]


def newton_logistic(x, y, *, ridge=1e-2, steps=3):
    def step(w, _):
        p = jax.nn.sigmoid(x @ w)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + ridge * jnp.eye(x.shape[1], dtype=x.dtype)
        return w - jnp.linalg.solve(hessian, x.T @ (p - y) + ridge * w), None

    return lax.scan(step, jnp.zeros(x.shape[1], x.dtype), None, length=steps)[0]


def dropout(x, *, seed=0, keep=0.8):
    return jnp.where(jax.random.bernoulli(jax.random.key(seed), keep, x.shape), x / keep, 0)


ONE, TWO, X, Y = (
    normal(101, 16, 32) / np.float32(4),
    normal(102, 32, 4) / np.float32(6),
    normal(103, 24, 16),
    normal(104, 24, 4),
)

PROGRAMS = (
    Program(adam_after_normalization, (normal(148, 64, 8), normal(149, 8, 8), normal(150, 8)), {EPSILON: {"epsilon": 0.0}}),
    Program(adam_train_steps, (ONE, TWO, X, Y), {EPSILON: {"epsilon": 0.0}, CONSTANT: {"beta": 0.999004}, OFF_BY_ONE: {"first": 2}, LOW: {"dtype": jnp.bfloat16}}),
    Program(momentum_steps, (ONE, TWO, X, Y), {CONSTANT: {"momentum": 0.900004}, DROPPED: {"decay": 0.0}}),
    Program(newton_logistic, (normal(151, 64, 5), (uniform(152, 64) > 0.5).astype(np.float32)), {EPSILON: {"ridge": 0.0}, OFF_BY_ONE: {"steps": 2}}, lapack=True),
    Program(dropout, (normal(153, 16, 16),), {SEED: {"seed": 1}, CONSTANT: {"keep": 0.800003}}),
)  # fmt: skip
