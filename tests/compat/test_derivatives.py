"""Derivatives that the artifact carries: orders, rules of the user's own, rematerialization, inputs that have none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.export_compat(vjp_order=1)
def test_first_order(export_golden, numbers):
    export_golden(jax.jit(lambda x, y: jnp.sin(x) @ y), numbers(2, 3), numbers(3, 2, offset=5))


@pytest.mark.export_compat(vjp_order=3)
def test_third_order(export_golden, numbers):
    export_golden(jax.jit(lambda x: x * jnp.sin(x)), numbers(3))


@jax.custom_vjp
def clipped(x):
    return x**3


clipped.defvjp(lambda x: (clipped(x), x), lambda x, cotangent: (jnp.clip(3 * x**2 * cotangent, -0.5, 0.5),))


@pytest.mark.export_compat(vjp_order=2)
def test_custom_vjp(export_golden, numbers):
    export_golden(jax.jit(clipped), numbers(4))


@jax.custom_jvp
def softplus(x):
    return jnp.log1p(jnp.exp(x))


softplus.defjvps(lambda tangent, value, x: jax.nn.sigmoid(x) * tangent)


@pytest.mark.export_compat(vjp_order=2)
def test_custom_jvp(export_golden, numbers):
    export_golden(jax.jit(softplus), numbers(4))


@pytest.mark.export_compat(vjp_order=1)
def test_remat(export_golden, numbers):
    layer = jax.checkpoint(lambda x, weights: jnp.tanh(x @ weights))
    export_golden(jax.jit(lambda x, weights: layer(layer(x, weights), weights).sum()), numbers(2, 3), numbers(3, 3))


@pytest.mark.export_compat(vjp_order=1)
def test_scan(export_golden, numbers):
    def decay(start, rates):
        return jax.lax.scan(lambda value, rate: (value * jnp.exp(-rate), value), start, rates)

    export_golden(jax.jit(decay), numbers(2), numbers(4, 2))


@pytest.mark.export_compat(vjp_order=2)
def test_integer_inputs(export_golden, numbers):
    export_golden(jax.jit(lambda x, count: (x * count, count + 1)), numbers(3), np.int32(3))


@pytest.mark.export_compat(vjp_order=1)
def test_several_outputs(export_golden, numbers):
    def statistics(tree):
        x = tree["x"]
        return {"mean": x.mean(), "signs": x > 0, "squares": (x**2, [x.sum(0)])}

    export_golden(jax.jit(statistics), {"x": numbers(2, 3)})


@pytest.mark.export_compat(vjp_order=1)
def test_complex_numbers(export_golden, numbers):
    export_golden(jax.jit(lambda z: (z * z, jnp.abs(z))), (numbers(3) + 1j * numbers(3, offset=3)).astype(np.complex64))
