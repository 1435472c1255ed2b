"""Trees that nobody registered, and what is called where it is not a function of `jax.jit` itself."""

import functools
from collections import namedtuple

import jax
import jax.numpy as jnp
import pytest

Moments = namedtuple("Moments", ["mean", "variance"])
State = namedtuple("State", ["moments", "step", "inner"])


class Dense:
    """A layer with arrays and a function in it, as equinox has them."""

    def __init__(self, weight, bias, activation):
        self.weight, self.bias, self.activation = weight, bias, activation

    def __call__(self, x):
        return self.activation(x @ self.weight + self.bias)


jax.tree_util.register_pytree_with_keys(
    Dense,
    lambda layer: (
        [(jax.tree_util.GetAttrKey(name), getattr(layer, name)) for name in ("weight", "bias")],
        layer.activation,
    ),
    lambda activation, leaves: Dense(*leaves, activation),
)


class Scaled:
    """A function with a number in it."""

    def __init__(self, factor):
        self.factor = factor

    @functools.partial(jax.jit, static_argnums=0)
    def called(self, x):
        return jnp.sinh(x * self.factor)


def adam(state, slope, *, rate):
    mean = 0.9 * state.moments.mean + 0.1 * slope
    variance = 0.99 * state.moments.variance + 0.01 * slope**2
    return -rate * mean / (jnp.sqrt(variance) + 1e-8), State(
        Moments(mean, variance), state.step + 1, {1: mean, 0: None}
    )


@pytest.mark.export_compat(constant=["args[0].inner[1]"])
def test_state_of_named_tuples(export_golden, numbers):
    state = State(Moments(numbers(4), numbers(4, offset=4) ** 2), 7, {1: numbers(2), 0: None})
    export_golden(jax.jit(adam), state, numbers(4, offset=8), rate=0.5)


@pytest.mark.export_compat(symbolic_shapes=(None, "b, 3"))
def test_model_and_a_symbolic_batch(export_golden, numbers):
    layer = Dense(numbers(3, 2), numbers(2), jnp.tanh)
    exported = export_golden(jax.jit(lambda layer, x: (layer(x), layer)), layer, numbers(4, 3))
    exported.also(layer, numbers(7, 3))


@pytest.mark.export_compat(vjp_order=1)
def test_gradient_of_a_model(export_golden, numbers):
    layer = Dense(numbers(3, 2), numbers(2), jax.nn.softplus)
    export_golden(jax.jit(lambda layer, x: {"loss": jnp.sum(layer(x) ** 2)}), layer, numbers(4, 3))


@pytest.mark.export_compat
def test_donated_state(export_golden, numbers):
    state = Moments(numbers(4), numbers(4, offset=4))
    export_golden(
        jax.jit(lambda state, x: Moments(state.mean + x, state.variance), donate_argnums=0), state, numbers(4)
    )


@pytest.mark.export_compat
def test_partial_of_a_jit(export_golden, numbers):
    rolled = functools.partial(jax.jit(jnp.roll, static_argnames=("axis",)), numbers(2, 3), axis=1)
    export_golden(rolled, 2)


@pytest.mark.export_compat
def test_bound_method(export_golden, numbers):
    export_golden(Scaled(2).called, numbers(3))


@pytest.mark.export_compat
def test_static_none_and_names(export_golden, numbers):
    summed = jax.jit(lambda x, axis, how="sum": getattr(jnp, how)(x, axis=axis), static_argnames=("axis", "how"))
    export_golden(summed, numbers(2, 3), None, how="prod")
