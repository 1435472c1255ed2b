"""Programs on integers with stored matrices, in which exact terms cancel; the rule of terms was chosen by them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal
from studies.corpus.programs.planted.held_out.whole_numbers import EXACT, with_bits, with_entry
from studies.corpus.programs.program import CONSTANT, OFF_BY_ONE, RATIO, SWAPPED, TABLE, TF32, Program

_YUV = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], np.float32)
_OPPONENTS = np.array([[0.595716, -0.274453, -0.321263], [0.211456, -0.522591, 0.311135]], np.float32)
_GREY = np.repeat(np.arange(0, 250, 5), 3).reshape(50, 3).astype(np.uint8)
_PINV = np.linalg.pinv(np.vander(np.arange(12.0), 5)).astype(np.float32)
_COUNTS = (4000 + np.arange(240).reshape(20, 12) % 7).astype(np.int32)
_NODES = np.cos(np.pi * np.arange(17) / 16)


def _chebyshev(size: int) -> np.ndarray:
    """Return the matrix that differentiates a polynomial given by its values at Chebyshev points."""
    x = np.cos(np.pi * np.arange(size) / (size - 1))
    c = np.r_[2, np.ones(size - 2), 2] * (-1) ** np.arange(size)
    d = np.outer(c, 1 / c) / (x[:, None] - x[None] + np.eye(size))
    return (d - np.diag(d.sum(1))).astype(np.float32)


_CHEBYSHEV = _chebyshev(17)
_FOURIER = np.exp(-2j * np.pi * np.outer(np.arange(64), np.arange(64)) / 64).astype(np.complex64)
_SCALE = np.abs(normal(811, 24)) / np.float32(100)
_QUANTISED = integers(812, 48, 24, high=255).astype(np.uint8)


def tf32(x):
    """Round operands to the ten bits of mantissa of TF32."""
    return lax.reduce_precision(x, 8, 10)


def grey_chroma(rgb, *, ratio=1.0, low=False):
    w = tf32(_YUV) if low else _YUV
    return ratio * rgb.astype(jnp.float32) @ w.T


def fitted_counts(counts, *, low=False, entry=1.0):
    p = jnp.asarray(_PINV).at[1, 3].multiply(entry)
    return counts.astype(jnp.float32) @ (tf32(p) if low else p).T


def chebyshev_slope(values, *, low=False, entry=1.0):
    """The derivatives of a constant and of integers by a stored Chebyshev matrix."""
    d = jnp.asarray(_CHEBYSHEV).at[3, 4].multiply(entry)
    return (tf32(d) if low else d) @ values.astype(jnp.float32)


def tone_spectrum(samples, *, ratio=1.0):
    """The spectrum of integer tones by a stored Fourier matrix; all but a few lines cancel."""
    return jnp.abs(_FOURIER @ (ratio * samples.astype(jnp.float32)))


def fft_of_tones(samples, *, shift=0):
    return jnp.fft.fft(jnp.roll(samples, shift, axis=-1).astype(jnp.float32))


def zero_point_layer(x, *, zero=128.0, entry=1.0):
    """A layer with quantized weights; their zero point is subtracted after the product."""
    w = _QUANTISED.astype(np.float32)
    total = x.astype(jnp.float32) @ jnp.asarray(w).at[5, 6].multiply(entry)
    return (total - zero * jnp.sum(x.astype(jnp.float32), axis=-1, keepdims=True)) * _SCALE


def detrended_counts(counts, *, factor=1.0):
    """The residuals of counts after a fitted straight line is subtracted."""
    y = counts.astype(jnp.float32)
    t = jnp.arange(y.shape[-1], dtype=jnp.float32)
    t = (t - t.mean()) / 10
    slope = jnp.sum(y * t, axis=-1, keepdims=True) / jnp.sum(t * t)
    return y - y.mean(axis=-1, keepdims=True) - factor * slope * t


_WEIGHTS = normal(815, 96) - normal(815, 96).mean()


def weighted_counts(counts, *, shift=0, ratio=1.0):
    """A sum of nearly equal counts with weights that sum to zero."""
    return jnp.sum(ratio * jnp.roll(_WEIGHTS, shift) * counts.astype(jnp.float32), axis=-1)


_TABLE = normal(816, 40, 12) / np.linalg.norm(normal(816, 40, 12), axis=1, keepdims=True)


def unit_distances(ids, *, offset=0):
    """The distances of unit vectors as the root of 2 - 2ab, including the distance of each to itself."""
    a = jnp.asarray(_TABLE)[(ids + offset) % 40]
    return jnp.sqrt(jnp.maximum(2 - 2 * jnp.sum(a * _TABLE[: len(ids)], axis=-1), 0.0))


def phase_of_power(values, *, ratio=1.0):
    """The angle of a number times its conjugate, negated: it is π where the product is exactly real."""
    z = (values.astype(jnp.float32) + 0.3) * (1 + 0.7j)
    return jnp.angle(-ratio * z * jnp.conj(z) + 0.0)


def complex_products(values, *, ratio=1.0):
    z = jnp.exp(1j * values.astype(jnp.float32) / 7)
    w = jnp.conj(z) * (2 * ratio)
    return jnp.real(z * w), jnp.imag(z * w)


def segment_means(ids, counts, *, shift=0):
    """The means of groups, and the cumulated deviations from the mean, which end in rounding errors."""
    w = jnp.asarray(normal(818, 60))
    y = w[counts % 60]
    ids = (ids + shift) % 8
    total = jax.ops.segment_sum(y, ids, 8)
    return total, jnp.cumsum(y - y.mean())


def zero_sum_filter(image, *, entry=1.0):
    """A Laplacian of a Gaussian, whose entries sum to zero, on an image of bytes that is partly flat."""
    x = np.arange(-3, 4)
    r = x[:, None] ** 2 + x[None] ** 2
    k = (r / 2 - 1) * np.exp(-r / 2)
    k = jnp.asarray((k - k.mean()).astype(np.float32)).at[3, 3].multiply(entry)
    return lax.conv(image.astype(jnp.float32)[None, None], k[None, None], (1, 1), "SAME")[0, 0]


def rolling_mean_difference(counts, *, width=8, shift=0):
    """Running means by differences of cumulative sums."""
    y = jnp.roll(counts, shift, axis=-1).astype(jnp.float32) * np.float32(0.1)
    total = jnp.cumsum(jnp.pad(y, ((0, 0), (1, 0))), axis=-1)
    return (total[:, width:] - total[:, :-width]) / width


def chroma_of_grey_pixels(image, *, entry=1.0, bits=EXACT, flip=False, white=255.0):
    """The chroma of an image, by a matrix with rows that sum to zero, and its magnitude; the image is grey but for a corner."""
    matrix = with_entry(_OPPONENTS, entry)
    x = image.astype(jnp.float32) / white
    chroma = with_bits(x, bits) @ with_bits(jnp.asarray(matrix[:, ::-1] if flip else matrix).T, bits)
    return chroma, jnp.sqrt(jnp.sum(chroma**2, axis=-1))


def _nearly_grey():
    image = np.repeat(integers(1811, 18, 18, 1, high=256), 3, axis=-1)
    image[13:, 13:] = integers(1812, 5, 5, 3, high=256)
    return image.astype(np.uint8)


_STEPS = np.kron(integers(820, 6, 6, high=256), np.ones((6, 6))).astype(np.uint8)
_TONE = np.round(100 * np.cos(2 * np.pi * np.outer([4, 8, 16], np.arange(64)) / 64)).astype(np.int32)

PROGRAMS = (
    Program(chroma_of_grey_pixels, (_nearly_grey(),), {TABLE: {"entry": 1.001}, SWAPPED: {"flip": True}, RATIO: {"white": 256.0}, TF32: {"bits": 10}}),
    Program(grey_chroma, (_GREY,), {RATIO: {"ratio": 1.001}, TF32: {"low": True}}),
    Program(fitted_counts, (_COUNTS,), {TF32: {"low": True}, TABLE: {"entry": 1.01}}),
    Program(chebyshev_slope, (integers(810, 17, 5, high=20) * np.arange(5, dtype=np.int32),), {TF32: {"low": True}, TABLE: {"entry": 1.001}}),
    Program(tone_spectrum, (_TONE.T,), {RATIO: {"ratio": 1.001}}),
    Program(fft_of_tones, (_TONE,), {OFF_BY_ONE: {"shift": 1}}),
    Program(zero_point_layer, (integers(813, 16, 48, high=256).astype(np.uint8),), {CONSTANT: {"zero": 127.99}, TABLE: {"entry": 1.01}}),
    Program(detrended_counts, (3 * np.arange(80, dtype=np.int32).reshape(1, 80) + integers(814, 4, 80, high=3) + np.int32([[9000], [100], [5000], [70000]]),), {RATIO: {"factor": 1.001}}),
    Program(weighted_counts, (1000 + integers(817, 6, 96, high=2),), {OFF_BY_ONE: {"shift": 1}, RATIO: {"ratio": 1.01}}),
    Program(unit_distances, (np.arange(40, dtype=np.int32),), {OFF_BY_ONE: {"offset": 1}}),
    Program(phase_of_power, (integers(819, 30, high=50),), {}),
    Program(complex_products, (integers(819, 30, high=50),), {RATIO: {"ratio": 1.001}}),
    Program(segment_means, (integers(821, 200, high=8), integers(822, 200, high=1000)), {OFF_BY_ONE: {"shift": 1}}),
    Program(zero_sum_filter, (_STEPS,), {TABLE: {"entry": 1.01}}),
    Program(rolling_mean_difference, (100 + integers(823, 3, 60, high=4),), {OFF_BY_ONE: {"shift": 1}}),
)  # fmt: skip
