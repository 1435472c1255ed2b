"""Models with constant weights in few bits, which the program converts to floats."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal
from studies.corpus.programs.program import CONSTANT, DROPPED, EPSILON, OFF_BY_ONE, Program

_W1, _W2 = normal(560, 32, 48) / np.float32(6), normal(561, 48, 20) / np.float32(7)


def _by_channel(w):
    """Return weights as integers of 8 bits, and the scale of each column."""
    scale = (np.abs(w).max(0) / 127).astype(np.float32)
    return np.round(w / scale).astype(np.int8), scale


_Q1, _S1 = _by_channel(_W1)
_Q2, _S2 = _by_channel(_W2)
_FP8_1, _FP8_2 = _W1.astype(ml_dtypes.float8_e4m3fn), _W2.astype(ml_dtypes.float8_e5m2)
_BF16_1, _BF16_2 = _W1.astype(ml_dtypes.bfloat16), _W2.astype(ml_dtypes.bfloat16)
_NIBBLES = integers(562, 32, 24, high=256).astype(np.uint8)
_NORMAL_FLOAT = np.array([-1, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0, 0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.723, 1], np.float32)  # fmt: skip


def _widened(weights):
    """Return weights in few bits as floats, converted by the program and not before."""
    return jnp.asarray(weights).astype(jnp.float32)


def eight_bit_layers(x, *, gain=1.0):
    hidden = jax.nn.gelu(x @ (_widened(_Q1) * _S1))
    return gain * hidden @ (_widened(_Q2) * _S2)


def eight_bit_words(tokens, *, shift=0):
    """Word probabilities by a table of words in 8 bits, summed over the row; the tokens are the only argument."""
    table = _widened(_Q1.T) * _S1[:, None]
    x = table[(tokens + shift) % len(table)]
    return jax.nn.log_softmax(jnp.cumsum(x, axis=0) @ table.T / 4)


def eight_bit_gradient(x, *, gain=1.0):
    """The gradient, in the input, of a loss of layers with weights in 8 bits."""
    loss = lambda x: jnp.mean(jnp.tanh(eight_bit_layers(x, gain=gain)) ** 3)
    return jax.value_and_grad(loss)(x)


def eight_bit_products(x, *, epsilon=1e-6):
    """A product of integers: the input is rounded to integers inside, which jump if it is close to a half."""
    scale = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 127 + epsilon
    q = jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8)
    return lax.dot(q, _Q1, preferred_element_type=jnp.int32).astype(jnp.float32) * scale * _S1


def four_bit_floats(x, *, shift=0):
    """A layer with weights of four bits, each of which is a place in a table of sixteen floats."""
    table = jnp.roll(_NORMAL_FLOAT, shift)
    bytes_ = jnp.asarray(_NIBBLES)
    w = table[jnp.concatenate([bytes_ & 15, bytes_ >> 4], axis=-1).astype(jnp.int32)]
    return jax.nn.silu(x @ (w * 0.13)) @ _W2


def float8_words(tokens, *, base=500.0):
    """Attention with a table of words in float8 and computed positions; the tokens are the only argument."""
    x = _widened(_FP8_1.T)[tokens]
    angle = jnp.arange(len(tokens))[:, None] * base ** (-jnp.arange(16) / 16)
    x = x + jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)
    return jax.nn.softmax(x @ x.T / np.sqrt(32), axis=-1) @ x


def bfloat16_layers(x, *, bias=0.1):
    """Layers with weights in bfloat16, which are widened first, so that nothing is summed up in bfloat16."""
    hidden = jnp.tanh(x @ _widened(_BF16_1) + bias)
    return hidden @ _widened(_BF16_2)


def bfloat16_words(tokens, *, epsilon=1e-5):
    """Layers with outputs that are rounded to bfloat16; the tokens are the only argument."""
    x = _widened(_BF16_1.T)[tokens]
    mean = jnp.mean(x, axis=-1, keepdims=True)
    x = (x - mean) * lax.rsqrt(jnp.var(x, axis=-1, keepdims=True) + epsilon)
    return (jax.nn.gelu(x @ _W1) @ _W2).astype(jnp.bfloat16)


def product_codes(codes, *, shift=0):
    """Distances between vectors that are put together from four tables; the codes are the only argument."""
    tables = jnp.asarray(_W1).reshape(4, 8, 48)[:, :, :16].transpose(0, 2, 1)
    vectors = jnp.concatenate([tables[part][(codes[:, part] + shift) % 16] for part in range(4)], axis=-1)
    square = jnp.sum(vectors**2, axis=-1)
    return square[:, None] + square[None] - 2 * vectors @ vectors.T


def rounded_training_gradient(x, *, gain=1.0):
    """The gradient of a loss with rounded weights, as if they were not rounded. The rounding jumps."""

    def rounded(w):
        scale = jnp.max(jnp.abs(w)) / 7
        return w + lax.stop_gradient(jnp.round(w / scale) * scale - w)

    loss = lambda w: jnp.mean(jax.nn.softplus(gain * x @ rounded(w)))
    return jax.grad(loss)(jnp.sin(7.0 * _W1))


def image_of_bytes_classified(image, *, mean=0.449):
    """The classes of an image of bytes, by two convolutions with weights of 8 bits."""
    x = (image.astype(jnp.float32) / 255 - mean) / 0.226
    one = _widened(_Q1.ravel()[: 3 * 3 * 3 * 8].reshape(3, 3, 3, 8)) * 0.004
    two = _widened(_Q2.ravel()[: 3 * 3 * 8 * 10].reshape(3, 3, 8, 10)) * 0.005
    for kernel in (one, two):
        conv = lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu6(conv + 0.1)
    return jax.nn.softmax(jnp.mean(x, axis=(1, 2)))


_X = normal(563, 12, 32)
_CODES = integers(564, 20, 4, high=16)

PROGRAMS = (
    Program(eight_bit_layers, (_X,), {CONSTANT: {"gain": 1.00001}}),
    Program(eight_bit_words, (integers(565, 16, high=48),), {OFF_BY_ONE: {"shift": 1}}),
    Program(eight_bit_gradient, (_X,), {CONSTANT: {"gain": 1.00001}}),
    Program(eight_bit_products, (_X,), {CONSTANT: {"epsilon": 1.2e-6}}, jumps=True),
    Program(four_bit_floats, (_X,), {OFF_BY_ONE: {"shift": 1}}),
    Program(float8_words, (integers(566, 24, high=48),), {CONSTANT: {"base": 500.005}}),
    Program(bfloat16_layers, (_X,), {DROPPED: {"bias": 0.0}, CONSTANT: {"bias": 0.100001}}),
    Program(bfloat16_words, (integers(567, 16, high=48),), {EPSILON: {"epsilon": 0.0}}),
    Program(product_codes, (_CODES,), {OFF_BY_ONE: {"shift": 1}}),
    Program(rounded_training_gradient, (_X,), {CONSTANT: {"gain": 1.00001}}, jumps=True),
    Program(image_of_bytes_classified, (integers(568, 2, 20, 20, 3, high=256).astype(np.uint8),), {CONSTANT: {"mean": 0.4490045}}),
)  # fmt: skip
