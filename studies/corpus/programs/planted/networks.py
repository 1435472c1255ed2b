"""Layers, attention and recurrent networks, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.program import BF16, CONSTANT, DROPPED, EPSILON, LOW, OFF_BY_ONE, SWAPPED, Program


def softmax(x, *, axis=-1, dtype=None):
    return jax.nn.softmax(x.astype(dtype), axis=axis).astype(x.dtype) if dtype else jax.nn.softmax(x, axis=axis)


def logsumexp_gradient(x, *, axis=-1):
    return jax.grad(lambda x: jnp.sum(jax.nn.logsumexp(3 * x, axis=axis)))(x)


def cross_entropy(logits, labels, *, shift=0):
    def loss(logits):
        return -jnp.mean(
            jnp.take_along_axis(jax.nn.log_softmax(logits), (labels[:, None] + shift) % logits.shape[1], axis=1)
        )

    return jax.value_and_grad(loss)(logits)


def gelu_layer(x, w, b, *, constant=0.044715, bias=1.0):
    x = x @ w + bias * b
    return 0.5 * x * (1 + jnp.tanh(np.sqrt(2 / np.pi).astype(np.float32) * (x + constant * x**3)))


def layer_norm(x, *, epsilon=1e-5, axis=-1, dtype=None):
    x = x.astype(dtype) if dtype else x
    mean, variance = jnp.mean(x, axis=axis, keepdims=True), jnp.var(x, axis=axis, keepdims=True)
    return ((x - mean) * lax.rsqrt(variance + epsilon)).astype(jnp.float32)


def layer_norm_gradient(x, g, *, epsilon=1e-5):
    return jax.grad(lambda x: jnp.sum(g * layer_norm(x, epsilon=epsilon)))(x)


def rms_norm(x, scale, *, epsilon=1e-6):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon) * scale


def group_norm(x, *, epsilon=1e-3, groups=4):
    grouped = x.reshape(*x.shape[:-1], groups, -1)
    mean, variance = (f(grouped, axis=(1, 2, 4), keepdims=True) for f in (jnp.mean, jnp.var))
    return ((grouped - mean) / jnp.sqrt(variance + epsilon)).reshape(x.shape)


def batch_norm(x, mean, variance, *, epsilon=1e-3, momentum=0.99):
    now, spread = jnp.mean(x, axis=0), jnp.var(x, axis=0)
    moved = momentum * mean + (1 - momentum) * now, momentum * variance + (1 - momentum) * spread
    return (x - now) / jnp.sqrt(spread + epsilon), *moved


def convolution(x, k, *, padding="SAME", dtype=None):
    x, k = (x.astype(dtype), k.astype(dtype)) if dtype else (x, k)
    y = lax.conv_general_dilated(x, k, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y.astype(jnp.float32)


def strided_convolution(x, k, *, pad=1):
    padding = [(pad, 2 - pad)] * 2
    return lax.conv_general_dilated(x, k, (2, 2), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def depthwise_convolution(x, k, *, shift=0):
    numbers = ("NHWC", "HWIO", "NHWC")
    groups = x.shape[-1]
    return lax.conv_general_dilated(
        x, jnp.roll(k, shift, 0), (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def convolution_gradient(x, k, *, term=1.0):
    loss = lambda x, k: jnp.sum(jnp.tanh(convolution(x, k)) ** 2) + term * jnp.sum(k**2)
    return jax.grad(loss, (0, 1))(x, k)


def pooling(x, *, stride=2, count=4.0):
    zero = np.float32(0)
    window = (1, 2, 2, 1), (1, stride, stride, 1), "VALID"
    return lax.reduce_window(x, zero, lax.add, *window) / count, lax.reduce_window(
        x, -np.float32(np.inf), lax.max, *window
    )


def causal_attention(q, k, v, *, diagonal=0, scale=0.25, dtype=None):
    q, k, v = (array.astype(dtype) if dtype else array for array in (q, k, v))
    scores = jnp.einsum("bqd,bkd->bqk", q, k) * scale
    mask = jnp.tril(jnp.ones(scores.shape[1:], bool), diagonal)
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bqk,bkd->bqd", weights, v).astype(jnp.float32)


def wholly_masked_attention(q, k, v, lengths, *, shift=0):
    """Attention in which all keys of a row may be masked: then the row is NaN."""
    scores = jnp.where(
        jnp.arange(k.shape[1]) < lengths[:, None, None] + shift, jnp.einsum("bqd,bkd->bqk", q, k), -jnp.inf
    )
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, axis=-1), v)


def attention_gradient(q, k, v, bias, *, scale=0.25):
    """The gradients of attention with respect to q, k, v and a bias that is added to every key.

    Softmax cancels the bias, so the bias's gradient is zero but for rounding.
    """

    def loss(q, k, v, bias):
        scores = jnp.einsum("qd,kd->qk", q, k + bias) * scale
        return jnp.mean((jax.nn.softmax(scores, axis=-1) @ v) ** 2)

    return jax.grad(loss, (0, 1, 2, 3))(q, k, v, bias)


def rotary_attention(q, k, v, *, base=10000.0, heads=4):
    def split(x):
        return x.reshape(x.shape[0], heads, -1)

    def rotate(x):
        half = x.shape[-1] // 2
        angle = jnp.arange(x.shape[0])[:, None] * base ** (-jnp.arange(half, dtype=jnp.float32) / half)
        cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
        one, two = x[..., :half], x[..., half:]
        return jnp.concatenate([one * cos - two * sin, two * cos + one * sin], axis=-1)

    scores = jnp.einsum("qhd,khd->hqk", rotate(split(q)), rotate(split(k)))
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores, axis=-1), split(v)).reshape(q.shape)


def recurrent_scan(h, xs, w, u, *, dtype=jnp.float32):
    """A recurrent network in 1,000 steps."""

    def step(h, x):
        h = jnp.tanh(h.astype(dtype) @ w.astype(dtype) + x.astype(dtype) @ u.astype(dtype)).astype(jnp.float32)
        return h, h[0]

    return lax.scan(step, h, xs)


def gated_scan(h, xs, w, *, term=1.0):
    def step(h, x):
        z, r, n = jnp.split(jnp.concatenate([h, x]) @ w, 3)
        h = (1 - jax.nn.sigmoid(z)) * h + jax.nn.sigmoid(z) * jnp.tanh(n + term * jax.nn.sigmoid(r) * h)
        return h, h

    return lax.scan(step, h, xs)[1]


def linear_attention(q, k, v, *, epsilon=1e-3):
    def step(carry, row):
        memory, total = carry
        q, k, v = row
        memory, total = memory + jnp.outer(k, v), total + k
        return (memory, total), (q @ memory) / (q @ total + epsilon)

    zero = jnp.zeros((q.shape[1], v.shape[1]), jnp.float32), jnp.zeros(k.shape[1], jnp.float32)
    return lax.scan(step, zero, (jax.nn.elu(q) + 1, jax.nn.elu(k) + 1, v))[1]


def embedding_gradient(table, tokens, *, shift=0):
    return jax.grad(lambda table: jnp.sum(jnp.sin(table[(tokens + shift) % len(table)]) ** 2))(table)


def loss_with_nan(x):
    """The gradient through a square root at zero, which is NaN."""
    return jax.grad(lambda x: jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0)))(x)


_Q, _K, _V = normal(105, 2, 24, 16), normal(106, 2, 24, 16), normal(107, 2, 24, 16)

PROGRAMS = (
    Program(softmax, (4 * normal(110, 32, 32),), {SWAPPED: {"axis": 0}, LOW: {"dtype": jnp.bfloat16}}),
    Program(logsumexp_gradient, (normal(111, 24, 24),), {SWAPPED: {"axis": 0}}),
    Program(cross_entropy, (normal(112, 32, 10), integers(113, 32, high=10)), {OFF_BY_ONE: {"shift": 1}}),
    Program(gelu_layer, (normal(114, 32, 24), normal(115, 24, 24), normal(116, 24)), {CONSTANT: {"constant": 0.0447153}, DROPPED: {"bias": 0.0}}),
    Program(layer_norm, (normal(117, 32, 32),), {EPSILON: {"epsilon": 0.0}, SWAPPED: {"axis": 0}, LOW: {"dtype": jnp.bfloat16}}),
    Program(layer_norm_gradient, (normal(118, 16, 64), normal(119, 16, 64)), {EPSILON: {"epsilon": 0.0}}),
    Program(rms_norm, (normal(120, 16, 64) / np.float32(50), normal(121, 64)), {EPSILON: {"epsilon": 0.0}}),
    Program(group_norm, (normal(122, 2, 6, 6, 16),), {EPSILON: {"epsilon": 0.0}}),
    Program(batch_norm, (normal(123, 64, 16), normal(124, 16), uniform(125, 16)), {EPSILON: {"epsilon": 0.0}, CONSTANT: {"momentum": 0.990004}}),
    Program(convolution, (normal(126, 2, 12, 12, 6), normal(127, 3, 3, 6, 8)), {BF16: {"dtype": jnp.bfloat16}}),
    Program(strided_convolution, (normal(128, 2, 12, 12, 6), normal(129, 3, 3, 6, 8)), {OFF_BY_ONE: {"pad": 0}}),
    Program(depthwise_convolution, (normal(130, 2, 12, 12, 8), normal(131, 3, 3, 1, 8)), {OFF_BY_ONE: {"shift": 1}}),
    Program(convolution_gradient, (normal(132, 2, 8, 8, 4), normal(133, 3, 3, 4, 4)), {DROPPED: {"term": 0.0}}),
    Program(pooling, (normal(134, 2, 12, 12, 4),), {CONSTANT: {"count": 4.00002}}),
    Program(causal_attention, (_Q, _K, _V), {OFF_BY_ONE: {"diagonal": 1}, CONSTANT: {"scale": 0.2500008}, LOW: {"dtype": jnp.bfloat16}}),
    Program(wholly_masked_attention, (_Q, _K, _V, np.array([0, 9], np.int32)), {OFF_BY_ONE: {"shift": 1}}),
    Program(attention_gradient, (_Q[0], _K[0], _V[0], normal(135, 16)), {CONSTANT: {"scale": 0.2500008}}),
    Program(rotary_attention, (_Q[0], _K[0], _V[0]), {CONSTANT: {"base": 10000.05}}),
    Program(recurrent_scan, (normal(136, 16), normal(137, 1000, 4), normal(138, 16, 16) / np.float32(5), normal(139, 4, 16)), {LOW: {"dtype": jnp.bfloat16}}),
    Program(gated_scan, (normal(140, 16), normal(141, 100, 8), normal(142, 24, 48) / np.float32(4)), {DROPPED: {"term": 0.0}}),
    Program(linear_attention, (normal(143, 64, 8), normal(144, 64, 8), normal(145, 64, 8)), {EPSILON: {"epsilon": 0.0}}),
    Program(embedding_gradient, (normal(146, 20, 8), integers(147, 64, high=20)), {OFF_BY_ONE: {"shift": 1}}),
    Program(loss_with_nan, (np.maximum(normal(160, 64), 0),), {}),
)  # fmt: skip
