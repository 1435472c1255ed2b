"""Programs whose arguments are all integers; in half of them, sums cancel that are zero in exact arithmetic."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal
from studies.corpus.programs.program import (
    APPROXIMATED,
    BF16,
    CONSTANT,
    DROPPED,
    HALF,
    LOW,
    OFF_BY_ONE,
    RATIO,
    SWAPPED,
    TABLE,
    TF32,
    Program,
)

EXACT = 23
"""Bits of the mantissa of float32."""


def with_bits(x, bits):
    """Return numbers rounded to so many bits of mantissa: TF32 has 10, bfloat16 has 7."""
    return x if bits == EXACT else lax.reduce_precision(x, 8, bits)


def through_half(x, half):
    """Return numbers rounded to float16 if `half`, else unchanged."""
    return lax.reduce_precision(x, 5, 10) if half else x


def with_entry(table, entry):
    """Return a table in which the largest number is multiplied by `entry`."""
    if entry == 1:
        return table
    table = table.copy()
    table.flat[np.abs(table).argmax()] *= entry
    return table


def rippled(values, x, ripple):
    """Return values of a function at x with a relative error that ripples, as an approximation by a polynomial has."""
    return values * (1 + ripple * jnp.sin(5 * x + 1)) if ripple else values


_WAVES = normal(1700, 8) * np.float32(3)
_WORDS = normal(1701, 64, 12) / np.float32(3)
_EFFECTS = (normal(1702, 3, 5) / np.float32(4)).astype(np.float32)
_QUANTIZED = (integers(1703, 48, 24, high=255) - 127).astype(np.int8)
_STEPS = (0.002 + 0.001 * np.random.RandomState(1704).rand(24)).astype(np.float32)
_SECOND = normal(1705, 24, 10) / np.float32(3)
_THERMISTOR = np.array([1.129148e-3, 2.34125e-4, 8.76741e-8], np.float32)
_KERNELS = ((integers(1706, 3, 3, 3, 6, high=255) - 127) * 0.0037).astype(np.float32)
_TENT = (1 / (1 + np.abs(np.arange(64) - 31.5))).astype(np.float32)
_SIGNS = (1 - 2 * (np.arange(64) % 2)).astype(np.float32)
_EXPANDED = (np.poly([1, 2, 3, 5, 8, 13]) / 7).astype(np.float32)


def calendar_waves(seconds, *, day=86400.0, first=4, bits=EXACT, ripple=0.0):
    """Unix times as waves of the day and the week, and their product with stored weights."""
    share = (seconds % 86400).astype(jnp.float32) / day
    week = ((seconds // 86400 + first) % 7 + share) / 7
    angles = 2 * np.pi * jnp.stack([share, 2 * share, 3 * share, week], axis=-1)
    waves = rippled(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1), jnp.tile(angles, 2), ripple)
    return waves, with_bits(waves, bits) @ with_bits(jnp.asarray(_WAVES), bits)


def hashed_trigrams(text, *, gap=1, entry=1.0, bits=EXACT, ripple=0.0):
    """A classification of texts by counts of three neighbouring bytes, hashed into 64 buckets."""
    code = text.astype(jnp.uint32)
    three = code[:, : -2 * gap] * 961 + code[:, gap:-gap] * 31 + code[:, 2 * gap :]
    buckets = (three * jnp.uint32(2654435761)) >> 26
    counts = jnp.sum(jax.nn.one_hot(buckets.astype(jnp.int32), 64), axis=1)
    x = rippled(jnp.log1p(counts), counts, ripple)
    x = x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True) + 1e-6)
    return jax.nn.sigmoid(with_bits(x, bits) @ with_bits(jnp.asarray(with_entry(_WORDS, entry)), bits))


def tf_idf_cosines(counts, *, smooth=1.0, extra=1.0, bits=EXACT):
    """Cosine similarities of documents, by weighted counts of terms."""
    found = jnp.sum(counts > 0, axis=0).astype(jnp.float32)
    rarity = jnp.log((extra + counts.shape[0]) / (extra + found)) + smooth
    x = counts.astype(jnp.float32) * rarity
    x = x / jnp.linalg.norm(x, axis=-1, keepdims=True)
    return jnp.einsum("it,jt->ij", with_bits(x, bits), with_bits(x, bits))


def poisson_deviance(counts, codes, *, entry=1.0, gamma=1.0, shift=1.0, ripple=0.0):
    """A Poisson regression of counts on three categories: likelihood, gradient and deviance residuals."""

    def likelihood(effects):
        score = 1.1 + jnp.sum(effects[jnp.arange(3), codes], axis=-1)
        rate = rippled(jnp.exp(score), score, ripple)
        y = counts.astype(jnp.float32)
        return jnp.mean(y * jnp.log(rate) - rate - gamma * lax.lgamma(y + shift)), (y, rate)

    (value, (y, rate)), slope = jax.value_and_grad(likelihood, has_aux=True)(jnp.asarray(with_entry(_EFFECTS, entry)))
    unit = jax.scipy.special.xlogy(y, y / rate) - (y - rate)
    return value, slope, jnp.sign(y - rate) * jnp.sqrt(jnp.maximum(2 * unit, 0))


def shrunken_item_means(items, stars, *, prior=5.0, shift=0, dtype=np.float32):
    """Mean ratings of items, shrunken towards the mean of all, and the spread of each item's ratings."""
    x = stars.astype(jnp.float32) / 10
    count = jnp.bincount(items, length=20).astype(jnp.float32)
    total = jax.ops.segment_sum(x.astype(dtype), (items + shift) % 20, num_segments=20).astype(jnp.float32)
    means = (total + prior * jnp.mean(x)) / (count + prior)
    left = x - means[items]
    spread = jax.ops.segment_sum(left * left, items, num_segments=20)
    return means, jnp.sqrt(spread / jnp.maximum(count - 1, 1))


def bigram_backoff(ids, *, discount=0.75, first=1, ripple=0.0):
    """Probabilities of word pairs with discounting and backoff, and the surprise at each word."""
    pairs = jnp.zeros((24, 24)).at[ids[:-1], ids[1:]].add(1.0)
    single = jnp.bincount(ids[first:], length=24).astype(jnp.float32)
    total = jnp.maximum(jnp.sum(pairs, axis=-1, keepdims=True), 1)
    rest = discount * jnp.sum(pairs > 0, axis=-1, keepdims=True) / total
    p = jnp.maximum(pairs - discount, 0) / total + rest * (single + 0.5) / jnp.sum(single + 0.5)
    surprise = -rippled(jnp.log(p[ids[:-1], ids[1:]]), p[ids[:-1], ids[1:]], ripple)
    return surprise, jnp.exp(jnp.mean(surprise))


def zero_point_dense(q, *, zero=-5, bias=0.1, entry=1.0, bits=EXACT, ripple=0.0):
    """A quantized layer of bytes with a zero point, computed in integers, then a layer in floats."""
    products = lax.dot(q, _QUANTIZED, preferred_element_type=jnp.int32)
    products = products - zero * jnp.sum(_QUANTIZED.astype(np.int32), axis=0)
    x = products.astype(jnp.float32) * 0.011 * with_entry(_STEPS, entry) + bias
    x = x * rippled(jax.nn.sigmoid(x), x, ripple)
    return jax.nn.log_softmax(with_bits(x, bits) @ with_bits(jnp.asarray(_SECOND), bits))


def thermistor_counts(counts, *, full=4095.0, entry=1.0, half=False, ripple=0.0):
    """Degrees Celsius from counts of a 12-bit converter at a thermistor, and their running mean."""
    x = counts.astype(jnp.float32)
    kiloohms = through_half(10 * x / (full - x), half)
    log = rippled(jnp.log(1000 * kiloohms), kiloohms / 10, ripple)
    a, b, c = with_entry(_THERMISTOR, entry)
    degrees = 1 / (a + b * log + c * log**3) - 273.15
    slow, _ = lax.scan(lambda mean, now: (mean + 0.1 * (now - mean), None), degrees[0], degrees)
    return degrees, slow


def mutual_information_of_bytes(one, two, *, shift=0, pixels=1.0, ripple=0.0):
    """The mutual information of two images of bytes, from their joint histogram of 12 by 12."""
    bins = lambda image: jax.nn.one_hot(image.ravel().astype(jnp.int32) * 12 // 256, 12)
    p = jnp.einsum("pi,pj->ij", bins(one), bins(jnp.roll(two, shift, axis=1))) / (pixels * one.size)

    def entropy(p):
        safe = jnp.where(p > 0, p, 1.0)
        return -jnp.sum(p * rippled(jnp.log(safe), safe, ripple))

    first, second, both = entropy(jnp.sum(p, axis=1)), entropy(jnp.sum(p, axis=0)), entropy(p)
    return jnp.stack([first, second, both, first + second - both, (first + second) / both])


def flat_integral_boxes(image, *, size=5, white=255.0, bits=EXACT):
    """Means and variances of boxes by an integral image; they are exactly zero where the image is flat."""
    x = image.astype(jnp.float32) / white

    def mean(x):
        total = with_bits(jnp.pad(jnp.cumsum(jnp.cumsum(x, axis=0), axis=1), ((1, 0), (1, 0))), bits)
        n = x.shape[0] - 4
        ends = total[size : size + n, size : size + n] + total[:n, :n]
        return (ends - total[:n, size : size + n] - total[size : size + n, :n]) / 25

    middle = mean(x)
    return middle - x[2:-2, 2:-2], mean(x * x) - middle**2


def rolling_sums_of_a_cycle(counts, *, window=7, unit=0.1, bits=EXACT):
    """Sums over seven days from running totals, less the mean week; they are zero for counts that repeat weekly."""
    x = counts.astype(jnp.float32) * unit
    total = with_bits(jnp.pad(jnp.cumsum(x, axis=-1), ((0, 0), (1, 0))), bits)
    weeks = total[:, window:] - total[:, :-window]
    return weeks[:, : counts.shape[1] - 7] - 0.7 * jnp.mean(counts.astype(jnp.float32), axis=-1, keepdims=True)


def squared_distances_of_twins(points, *, double=2.0, bits=EXACT):
    """Squared distances by squares and products; many of the points coincide."""
    x = points.astype(jnp.float32) * 0.1
    square = jnp.sum(x * x, axis=-1)
    squared = square[:, None] + square - double * (with_bits(x, bits) @ with_bits(x, bits).T)
    return squared, jnp.exp(-0.5 * squared)


def distances_of_twins(codes, *, entry=1.0, bits=EXACT):
    """Distances between rows of a stored table, many of which are chosen twice, by squares and products."""
    x = jnp.asarray(with_entry(_WORDS[:34], entry))[codes]
    y = jnp.asarray(_WORDS)[codes[:12]]
    products = jnp.einsum("ik,jk->ij", with_bits(x, bits), with_bits(y, bits))
    return jnp.sqrt(jnp.maximum(jnp.sum(x * x, axis=-1)[:, None] + jnp.sum(y * y, axis=-1) - 2 * products, 0))


def leftovers_of_proportional_counts(counts, *, fewer=1, centre=1.0, bits=EXACT):
    """Correlations, and residuals of lines through the first column; three columns are proportional to it."""
    x = counts.astype(jnp.float32) / 7
    x = x - jnp.mean(x, axis=0) * centre
    covariance = with_bits(x, bits).T @ with_bits(x, bits) / (len(counts) - 1)
    variance = jnp.sum(x * x, axis=0) / (len(counts) - fewer)
    spread = jnp.sqrt(variance)
    slopes = covariance[0, 1:] / variance[0]
    return covariance / spread[:, None] / spread, x[:, 1:] - x[:, :1] * slopes


def balanced_counts_as_shares(counts, *, classes=12, scale=0.3, ripple=0.0):
    """Log-softmax less that of equal probabilities, which is exactly zero for rows with equal counts."""
    x = counts.astype(jnp.float32) * scale
    top = jnp.max(x, axis=-1, keepdims=True)
    powers = rippled(jnp.exp(x - top), x - top, ripple)
    share = powers / jnp.sum(powers, axis=-1, keepdims=True)
    log = jnp.log(share) + np.float32(np.log(classes))
    spare = jax.nn.logsumexp(x, axis=-1) - top[:, 0] - np.float32(np.log(classes))
    return log, jnp.sum(share * log, axis=-1), spare


def zero_point_patches(q, *, zero=117, entry=1.0, bits=EXACT):
    """A convolution of bytes, from which that of the zero point is subtracted; parts of the image equal that point."""
    kernels = jnp.asarray(with_entry(_KERNELS, entry))
    x = q.astype(jnp.float32) * 0.021
    y = lax.conv_general_dilated(
        with_bits(x, bits), with_bits(kernels, bits), (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    y = y - zero * 0.021 * jnp.sum(kernels, axis=(0, 1, 2))
    return y, jax.nn.hard_swish(y)


def mirrored_checksums(data, *, shift=0, entry=1.0, bits=EXACT):
    """Alternating sums in three ways, which are exactly zero for rows that read the same backwards."""
    x = jnp.roll(data, shift, axis=-1).astype(jnp.float32) / 255
    weights = with_bits(jnp.asarray(with_entry(_TENT, entry)), bits)
    return jnp.sum(x * _SIGNS * weights, axis=-1), (x * weights) @ _SIGNS, jnp.cumsum(x * _SIGNS, axis=-1)[:, -1]


def expanded_polynomial_at_roots(numbers, *, entry=1.0, bits=EXACT, shift=0, last=1.0):
    """A polynomial of degree six at integers, six of which are its roots, by Horner's scheme and by powers."""
    x = (numbers + shift).astype(jnp.float32)
    terms = with_bits(jnp.asarray(with_entry(_EXPANDED, entry)), bits) * jnp.array([1.0] * 6 + [last])
    return jnp.polyval(terms, x), jnp.sum(terms * x[:, None] ** jnp.arange(6, -1, -1), axis=-1)


def near_half_turns(real, imaginary, *, flip=False, half=False, ripple=0.0):
    """The phase from each sample to the next for 16-bit radio samples: all are close to half a turn, none is at it."""
    real, imaginary = (imaginary, real) if flip else (real, imaginary)
    z = through_half(real * np.float32(0.37), half) + 1j * through_half(imaginary * np.float32(0.37), half)
    turn = z[1:] * jnp.conj(z[:-1])
    return rippled(jnp.angle(turn), turn.imag / 1e6, ripple), turn / jnp.abs(turn)


def exact_half_turns(real, imaginary, *, sign=-1.0, full=127.0, ripple=0.0):
    """The angle between opposite samples: it is half a turn, and a last bit decides its sign."""
    wave = jnp.exp(0.3j * jnp.arange(len(real)))
    z = (real + 1j * imaginary) / full
    turn = z * wave * jnp.conj(sign * z * wave)
    return turn, rippled(jnp.abs(turn), turn.real, ripple), jnp.angle(turn)


def _partly_flat():
    image = integers(1720, 20, 20, high=256)
    image[:11, :12] = 77
    image[12:, 5:] = 201
    return image.astype(np.uint8)


def _cycles():
    weeks = np.tile(integers(1721, 5, 7, high=1000), (1, 30))
    weeks[4, 100:] += integers(1722, 110, high=9)
    return weeks.astype(np.int32)


def _twins():
    points = integers(1723, 16, 6, high=200) - 100
    return np.concatenate([points, points[::2], points[:8] + np.eye(8, 6, dtype=np.int32)]).astype(np.int16)


def _proportional():
    one, other = integers(1724, 60, high=500), integers(1725, 60, high=500)
    return np.stack([one, 3 * one, 1000 - one, 11 * one + 90, other], axis=1).astype(np.int32)


def _balanced():
    counts = integers(1726, 14, 12, high=20)
    counts[::2] = counts[::2, :1]
    counts[1] = np.arange(12) % 2 * 40
    return counts.astype(np.uint8)


def _at_zero_point():
    q = integers(1727, 2, 10, 10, 3, high=256)
    q[0, :7] = q[1, :, 5:] = 117
    return q.astype(np.uint8)


def _mirrored():
    left = integers(1728, 10, 32, high=256)
    data = np.concatenate([left, left[:, ::-1]], axis=1)
    data[8:] = integers(1729, 2, 64, high=256)
    return data.astype(np.uint8)


def _turning():
    flips = (-1) ** np.arange(60) * np.exp(0.003j * np.arange(60) ** 1.5)
    return np.round(21000 * flips.real).astype(np.int16), np.round(21000 * flips.imag).astype(np.int16)


_SECONDS = (1_600_000_000 + integers(1730, 40, high=90_000_000)).astype(np.int32)
_TEXT = (97 + (26 * np.random.RandomState(1731).rand(16, 60) ** 2)).astype(np.uint8)
_TERMS = np.random.RandomState(1732).poisson(0.6, (14, 60)).astype(np.int32)
_STARS = integers(1734, 3000, high=101).astype(np.uint8)
_SHAPES = integers(1738, 24, 24, high=256).astype(np.uint8)
_OTHER = ((3 * _SHAPES.astype(int) + integers(1739, 24, 24, high=256)) // 4).astype(np.uint8)
_PLACES = np.concatenate([np.arange(12), np.arange(12), np.arange(18, 34)]).astype(np.int32)

PROGRAMS = (
    Program(calendar_waves, (_SECONDS,), {RATIO: {"day": 86500.0}, OFF_BY_ONE: {"first": 5}, TF32: {"bits": 10}, APPROXIMATED: {"ripple": 3e-4}}),
    Program(hashed_trigrams, (_TEXT,), {OFF_BY_ONE: {"gap": 2}, TABLE: {"entry": 1.01}, TF32: {"bits": 10}, BF16: {"bits": 7}, APPROXIMATED: {"ripple": 1e-3}}),
    Program(tf_idf_cosines, (_TERMS,), {DROPPED: {"smooth": 0.0}, OFF_BY_ONE: {"extra": 0.0}, TF32: {"bits": 10}}),
    Program(poisson_deviance, (np.random.RandomState(1733).poisson(3.0, 50).astype(np.int32), integers(1735, 50, 3, high=5)), {TABLE: {"entry": 1.01}, DROPPED: {"gamma": 0.0}, OFF_BY_ONE: {"shift": 2.0}, APPROXIMATED: {"ripple": 1e-3}}),
    Program(shrunken_item_means, (integers(1736, 3000, high=20), _STARS), {DROPPED: {"prior": 0.0}, OFF_BY_ONE: {"shift": 1}, LOW: {"dtype": jnp.bfloat16}}),
    Program(bigram_backoff, (integers(1737, 400, high=24),), {RATIO: {"discount": 0.76}, OFF_BY_ONE: {"first": 0}, APPROXIMATED: {"ripple": 3e-4}}),
    Program(zero_point_dense, ((integers(1740, 16, 48, high=256) - 128).astype(np.int8),), {OFF_BY_ONE: {"zero": -4}, DROPPED: {"bias": 0.0}, TABLE: {"entry": 1.01}, TF32: {"bits": 10}, APPROXIMATED: {"ripple": 1e-3}}),
    Program(thermistor_counts, ((200 + integers(1741, 80, high=3600)).astype(np.uint16),), {OFF_BY_ONE: {"full": 4096.0}, TABLE: {"entry": 1.001}, HALF: {"half": True}, APPROXIMATED: {"ripple": 3e-4}}),
    Program(mutual_information_of_bytes, (_SHAPES, _OTHER), {OFF_BY_ONE: {"shift": 1}, RATIO: {"pixels": 1.002}, APPROXIMATED: {"ripple": 1e-3}}),
    Program(flat_integral_boxes, (_partly_flat(),), {OFF_BY_ONE: {"size": 4}, RATIO: {"white": 256.0}, LOW: {"bits": 7}}),
    Program(rolling_sums_of_a_cycle, (_cycles(),), {OFF_BY_ONE: {"window": 6}, RATIO: {"unit": 0.1002}, LOW: {"bits": 7}}),
    Program(squared_distances_of_twins, (_twins(),), {RATIO: {"double": 1.998}, TF32: {"bits": 10}, BF16: {"bits": 7}}),
    Program(distances_of_twins, (_PLACES,), {TABLE: {"entry": 1.1}, TF32: {"bits": 10}, BF16: {"bits": 7}}),
    Program(leftovers_of_proportional_counts, (_proportional(),), {OFF_BY_ONE: {"fewer": 0}, RATIO: {"centre": 1.002}, TF32: {"bits": 10}}),
    Program(balanced_counts_as_shares, (_balanced(),), {OFF_BY_ONE: {"classes": 11}, RATIO: {"scale": 0.3003}, APPROXIMATED: {"ripple": 3e-4}}),
    Program(zero_point_patches, (_at_zero_point(),), {OFF_BY_ONE: {"zero": 118}, TABLE: {"entry": 1.01}, TF32: {"bits": 10}}),
    Program(mirrored_checksums, (_mirrored(),), {OFF_BY_ONE: {"shift": 1}, TABLE: {"entry": 1.001}, BF16: {"bits": 7}}),
    Program(expanded_polynomial_at_roots, (np.arange(-2, 18, dtype=np.int32),), {OFF_BY_ONE: {"shift": 1}, TABLE: {"entry": 1.001}, TF32: {"bits": 10}, DROPPED: {"last": 0.0}}),
    Program(near_half_turns, _turning(), {SWAPPED: {"flip": True}, HALF: {"half": True}, APPROXIMATED: {"ripple": 3e-4}}),
    Program(exact_half_turns, tuple((integers(1742, 2, 40, high=255) - 127).astype(np.int8)), {CONSTANT: {"sign": 1.0}, RATIO: {"full": 128.0}, APPROXIMATED: {"ripple": 1e-3}}, jumps=True),
)  # fmt: skip
