"""Wide outputs that do not depend on a narrow output beside them, such as a copy, a code, a scale or a mask."""

from __future__ import annotations

import jax
import jax.numpy as jnp
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
    to_half,
    to_tf32,
    total,
)
from studies.corpus.programs.program import (
    APPROXIMATED,
    CONSTANT,
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

_QKV = normal(701, 32, 96) / np.float32(6)
_UP, _DOWN = normal(702, 24, 64) / np.float32(5), normal(703, 64, 24) / np.float32(8)
_BIAS = normal(704, 64) / np.float32(4)
_EDGES = normal(705, 5, 5, 3, 6) / np.float32(8)
_BANDS = np.maximum(0, 1 - np.abs(np.arange(33)[:, None] - 3 * np.arange(1, 11)) / 4).astype(np.float32)
_CLASSES = normal(706, 20, 16) / np.float32(2)
_ANCHORS = np.array([[8, 8, 10, 13], [8, 24, 16, 30], [24, 8, 33, 23], [24, 24, 30, 61], [16, 16, 62, 45]], np.float32)
_DRIFT = np.array([[1, 0.1, 0.005], [0, 1, 0.1], [0, -0.2, 0.95]], np.float32)


def keys_cached_in_bfloat16(x, *, tf32=False, rough=False, ratio=1.0, diagonal=0, swapped=False):
    """Attention with four heads in float32; its keys and values are also returned in bfloat16, as for a cache."""
    q, k, v = jnp.split(product(x, _QKV, tf32), 3, axis=-1)

    def heads(y):
        return y.reshape(len(y), 8, 4).transpose(2, 0, 1) if swapped else y.reshape(len(y), 4, 8).transpose(1, 0, 2)

    scores = ratio / np.sqrt(8).astype(np.float32) * heads(q) @ heads(k).transpose(0, 2, 1)
    scores = jnp.where(jnp.tri(len(x), k=diagonal, dtype=bool), scores, -1e9)
    mixed = softmax(scores, rough) @ heads(v)
    return mixed.transpose(1, 0, 2).reshape(x.shape), k.astype(jnp.bfloat16), v.astype(jnp.bfloat16)


def activation_copied_in_float8(x, *, tf32=False, half=False, approximate=False, factor=1.0, bias=1.0):
    """A layer with a skip connection; its hidden activation is also returned in float8 with a scale."""
    hidden = to_half(jax.nn.gelu(product(x, _UP, tf32) + bias * _BIAS, approximate=approximate), half)
    scale = jnp.max(jnp.abs(hidden)) / 448
    copy = jnp.clip(hidden / scale, -448, 448).astype(jnp.float8_e4m3fn)
    return x + product(hidden, one_off(_DOWN, factor, 777), tf32), copy, scale


def gradient_sent_in_float8(w, x, y, *, tf32=False, low=False, ratio=1.0, decay=0.02, shift=0):
    """The loss of a logistic regression and its gradient, which is also returned in float8, as for sending it."""

    def loss(w):
        away = product(x, w, tf32)
        terms = jax.nn.softplus(away) - jnp.roll(y, shift) * away
        return total(terms, low) / len(y) + ratio * 0.5 * decay * jnp.sum(w**2)

    value, slope = jax.value_and_grad(loss)(w)
    return value, slope, (slope * 1024).astype(jnp.float8_e5m2)


def rows_scaled_with_codes_in_four_bits(x, *, epsilon=1e-6, half=False, rough=False, low=False, shift=0):
    """A norm by the root mean square; the rows are also returned as blocks of float4 with scales in float8_e8m0."""
    square = total(x**2, low)[:, None] / x.shape[-1]
    out = to_half(x * rsqrt(square + epsilon, rough), half) * (1 + jnp.roll(jnp.arange(x.shape[-1]), shift) / 64)
    blocks = x.reshape(len(x), -1, 16)
    scale = jnp.exp2(jnp.floor(jnp.log2(jnp.max(jnp.abs(blocks), axis=-1))) - 2)
    codes = jnp.clip(blocks / scale[..., None], -6, 6)
    halves = 2 * codes.astype(jnp.float4_e2m1fn).astype(jnp.float32)
    return out, halves.astype(jnp.int8), scale.astype(jnp.float8_e8m0fnu)


def moments_with_codes_in_int4(x, *, low=False, freedom=1, epsilon=1e-3, ratio=1.0, lag=1):
    """Mean, deviation, skewness and autocorrelation of rows; the rows are also returned as codes of 4 bits."""
    n = x.shape[-1]
    mean = total(x, low) / n
    away = x - mean[:, None]
    variance = total(away**2) / (n - freedom)
    skewness = ratio * total(away**3) / n / (variance + epsilon) ** 1.5
    correlation = total(away[:, lag:] * away[:, : n - lag]) / (n * (variance + epsilon))
    low_, high = jnp.min(x, axis=-1, keepdims=True), jnp.max(x, axis=-1, keepdims=True)
    codes = jnp.round((x - low_) / (high - low_) * 15 - 8).astype(jnp.int4)
    return jnp.stack([mean, jnp.sqrt(variance), skewness, correlation], axis=-1), codes


def segments_with_a_half_mask(image, *, tf32=False, swapped=False, rough=False, bias=0.2, shift=0):
    """The probabilities of five classes at each pixel, by a convolution; a mask is also returned in float16."""
    kernel = to_tf32(jnp.swapaxes(_EDGES, 0, 1) if swapped else jnp.asarray(_EDGES), tf32)
    image_ = to_tf32(jnp.roll(image, shift, axis=1), tf32)
    conv = lax.conv_general_dilated(image_, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    likely = sigmoid(conv + bias * jnp.arange(6), rough)
    return likely, (jnp.mean(image, axis=-1) > 0).astype(jnp.float16)


def spectrogram_with_a_small_copy(wave, *, floor=1e-4, factor=1.0, edge=0.54, low=False, shift=0):
    """Logarithms of energies in frequency bands; the spectrum is also returned at half its height in bfloat16."""
    at = np.arange(0, wave.shape[-1] - 63, 16)[:, None] + np.arange(64)
    angle = (jnp.arange(64) + shift) * (2 * np.pi / 63)
    frames = wave[at] * (edge - (1 - edge) * jnp.cos(angle))
    power = jnp.abs(jnp.fft.rfft(frames)) ** 2
    bands = total(power[:, None, :] * one_off(_BANDS, factor, 155).T, low)
    return jnp.log(bands + floor), power[:, ::2].astype(jnp.bfloat16)


def losses_with_half_logits(x, labels, *, tf32=False, smooth=0.1, rough=False, half=False, shift=0):
    """The cross entropy of each example with smoothed labels; the logits are also returned in float16."""
    logits = to_half(product(x, _CLASSES, tf32), half)
    largest = jnp.max(logits, axis=-1, keepdims=True)
    log = logits - largest - jnp.log(jnp.sum(exp(logits - largest, rough), axis=-1, keepdims=True))
    target = jax.nn.one_hot((labels + shift) % 16, 16) * (1 - smooth) + smooth / 16
    return -jnp.sum(target * log, axis=-1), log, (x @ _CLASSES).astype(jnp.float16)


def boxes_with_half_scores(offsets, scores, *, rough=False, factor=1.0, swapped=False, ratio=1.0, drop=False):
    """Boxes from offsets to anchors, and the overlap of each pair; the scores are also returned in float16."""
    anchors = one_off(_ANCHORS, factor, 14)
    size = anchors[:, 2:] * exp(jnp.clip(0.3 * offsets[..., 2:], -4, 4), rough)
    centre = anchors[:, :2] + 0.1 * offsets[..., :2] * (anchors[:, :1:-1] if swapped else anchors[:, 2:])
    low, high = (centre - size / 2).reshape(-1, 2), (centre + ratio * size / 2).reshape(-1, 2)
    common = jnp.minimum(high[:, None], high) - jnp.maximum(low[:, None], low)
    common = jnp.prod(jnp.maximum(common, 0), axis=-1)
    area = jnp.prod(high - low, axis=-1)
    union = area[:, None] + area - (0 if drop else common)
    return jnp.concatenate([low, high], axis=-1), common / union, jax.nn.sigmoid(scores).astype(jnp.float16)


def springs_with_a_bfloat16_trail(x, *, stiffness=3.0, half=False, steps=80, bend=0.4, edge=0):
    """Leapfrog steps of a ring of nonlinear springs; the path is also returned in bfloat16."""

    def force(x):
        stretch = jnp.roll(x, -1) - x
        pull = stiffness * (stretch + bend * stretch**3)
        return pull - jnp.roll(pull, 1 + edge)

    def step(state, _):
        x, v = state
        v = v + 0.03 * force(x)
        x = to_half(x + 0.03 * v, half)
        return (x, v), x.astype(jnp.bfloat16)

    (x, v), trail = lax.scan(step, (x, jnp.zeros_like(x)), None, length=steps)
    return x, v, trail


def tracked_with_float16_gains(seen, *, tf32=False, noise=0.3, drift=0.01, swapped=False, half=False):
    """A Kalman filter with three states, one of them observed; its gains are also returned in float16."""
    matrix = to_tf32(jnp.asarray(_DRIFT.T if swapped else _DRIFT), tf32)

    def step(state, value):
        mean, spread = state
        mean, spread = matrix @ to_tf32(mean, tf32), matrix @ to_tf32(spread, tf32) @ matrix.T + drift * jnp.eye(3)
        gain = to_half(spread[:, 0] / (spread[0, 0] + noise), half)
        mean = mean + gain * (value - mean[0])
        return (mean, spread - jnp.outer(gain, spread[0])), (mean, gain.astype(jnp.float16))

    (_, spread), (means, gains) = lax.scan(step, (jnp.zeros(3), jnp.eye(3)), seen)
    return means, spread, gains


def moments_of_adam_in_bfloat16(
    w, slope, first, second, *, epsilon=1e-4, ratio=0.99, corrected=True, step=3, rough=False
):
    """A step of Adam in float32; both moments are also returned in bfloat16."""
    first = 0.9 * first + 0.1 * slope
    second = ratio * second + (1 - ratio) * slope**2
    one, two = (first / (1 - 0.9**step), second / (1 - ratio**step)) if corrected else (first, second)
    change = one * (rsqrt(two + epsilon**2, rough) if rough else 1 / (jnp.sqrt(two) + epsilon))
    return w - 0.1 * change, jnp.sqrt(jnp.sum(change**2)), first.astype(jnp.bfloat16), second.astype(jnp.bfloat16)


def orbit_with_a_single_trail(start, *, gravity=1.0, pull=1.0, steps=120, single=False, ratio=1.0):
    """Two bodies around a heavy one in float64; the path is also returned in float32."""
    masses = jnp.array([1.0, 1e-3, 3e-4])

    def force(x):
        away = x[None] - x[:, None]
        away = lax.reduce_precision(away, 8, 23) if single else away
        square = jnp.sum(away**2, axis=-1) + jnp.eye(3)
        share = jnp.where(jnp.arange(3)[:, None] * jnp.arange(3) > 0, pull, 1.0) * masses
        return gravity * jnp.sum((share * square**-1.5)[..., None] * away, axis=1)

    def step(state, _):
        x, v = state
        v = v + 0.02 * ratio * force(x)
        x = x + 0.02 * v
        return (x, v), x.astype(jnp.float32)

    (x, v), trail = lax.scan(step, (start[0], start[1]), None, length=steps)
    return x, v, trail[::12]


def ridge_with_single_residuals(x, y, *, ridge=1e-3, rounds=12, single=False, shift=0):
    """A ridge regression by conjugate gradients in float64; the residuals are also returned in float32."""
    x_ = lax.reduce_precision(x, 8, 23) if single else x
    square = lambda w: x_.T @ (x_ @ w) / len(y) + ridge * w

    def step(_, state):
        w, rest, way = state
        turned = square(way)
        length = rest @ rest / (way @ turned)
        after = rest - length * turned
        return w + length * way, after, after + after @ after / (rest @ rest) * way

    right = x_.T @ jnp.roll(y, shift) / len(y)
    w = lax.fori_loop(0, rounds, step, (jnp.zeros_like(right), right, right))[0]
    return w, (y - x @ w).astype(jnp.float32)


def prices_with_single_slopes(strikes, *, rate=0.03, factor=1.0, half=0.5, rough=False, single=False):
    """Option prices in float64; their derivatives in the price of the share are also returned in float32."""
    volatility = one_off(0.2 + 0.05 * jnp.cos(jnp.arange(strikes.shape[0], dtype=jnp.float64)), factor, 4)[:, None]
    time = jnp.linspace(0.1, 2.0, strikes.shape[1])
    root = volatility * jnp.sqrt(time)
    root = lax.reduce_precision(root, 8, 23) if single else root
    one = (jnp.log(100 / strikes) + rate * time) / root + half * root
    below = lambda z: sigmoid(1.5976 * z + 0.070565992 * z**3) if rough else 0.5 * lax.erfc(-z / np.sqrt(2))
    price = 100 * below(one) - strikes * jnp.exp(-rate * time) * below(one - root)
    return price, below(jnp.log(100 / strikes) / root).astype(jnp.float32)


def _planets():
    """Return the positions and the velocities of three bodies."""
    x = np.array([[0, 0, 0], [1, 0, 0.1], [0, 1.7, 0]], np.float64)
    v = np.array([[0, 0, 0], [0, 1, 0], [-0.76, 0.05, 0.02]], np.float64)
    return np.stack([x, v])


_ADAM = (
    normal(730, 40),
    normal(731, 40) / np.float32(8),
    normal(732, 40) / np.float32(20),
    uniform(733, 40) / np.float32(400),
)

PROGRAMS = (
    Program(keys_cached_in_bfloat16, (normal(710, 20, 32),), {TF32: {"tf32": True}, APPROXIMATED: {"rough": True}, RATIO: {"ratio": 1.001}, OFF_BY_ONE: {"diagonal": 1}, SWAPPED: {"swapped": True}}, narrow="beside"),
    Program(activation_copied_in_float8, (normal(711, 10, 24),), {TF32: {"tf32": True}, HALF: {"half": True}, APPROXIMATED: {"approximate": True}, TABLE: {"factor": 1.01}, DROPPED: {"bias": 0.0}}, narrow="beside"),
    Program(gradient_sent_in_float8, (normal(712, 16), normal(713, 60, 16), integers(714, 60, high=2).astype(np.float32)), {TF32: {"tf32": True}, LOW: {"low": True}, RATIO: {"ratio": 1.1}, DROPPED: {"decay": 0.0}, OFF_BY_ONE: {"shift": 1}}, narrow="beside"),
    Program(rows_scaled_with_codes_in_four_bits, (normal(715, 12, 64) * np.logspace(-3, 1, 12, dtype=np.float32)[:, None],), {EPSILON: {"epsilon": 0.0}, HALF: {"half": True}, APPROXIMATED: {"rough": True}, LOW: {"low": True}, OFF_BY_ONE: {"shift": 1}}, narrow="beside"),
    Program(moments_with_codes_in_int4, (normal(716, 14, 80) ** 2,), {LOW: {"low": True}, DROPPED: {"freedom": 0}, EPSILON: {"epsilon": 0.0}, RATIO: {"ratio": 1.001}, OFF_BY_ONE: {"lag": 2}}, narrow="beside"),
    Program(segments_with_a_half_mask, (normal(717, 1, 12, 12, 3),), {TF32: {"tf32": True}, SWAPPED: {"swapped": True}, APPROXIMATED: {"rough": True}, DROPPED: {"bias": 0.0}, OFF_BY_ONE: {"shift": 1}}, narrow="beside"),
    Program(spectrogram_with_a_small_copy, (np.sin(np.arange(400) ** 1.4).astype(np.float32) + normal(718, 400) / np.float32(50),), {EPSILON: {"floor": 0.0}, TABLE: {"factor": 1.03}, RATIO: {"edge": 0.541}, LOW: {"low": True}, OFF_BY_ONE: {"shift": 1}}, narrow="beside"),
    Program(losses_with_half_logits, (normal(719, 30, 20), integers(720, 30, high=16)), {TF32: {"tf32": True}, RATIO: {"smooth": 0.11}, APPROXIMATED: {"rough": True}, HALF: {"half": True}, OFF_BY_ONE: {"shift": 1}}, narrow="beside"),
    Program(boxes_with_half_scores, (normal(721, 4, 5, 4), normal(722, 4, 5)), {APPROXIMATED: {"rough": True}, TABLE: {"factor": 1.02}, SWAPPED: {"swapped": True}, RATIO: {"ratio": 1.1}, DROPPED: {"drop": True}}, narrow="beside"),
    Program(springs_with_a_bfloat16_trail, (normal(723, 24),), {RATIO: {"stiffness": 3.003}, HALF: {"half": True}, OFF_BY_ONE: {"steps": 79}, DROPPED: {"bend": 0.0}}, narrow="beside"),
    Program(tracked_with_float16_gains, (np.cumsum(normal(724, 40)).astype(np.float32) / np.float32(4),), {TF32: {"tf32": True}, RATIO: {"noise": 0.33}, DROPPED: {"drift": 0.0}, SWAPPED: {"swapped": True}, HALF: {"half": True}}, narrow="beside"),
    Program(moments_of_adam_in_bfloat16, _ADAM, {EPSILON: {"epsilon": 0.0}, RATIO: {"ratio": 0.989}, DROPPED: {"corrected": False}, OFF_BY_ONE: {"step": 4}, APPROXIMATED: {"rough": True}}, narrow="beside"),
    Program(orbit_with_a_single_trail, (_planets(),), {CONSTANT: {"gravity": 1.000001}, DROPPED: {"pull": 0.0}, OFF_BY_ONE: {"steps": 119}, LOW: {"single": True}, RATIO: {"ratio": 1.001}}, x64=True, narrow="beside"),
    Program(ridge_with_single_residuals, (normal(725, 50, 20, dtype=np.float64), normal(726, 50, dtype=np.float64)), {EPSILON: {"ridge": 0.0}, OFF_BY_ONE: {"shift": 1}, LOW: {"single": True}, RATIO: {"ridge": 1.1e-3}, DROPPED: {"rounds": 11}}, x64=True, narrow="beside"),
    Program(prices_with_single_slopes, (uniform(727, 8, 10, low=80, high=125, dtype=np.float64),), {RATIO: {"rate": 0.033}, TABLE: {"factor": 1.001}, DROPPED: {"half": 0.0}, APPROXIMATED: {"rough": True}, LOW: {"single": True}}, x64=True, narrow="beside"),
)  # fmt: skip
