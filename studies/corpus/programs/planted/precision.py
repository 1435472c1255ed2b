"""Mixed precision: bfloat16, float16 and int8 beside float32."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.planted.networks import causal_attention, layer_norm
from studies.corpus.programs.planted.training import ONE, TWO, X, Y, network
from studies.corpus.programs.program import EPSILON, LOW, OFF_BY_ONE, Program


def half_attention(q, k, v, *, diagonal=0):
    return causal_attention(q, k, v, diagonal=diagonal).astype(jnp.float16)


def bf16_product(a, b, *, dtype=None):
    """A product in float32 with operands that are rounded to bfloat16."""
    a, b = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    return lax.dot(a, b).astype(jnp.float32) if dtype else lax.dot(a, b, preferred_element_type=jnp.float32)


def bf16_rounded_product(a, b, *, shift=0):
    """A product that is rounded to bfloat16 before it becomes float32; XLA leaves out this rounding until 0.10."""
    a, b = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    return lax.dot(a, jnp.roll(b, shift, 0)).astype(jnp.float32)


def bf16_network(one, two, x, *, term=1.0):
    return network({"one": one, "two": two * term}, x, jnp.bfloat16)


def bf16_layer_norm(x, *, epsilon=1e-5):
    return layer_norm(x.astype(jnp.bfloat16).astype(jnp.float32), epsilon=epsilon).astype(jnp.bfloat16)


def bf16_gradient(one, two, x, y, *, scale=1.0):
    loss = lambda p: scale * jnp.mean((network(p, x, jnp.bfloat16) - y) ** 2)
    return jax.grad(loss)({"one": one, "two": two})


def half_softmax(x, *, axis=-1):
    """A softmax in float16: probabilities far from the largest are denormal numbers."""
    return jax.nn.softmax(x.astype(jnp.float16), axis=axis)


def half_gradient(one, two, x, y, *, scale=1e-3):
    """A gradient in float16 without loss scaling, so that small gradients are denormal numbers."""
    parameters = {"one": one.astype(jnp.float16), "two": two.astype(jnp.float16)}
    loss = lambda p: scale * jnp.mean((network(p, x, jnp.float16) - y) ** 2)
    return jax.grad(loss)(parameters)


def half_kernel(x, *, factor=0.5):
    """A Gaussian kernel in float16 with denormal numbers in its corners."""
    away = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    return jnp.exp(-factor * away).astype(jnp.float16)


def quantized_layer(x, w, *, shift=0):
    scale = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 127
    q = jnp.round(x / scale).astype(jnp.int8)
    total = lax.dot(q, jnp.roll(w, shift, axis=0), preferred_element_type=jnp.int32)
    return total, total.astype(jnp.float32) * scale


_Q, _K, _V = normal(105, 2, 24, 16), normal(106, 2, 24, 16), normal(107, 2, 24, 16)

PROGRAMS = (
    Program(half_attention, (_Q.astype(np.float16), _K.astype(np.float16), _V.astype(np.float16)), {OFF_BY_ONE: {"diagonal": -1}}),
    Program(bf16_product, (normal(154, 64, 512), normal(155, 512, 32)), {LOW: {"dtype": jnp.bfloat16}}),
    Program(bf16_rounded_product, (normal(154, 64, 512), normal(155, 512, 32)), {OFF_BY_ONE: {"shift": 1}}),
    Program(bf16_network, (ONE, TWO, X), {}),
    Program(bf16_layer_norm, (normal(156, 16, 64) / np.float32(100),), {EPSILON: {"epsilon": 0.0}}),
    Program(bf16_gradient, (ONE, TWO, X, Y), {}),
    Program(half_softmax, (4 * normal(157, 16, 64),), {}),
    Program(half_gradient, (ONE, TWO, X, Y), {}),
    Program(half_kernel, (4 * uniform(161, 16, 3),), {}),
    Program(quantized_layer, (normal(158, 16, 32), integers(159, 32, 8, high=100).astype(np.int8)), {OFF_BY_ONE: {"shift": 1}}),
)  # fmt: skip
