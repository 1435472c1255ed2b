"""Models that compute in half precision; after them some with float32 outputs that depend on numbers rounded to few bits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal
from studies.corpus.programs.planted.held_out.planting import one_off, to_tf32, widened
from studies.corpus.programs.program import (
    BF16,
    DROPPED,
    EPSILON,
    HALF,
    OFF_BY_ONE,
    RATIO,
    SWAPPED,
    TABLE,
    TF32,
    Program,
)

_BF16 = ml_dtypes.bfloat16
_LAYERS = [(normal(780 + n, *shape) / np.sqrt(shape[0])).astype(_BF16) for n, shape in enumerate([(24, 48), (48, 48), (48, 10)])]  # fmt: skip
_BIASES = [normal(783 + n, size).astype(_BF16) for n, size in enumerate([48, 48, 10])]
_QKV, _OUT = (normal(786, 32, 96) / 6).astype(np.float16), (normal(787, 32, 32) / 6).astype(np.float16)
_NORM, _IN, _BACK = (
    (1 + normal(788, 40) / 4).astype(_BF16),
    (normal(789, 40, 80) / 6).astype(_BF16),
    (normal(790, 80, 40) / 9).astype(_BF16),
)
_KERNELS = [(normal(791 + n, *shape) / 5).astype(np.float16) for n, shape in enumerate([(3, 3, 3, 8), (3, 3, 8, 12)])]
_HEAD = normal(793, 12, 7).astype(np.float16)
_WORDS = normal(794, 50, 24).astype(_BF16)
_MIX = (normal(795, 24, 24) / 5).astype(_BF16)
_SPEECH = (normal(796, 5, 16, 20) / 9).astype(np.float32)
_FP8_W = (8 * normal(797, 32, 20)).astype(ml_dtypes.float8_e4m3fn)
_W1, _W2 = normal(798, 32, 40) / np.float32(6), normal(799, 40, 12) / np.float32(6)


def bfloat16_perceptron(x, *, bias=1, skip=False, ratio=1.0, shift=0):
    """A perceptron in which everything is bfloat16, outputs too."""
    for n, (w, b) in enumerate(zip(_LAYERS, _BIASES, strict=True)):
        x = x @ jnp.roll(jnp.asarray(w), shift if n == 1 else 0, axis=0) + bias * jnp.asarray(b)
        if n < 2 and not (skip and n):
            x = jax.nn.gelu(x)
    return x * jnp.asarray(ratio, x.dtype)


def float16_attention_over_heads(x, *, ratio=1.0, diagonal=0, swapped=False, turn=1.0):
    """Attention with four heads and rotary positions, all in float16; its outputs are converted to float32."""
    q, k, v = jnp.split(x @ _QKV, 3, axis=-1)

    def heads(y):
        return y.reshape(len(y), 8, 4).transpose(2, 0, 1) if swapped else y.reshape(len(y), 4, 8).transpose(1, 0, 2)

    def turned(y):
        angle = (turn * jnp.arange(y.shape[1])[:, None] * 100.0 ** (-jnp.arange(4) / 4)).astype(y.dtype)
        one, two = y[..., :4], y[..., 4:]
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        return jnp.concatenate([one * cos - two * sin, one * sin + two * cos], axis=-1)

    scores = turned(heads(q)) @ turned(heads(k)).transpose(0, 2, 1) * jnp.asarray(ratio / np.sqrt(8), x.dtype)
    scores = jnp.where(jnp.tri(len(x), k=diagonal, dtype=bool), scores, jnp.asarray(-6e4, x.dtype))
    mixed = jax.nn.softmax(scores, axis=-1) @ heads(v)
    return (mixed.transpose(1, 0, 2).reshape(x.shape) @ _OUT).astype(jnp.float32)


def bfloat16_block_with_norm(x, *, epsilon=1e-2, centred=True, way=1, shift=0):
    """A layer norm and two layers with a skip connection, all in bfloat16; their outputs are converted to float32."""
    mean = jnp.mean(x, axis=-1, keepdims=True) if centred else 0
    normed = (x - mean) * lax.rsqrt(jnp.var(x, axis=-1, keepdims=True) + jnp.asarray(epsilon, x.dtype))
    normed = normed * jnp.roll(jnp.asarray(_NORM), shift)
    return (way * x + jax.nn.silu(normed @ _IN) @ _BACK).astype(jnp.float32)


def float16_convolutions(image, *, swapped=False, mean=True, shift=0, ratio=1.0):
    """Two convolutions, a mean over pixels and seven classes, all in float16."""
    x = image
    for n, kernel in enumerate(_KERNELS):
        kernel = jnp.swapaxes(kernel, 0, 1) if swapped else jnp.asarray(kernel)
        x = lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jnp.roll(jax.nn.relu(x), shift if n == 0 else 0, axis=-1)
    pooled = jnp.mean(x, axis=(1, 2)) if mean else jnp.max(x, axis=(1, 2))
    return jax.nn.log_softmax(jnp.asarray(ratio, x.dtype) * pooled @ _HEAD)


def bfloat16_words_with_memory(tokens, *, keep=0.875, shift=0, gate=True):
    """Word probabilities in float32 by a gated linear recurrence in bfloat16; tokens are the only argument."""
    x = jnp.asarray(_WORDS)[(tokens + shift) % 50]
    open_ = jax.nn.sigmoid(x @ _MIX) if gate else jnp.ones_like(x)

    def step(h, xg):
        h = jnp.asarray(keep, h.dtype) * h + xg[1] * xg[0]
        return h, h

    h = lax.scan(step, jnp.zeros(24, x.dtype), (x, open_))[1]
    return jax.nn.softmax((h @ jnp.asarray(_WORDS).T / 4).astype(jnp.float32), axis=-1)


def float16_denoising(x, *, time=300.0, ratio=1.0, clipped=True, swapped=False):
    """A denoising step of a diffusion model in float16: a time embedding, a layer, and a clipped mean."""
    angle = time * np.exp(-np.arange(16) / 2).astype(np.float32)
    waves = [jnp.cos(angle), jnp.sin(angle)] if swapped else [jnp.sin(angle), jnp.cos(angle)]
    waves = jnp.concatenate(waves).astype(jnp.float16)
    noise = jax.nn.silu((x + waves) @ _OUT) @ _OUT.T
    clean = (x - jnp.asarray(ratio * 0.6, x.dtype) * noise) / jnp.asarray(0.8, x.dtype)
    clean = jnp.clip(clean, -1, 1) if clipped else clean
    return (jnp.asarray(0.7, x.dtype) * clean + jnp.asarray(0.3, x.dtype) * x).astype(jnp.float32)


def fake_quantised_layers(x, *, levels=127, factor=1.0, half_up=0.0, tf32=False):
    """Layers in float32 with activations that are rounded to integers of 8 bits between them."""

    def few_bits(x):
        scale = jnp.max(jnp.abs(x)) / levels
        return jnp.clip(jnp.round(x / scale + half_up), -128, 127).astype(jnp.int8).astype(jnp.float32) * scale

    hidden = jax.nn.relu(to_tf32(few_bits(x), tf32) @ to_tf32(one_off(_W1, factor, 620), tf32))
    return few_bits(hidden) @ _W2


def convolution_with_bfloat16_operands(x, *, low=False, factor=1.0, shift=0, bias=0.25):
    """A convolution over time with operands rounded to bfloat16 and sums in float32."""
    kernel = one_off(_SPEECH, factor, 800)
    x, kernel = jnp.roll(x, shift, axis=1).astype(jnp.bfloat16), kernel.astype(jnp.bfloat16)
    dimensions, wide = ("NWC", "WIO", "NWC"), jnp.float32
    y = lax.conv_general_dilated(x, kernel, (2,), "SAME", dimension_numbers=dimensions, preferred_element_type=wide)
    return jax.nn.gelu((lax.reduce_precision(y, 8, 7) if low else y) + bias)


def float8_activations(x, *, largest=448.0, factor=1.0, shift=0, by_row=True):
    """Rows rounded to float8 with a scale for each, times weights in float8; the sums are float32."""
    scale = jnp.max(jnp.abs(x), axis=-1 if by_row else None, keepdims=True) / largest
    codes = (x / scale).astype(jnp.float8_e4m3fn).astype(jnp.float32)
    return jnp.roll(codes, shift, axis=-1) @ one_off(widened(_FP8_W), factor, 333) * scale / 8


def float4_blocks_and_back(x, *, power=2, size=16, saturated=True, ratio=1.0):
    """Blocks rounded to float4 with a power of two as scale: the rounded numbers, and the mean square error."""
    blocks = x.reshape(len(x), -1, size)
    top = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True)
    scale = jnp.exp2(jnp.floor(jnp.log2(top)) - power).astype(jnp.float8_e8m0fnu).astype(jnp.float32)
    scaled = ratio * blocks / scale
    scaled = jnp.clip(scaled, -6, 6) if saturated else scaled % 6
    back = (scaled.astype(jnp.float4_e2m1fn).astype(jnp.float32) * scale).reshape(x.shape)
    return jnp.tanh(back), jnp.mean((x - back) ** 2, axis=-1)


def stream_in_bfloat16(x, *, blocks=3, epsilon=1e-2, ratio=1.0, half=False):
    """A residual stream in bfloat16 through three blocks, which compute in float32 like the last layer."""
    for n in range(blocks):
        wide = x.astype(jnp.float32)
        normed = wide * lax.rsqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + epsilon)
        change = ratio * jax.nn.gelu(normed @ jnp.roll(_W1, n, axis=0)) @ jnp.roll(_W1.T, n, axis=1)
        x = x + change.astype(jnp.float8_e4m3fn if half else jnp.bfloat16).astype(jnp.bfloat16)
    return x.astype(jnp.float32) @ (_W1 @ _W2)


PROGRAMS = (
    Program(bfloat16_perceptron, (normal(800, 12, 24).astype(_BF16),), {DROPPED: {"bias": 0}, SWAPPED: {"skip": True}, OFF_BY_ONE: {"shift": 1}, RATIO: {"ratio": 1.25}}, narrow="half"),
    Program(float16_attention_over_heads, (normal(801, 16, 32).astype(np.float16),), {RATIO: {"ratio": 1.1}, OFF_BY_ONE: {"diagonal": 1}, SWAPPED: {"swapped": True}, DROPPED: {"turn": 0.0}}, narrow="half"),
    Program(bfloat16_block_with_norm, ((normal(802, 14, 40) / 8 + 1).astype(_BF16),), {EPSILON: {"epsilon": 0.0}, DROPPED: {"centred": False}, SWAPPED: {"way": 0}, OFF_BY_ONE: {"shift": 1}}, narrow="half"),
    Program(float16_convolutions, (normal(803, 3, 16, 16, 3).astype(np.float16),), {SWAPPED: {"swapped": True}, DROPPED: {"mean": False}, OFF_BY_ONE: {"shift": 1}, RATIO: {"ratio": 1.1}}, narrow="half"),
    Program(bfloat16_words_with_memory, (integers(804, 20, high=50),), {RATIO: {"keep": 0.7875}, OFF_BY_ONE: {"shift": 1}, DROPPED: {"gate": False}}, narrow="half"),
    Program(float16_denoising, (normal(805, 10, 32).astype(np.float16),), {OFF_BY_ONE: {"time": 299.0}, RATIO: {"ratio": 1.1}, DROPPED: {"clipped": False}, SWAPPED: {"swapped": True}}, narrow="half"),
    Program(fake_quantised_layers, (normal(806, 12, 32),), {OFF_BY_ONE: {"levels": 126}, TABLE: {"factor": 1.1}, DROPPED: {"half_up": -0.5}, TF32: {"tf32": True}}, jumps=True, narrow="rounded"),
    Program(convolution_with_bfloat16_operands, (normal(807, 2, 30, 16),), {BF16: {"low": True}, TABLE: {"factor": 1.1}, OFF_BY_ONE: {"shift": 1}, DROPPED: {"bias": 0.0}}, narrow="rounded"),
    Program(float8_activations, (normal(808, 12, 32),), {RATIO: {"largest": 240.0}, TABLE: {"factor": 1.1}, OFF_BY_ONE: {"shift": 1}, DROPPED: {"by_row": False}}, jumps=True, narrow="rounded"),
    Program(float4_blocks_and_back, (normal(809, 12, 64),), {OFF_BY_ONE: {"power": 1}, SWAPPED: {"size": 32}, DROPPED: {"saturated": False}, RATIO: {"ratio": 1.1}}, jumps=True, narrow="rounded"),
    Program(stream_in_bfloat16, (normal(810, 10, 32).astype(_BF16),), {OFF_BY_ONE: {"blocks": 2}, EPSILON: {"epsilon": 0.0}, RATIO: {"ratio": 1.1}, HALF: {"half": True}}, narrow="rounded"),
)  # fmt: skip
