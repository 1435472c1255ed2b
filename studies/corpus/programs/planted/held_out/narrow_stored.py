"""Weights, tables or inputs in few bits, which the program converts to float32 before it computes with them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.planted.held_out.planting import (
    exp,
    one_off,
    product,
    rsqrt,
    sigmoid,
    softmax,
    tanh,
    to_half,
    to_tf32,
    total,
    widened,
)
from studies.corpus.programs.program import (
    APPROXIMATED,
    DROPPED,
    EPSILON,
    HALF,
    LOW,
    OFF_BY_ONE,
    RATIO,
    SWAPPED,
    TABLE,
    TF32,
    Program,
)


def _blocks(w, kind, largest):
    """Return weights as numbers in few bits, with a power of two for each block of 32 along the first axis."""
    blocks = w.reshape(-1, 32, w.shape[-1])
    power = np.exp2(np.ceil(np.log2(np.abs(blocks).max(1) / largest)))
    return (blocks / power[:, None]).astype(kind), power.astype(ml_dtypes.float8_e8m0fnu)


def _groups(w):
    """Return weights as integers of 4 bits, with scale and offset in float16 for 16 at a time along the first axis."""
    groups = w.reshape(-1, 16, w.shape[-1])
    scale = ((groups.max(1) - groups.min(1)) / 15).astype(np.float16)
    offset = (groups.min(1) + 8 * scale).astype(np.float16)
    codes = np.clip(np.round((groups - offset[:, None]) / scale[:, None]), -8, 7)
    return codes.astype(np.int8).astype(ml_dtypes.int4), scale, offset


_FP4, _FP4_POWERS = _blocks(normal(740, 64, 40) / np.float32(8), ml_dtypes.float4_e2m1fn, 6.0)
_FP8, _FP8_POWERS = _blocks(normal(741, 32, 96) / np.float32(6), ml_dtypes.float8_e4m3fn, 448.0)
_INT4, _INT4_SCALES, _INT4_OFFSETS = _groups(normal(742, 48, 64) / np.float32(7))
_INT8 = integers(743, 3, 3, 4, 12, high=255).astype(np.int16).__sub__(127).astype(np.int8)
_INT8_SCALES = uniform(744, 12, low=0.0005, high=0.002).astype(ml_dtypes.bfloat16)
_SIXTEEN = np.array([-1, -0.7, -0.53, -0.4, -0.28, -0.18, -0.09, 0, 0.08, 0.16, 0.25, 0.34, 0.44, 0.56, 0.72, 1], ml_dtypes.bfloat16)  # fmt: skip
_PAIRS = integers(745, 60, 16, high=256).astype(np.uint8)
_PAIR_SCALES, _PAIR_COARSE = integers(746, 60, high=200).astype(np.uint8) + np.uint8(40), np.float16(0.012)
_INDEX = (1.45 + 0.3 * np.exp(-np.arange(48) / 12)).astype(np.float16)
_BANK = (np.hanning(33) * np.cos(np.arange(33) * np.linspace(0.2, 2.6, 9)[:, None])).astype(ml_dtypes.bfloat16)
_MEANS, _PRECISIONS = normal(747, 6, 5).astype(np.float16), (0.4 * normal(748, 6, 5, 5) + np.eye(5)).astype(np.float16)
_GATES_X = (normal(749, 10, 48) / 4).astype(ml_dtypes.bfloat16)
_GATES_H = (normal(750, 16, 48) / 4).astype(ml_dtypes.bfloat16)
_LEVELS = np.sort(normal(751, 64)).astype(ml_dtypes.float8_e5m2)
_SPLINE = normal(752, 20, 6).astype(np.float16)


def mx_float4_layers(x, *, factor=1.0, shift=0, tf32=False, half=False, rough=False):
    """Layers with weights in float4 and a scale in float8_e8m0 for each 32 weights."""
    w = widened(_FP4) * jnp.roll(widened(_FP4_POWERS), shift, axis=0)[:, None]
    w = one_off(w, factor, 1203).reshape(64, 40)
    hidden = to_half(tanh(product(x, w, tf32), rough), half)
    return product(hidden, w.T, tf32)


def mx_float8_attention(x, *, factor=1.0, tf32=False, rough=False, ratio=1.0, half=False):
    """One head of attention, with weights in float8 and a scale in float8_e8m0 for each 32 weights."""
    w = widened(_FP8) * one_off(widened(_FP8_POWERS), factor, 65)[:, None]
    q, k, v = jnp.split(to_half(product(x, w.reshape(32, 96), tf32), half), 3, axis=-1)
    return softmax(ratio * q @ k.T / 6, rough) @ v


def int4_gated_layers(x, *, factor=1.0, offsets=1.0, shift=0, tf32=False, rough=False):
    """A gated layer with weights in 4 bits, and their scales and offsets in float16."""
    scale = jnp.roll(one_off(widened(_INT4_SCALES), factor, 70), shift, axis=0)
    w = widened(_INT4) * scale[:, None] + offsets * widened(_INT4_OFFSETS)[:, None]
    value, gate = jnp.split(product(x, w.reshape(48, 64), tf32), 2, axis=-1)
    return value * gate * sigmoid(gate, rough)


def int8_convolution(image, *, swapped=False, factor=1.0, tf32=False, epsilon=1e-3, stride=0, half=False):
    """A convolution with a kernel in 8 bits and a bfloat16 scale for each channel, then a norm over the pixels."""
    kernel = widened(np.swapaxes(_INT8, 0, 1) if swapped else _INT8) * one_off(widened(_INT8_SCALES), factor, 5)
    image = jnp.roll(image, stride, axis=2)
    dimensions = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(
        to_tf32(image, tf32), to_tf32(kernel, tf32), (2, 2), "SAME", dimension_numbers=dimensions
    )
    y = to_half(y, half)
    return (y - jnp.mean(y, axis=(1, 2), keepdims=True)) / jnp.sqrt(jnp.var(y, axis=(1, 2), keepdims=True) + epsilon)


def words_of_sixteen_levels(tokens, *, factor=1.0, ratio=0.125, swapped=False, tf32=False, rough=False):
    """Word probabilities with a table of 4-bit codes for levels in bfloat16; tokens are the only argument."""
    levels = one_off(widened(_SIXTEEN), factor, 12)
    low, high = levels[(_PAIRS & 15).astype(np.int32)], levels[(_PAIRS >> 4).astype(np.int32)]
    table = jnp.stack([high, low] if swapped else [low, high], axis=-1).reshape(60, 32)
    table = table * (widened(_PAIR_SCALES) * widened(_PAIR_COARSE))[:, None]
    x = table[tokens] + 0.1 * jnp.arange(len(tokens))[:, None] * jnp.cos(jnp.arange(32.0))
    return jnp.log(softmax(ratio * product(x, table.T, tf32), rough))


def light_through_a_tabulated_glass(wave, angle, *, factor=1.0, shift=0, ratio=1.0, rough=False, half=False):
    """How much light of either polarization a glass reflects, whose refractive index is a table in float16."""
    table = jnp.roll(one_off(widened(_INDEX), factor, 20), shift)
    index = to_half(jnp.interp(wave, jnp.linspace(0.3, 1.1, 48) * ratio, table), half)[:, None]
    cosine = jnp.cos(angle)
    square = 1 - (jnp.sin(angle) / index) ** 2
    inside = square * rsqrt(square, True) if rough else jnp.sqrt(square)
    across = (cosine - index * inside) / (cosine + index * inside)
    along = (index * cosine - inside) / (index * cosine + inside)
    return across**2, along**2


def energies_of_a_bfloat16_filter_bank(wave, *, floor=1e-3, tf32=False, factor=1.0, low=False, delay=0):
    """The loudness of a wave in nine bands and pieces of 20 samples, by a filter bank in bfloat16."""
    bank = to_tf32(one_off(widened(_BANK), factor, 150), tf32)
    wave = to_tf32(jnp.roll(wave, delay), tf32)
    out = lax.conv_general_dilated(wave[None, None], bank[:, None], (1,), "VALID")[0]
    power = total(out[:, :340].reshape(9, 17, 20) ** 2, low) / 20
    return 10 * jnp.log10(power + floor)


def half_photograph_toned(image, *, red=0.2126, epsilon=1e-4, white=4.0, rough=False, swapped=False):
    """A photograph in float16 with compressed highlights."""
    image = image.astype(jnp.float32)
    weights = jnp.array([0.0722, 0.7152, red] if swapped else [red, 0.7152, 0.0722])
    light = image @ weights
    mean = exp(jnp.mean(jnp.log(light + epsilon)), rough)
    pressed = 0.18 * light / mean
    pressed = pressed * (1 + pressed / white**2) / (1 + pressed)
    return image * (pressed / (light + epsilon))[..., None], mean


def neighbours_of_bfloat16_vectors(one, two, *, epsilon=1e-5, tf32=False, rough=False, heat=0.07, low=False):
    """Similarities of vectors that are given in bfloat16, and the contrastive loss of the pairs."""

    def unit(x):
        x = x.astype(jnp.float32)
        return x * rsqrt(total(x**2, low)[:, None] + epsilon, rough)

    alike = product(unit(one), unit(two).T, tf32)
    loss = jax.nn.logsumexp(alike / heat, axis=-1) - jnp.diagonal(alike) / heat
    return alike, loss


def float8_gradients_averaged(
    gradients, scales, *, factor=1.0, half=False, largest=1.0, epsilon=1e-6, low=False, shift=0
):
    """The mean of four gradients that are given in float8 with scales, clipped to a largest length, and the length."""
    wide = gradients.astype(jnp.float32) * jnp.roll(one_off(scales, factor, 2), shift)[:, None, None]
    mean = to_half(jnp.mean(wide, axis=0), half)
    length = jnp.sqrt(total(total(mean**2, low), low))
    return mean * jnp.minimum(1.0, largest / (length + epsilon)), length


def mixture_of_half_gaussians(x, *, factor=1.0, tf32=False, dropped=False, rough=False, swapped=False):
    """Log densities of a mixture of Gaussians with parameters in float16, and the share of each component."""
    root = one_off(widened(_PRECISIONS), factor, 31)
    away = x[:, None] - widened(_MEANS)
    turned = jnp.einsum("nki,kij->nkj" if swapped else "nki,kji->nkj", to_tf32(away, tf32), to_tf32(root, tf32))
    volume = 0.0 if dropped else jnp.sum(jnp.log(jnp.abs(jnp.diagonal(root, axis1=1, axis2=2))), axis=-1)
    log = volume - 0.5 * jnp.sum(turned**2, axis=-1) - 2.5 * np.log(2 * np.pi).astype(np.float32)
    return jax.nn.logsumexp(log, axis=-1), softmax(log, rough)


def bfloat16_gated_recurrence(x, *, tf32=False, rough=False, half=False, factor=1.0, swapped=False):
    """25 steps of a GRU with weights in bfloat16."""
    into, again = widened(_GATES_X), one_off(widened(_GATES_H), factor, 300)

    def step(h, x):
        one, two = jnp.split(product(x, into, tf32), 3), jnp.split(product(h, again, tf32), 3)
        keep, forget = sigmoid(one[0] + two[0], rough), sigmoid(one[1] + two[1], rough)
        new = tanh(one[2] + forget * two[2], rough)
        h = (1 - keep) * h + keep * new if swapped else keep * h + (1 - keep) * new
        h = to_half(h, half)
        return h, h

    return lax.scan(step, jnp.zeros(16), x)[1]


def levels_coded_in_float8(codes, *, factor=1.0, ratio=0.9, shift=0, half=False):
    """A wave decoded from the codes of its steps; a float8 table has the size of each step."""
    step = jnp.roll(one_off(widened(_LEVELS), factor, 50), shift)[codes]
    add = lambda y, d: (to_half(ratio * y + d, half),) * 2
    return lax.scan(add, jnp.zeros(codes.shape[1]), step)[1]


def splines_with_half_coefficients(x, *, factor=1.0, shift=0, sixth=6.0, half=False, tf32=False):
    """Values and derivatives of cubic splines with coefficients in float16."""
    place = x * 17
    low = jnp.clip(jnp.floor(place).astype(jnp.int32), 0, 16)
    t = to_half(place - low, half)
    table = one_off(widened(_SPLINE), factor, 55)
    ones = [(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]
    slopes = [-((1 - t) ** 2) / 2, (3 * t**2 - 4 * t) / 2, (-3 * t**2 + 2 * t + 1) / 2, t**2 / 2]
    near = to_tf32(table[low[:, None] + jnp.arange(4) + shift], tf32)
    at = lambda weights: jnp.einsum("np,npc->nc", to_tf32(jnp.stack(weights, axis=-1), tf32), near)
    return at(ones) / sixth, at(slopes) * 17


_GRADIENTS = (4 * normal(770, 4, 12, 10)).astype(ml_dtypes.float8_e5m2)
_VECTORS = normal(767, 14, 48).astype(ml_dtypes.bfloat16)
_NEAR = (_VECTORS.astype(np.float32) + normal(768, 14, 48)).astype(ml_dtypes.bfloat16)

PROGRAMS = (
    Program(mx_float4_layers, (normal(760, 9, 64),), {TABLE: {"factor": 1.05}, OFF_BY_ONE: {"shift": 1}, TF32: {"tf32": True}, HALF: {"half": True}, APPROXIMATED: {"rough": True}}, narrow="beside"),
    Program(mx_float8_attention, (normal(761, 18, 32),), {TABLE: {"factor": 1.1}, TF32: {"tf32": True}, APPROXIMATED: {"rough": True}, RATIO: {"ratio": 1.001}, HALF: {"half": True}}, narrow="beside"),
    Program(int4_gated_layers, (normal(762, 10, 48),), {TABLE: {"factor": 1.01}, DROPPED: {"offsets": 0.0}, OFF_BY_ONE: {"shift": 1}, TF32: {"tf32": True}, APPROXIMATED: {"rough": True}}, narrow="beside"),
    Program(int8_convolution, (normal(763, 2, 12, 12, 4),), {SWAPPED: {"swapped": True}, TABLE: {"factor": 1.1}, TF32: {"tf32": True}, EPSILON: {"epsilon": 0.0}, OFF_BY_ONE: {"stride": 1}, HALF: {"half": True}}, narrow="beside"),
    Program(words_of_sixteen_levels, (integers(764, 18, high=60),), {TABLE: {"factor": 1.01}, RATIO: {"ratio": 0.1375}, SWAPPED: {"swapped": True}, TF32: {"tf32": True}, APPROXIMATED: {"rough": True}}, narrow="beside"),
    Program(light_through_a_tabulated_glass, (uniform(765, 30, low=0.32, high=1.08), uniform(766, 12, low=0.05, high=1.4)), {TABLE: {"factor": 1.001}, OFF_BY_ONE: {"shift": 1}, RATIO: {"ratio": 1.001}, APPROXIMATED: {"rough": True}, HALF: {"half": True}}, narrow="beside"),
    Program(energies_of_a_bfloat16_filter_bank, (np.cos(np.arange(372) ** 1.2).astype(np.float32),), {EPSILON: {"floor": 0.0}, TF32: {"tf32": True}, TABLE: {"factor": 1.1}, LOW: {"low": True}, OFF_BY_ONE: {"delay": 1}}, narrow="beside"),
    Program(half_photograph_toned, (np.exp(normal(769, 14, 14, 3)).astype(np.float16),), {TABLE: {"red": 0.2146}, EPSILON: {"epsilon": 0.0}, RATIO: {"white": 4.4}, APPROXIMATED: {"rough": True}, SWAPPED: {"swapped": True}}, narrow="beside"),
    Program(neighbours_of_bfloat16_vectors, (_VECTORS, _NEAR), {TF32: {"tf32": True}, APPROXIMATED: {"rough": True}, RATIO: {"heat": 0.07007}, LOW: {"low": True}}, narrow="beside"),
    Program(float8_gradients_averaged, (_GRADIENTS, uniform(771, 4, low=0.1, high=0.4)), {TABLE: {"factor": 1.01}, HALF: {"half": True}, RATIO: {"largest": 1.001}, LOW: {"low": True}, OFF_BY_ONE: {"shift": 1}}, narrow="beside"),
    Program(mixture_of_half_gaussians, (normal(772, 40, 5),), {TABLE: {"factor": 1.02}, TF32: {"tf32": True}, DROPPED: {"dropped": True}, APPROXIMATED: {"rough": True}, SWAPPED: {"swapped": True}}, narrow="beside"),
    Program(bfloat16_gated_recurrence, (normal(773, 25, 10),), {TF32: {"tf32": True}, APPROXIMATED: {"rough": True}, HALF: {"half": True}, TABLE: {"factor": 1.1}, SWAPPED: {"swapped": True}}, narrow="beside"),
    Program(levels_coded_in_float8, (integers(774, 120, 3, high=64),), {TABLE: {"factor": 1.1}, RATIO: {"ratio": 0.9009}, OFF_BY_ONE: {"shift": 1}, HALF: {"half": True}}, narrow="beside"),
    Program(splines_with_half_coefficients, (uniform(775, 50),), {TABLE: {"factor": 1.01}, OFF_BY_ONE: {"shift": 1}, RATIO: {"sixth": 6.006}, HALF: {"half": True}, TF32: {"tf32": True}}, narrow="beside"),
)  # fmt: skip
