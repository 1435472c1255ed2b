"""Programs that consist of one kind of operation, whose last digits differ among correct readers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.planted.held_out import roughly
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

_PANEL = normal(800, 300, 5)


def dots_of_all_shapes(x, y, blocks, *, cut=roughly.same, shift=0, entry=1.0):
    """Dot products of vectors, of tall and wide matrices, of batches, over two axes, and with a stored panel."""
    x, y, blocks = cut(x), cut(y), cut(blocks)
    tall, other = x.reshape(300, 4), jnp.roll(y, shift).reshape(300, 4)
    panel = cut(jnp.asarray(roughly.entry(_PANEL, entry), x.dtype))
    return (
        x @ y,
        tall.T @ other,
        tall[:20] @ other[:20].T,
        panel.T @ tall,
        jnp.einsum("bij,bjk->bik", blocks, cut(jnp.swapaxes(blocks, 1, 2))),
        jnp.einsum("bij,bij->b", blocks, blocks[::-1]),
        jnp.einsum("bij,cij->bc", blocks, blocks),
    )


_KERNEL_1D, _KERNEL_2D = normal(803, 5, 6, 4), normal(804, 3, 3, 3, 8)
_KERNEL_3D, _KERNEL_BACK = normal(805, 2, 3, 2, 2, 3), normal(806, 4, 4, 6, 2)


def convolutions_of_all_kinds(sound, image, volume, *, cut=roughly.same, shift=0, turn=False, entry=1.0):
    """Convolutions: a dilated causal one, a grouped one, one of a volume, and a transposed one."""
    kernel = lambda array: cut(jnp.asarray(array, sound.dtype))
    sound, image, volume = cut(sound), cut(image), cut(volume)
    causal = [(8 - shift, shift)]
    back = kernel(roughly.entry(_KERNEL_BACK, entry))
    grouped = kernel(_KERNEL_2D)
    return (
        lax.conv_general_dilated(
            sound, kernel(_KERNEL_1D), (1,), causal, rhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC")
        ),
        lax.conv_general_dilated(
            image,
            jnp.swapaxes(grouped, 0, 1) if turn else grouped,
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=2,
        ),
        lax.conv_general_dilated(
            volume, kernel(_KERNEL_3D), (1, 1, 1), "VALID", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
        ),
        lax.conv_transpose(image, back, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
    )


def reductions_of_all_axes(x, *, add=jnp.sum, count=0, first=0):
    """Sums, products, norms and variances of one array, by rows, by columns and over both."""
    axes = [(first,), (1,), (2,), (0, 2), (1, 2), None]
    sums = [add(x, axis=axis) for axis in axes]
    spreads = [jnp.var(x, axis=axis, ddof=count) for axis in axes]
    scaled = [jnp.prod(1 + 0.1 * x, axis=axis) for axis in axes[:3]]
    return (*sums, *spreads, *scaled, jnp.linalg.norm(x.reshape(-1)), jnp.mean(jnp.abs(x), axis=(0, 1)))


def _low_sum(x, axis=None):
    """Return the sum over an axis, in which each partial sum is rounded to bfloat16."""
    axis = axis if isinstance(axis, tuple) else tuple(range(x.ndim)) if axis is None else (axis,)
    start = jnp.zeros(np.delete(x.shape, axis[0]), x.dtype)
    carry = lax.scan(lambda c, x: (roughly.bf16(c + x), None), start, jnp.moveaxis(x, axis[0], 0))[0]
    return jnp.sum(carry, axis=tuple(a - (a > axis[0]) for a in axis[1:]))


def local_statistics(image, *, size=5, counted=True, pass_on=roughly.same):
    """Means, deviations and contrasts in windows, by sums of values and of squares; edges have smaller windows."""
    window = lambda x: lax.reduce_window(x, np.zeros((), x.dtype), lax.add, (size, size), (1, 1), "SAME")
    count = window(jnp.ones_like(image)) if counted else size**2 * 1.0
    mean, square = window(image) / count, window(pass_on(image * image)) / count
    spread = jnp.maximum(square - mean**2, 0.0)
    largest = lax.reduce_window(image, np.array(-np.inf, image.dtype), lax.max, (size, size), (2, 2), "SAME")
    return mean, spread, (image - mean) / jnp.sqrt(spread + 1e-4), largest


def fourier_there_and_back(x, psi, *, cut=roughly.same, first=0, norm=1.0):
    """Real and complex Fourier transforms of 96 and of 97 samples, filtered, and of a plane, and their inverses."""

    def real(x):
        spectrum = jnp.fft.rfft(x)
        size = x.shape[-1]
        filtered = cut(spectrum.real) + 1j * cut(spectrum.imag)
        filtered = filtered / (1 + 0.02 * jnp.arange(first, first + size // 2 + 1) ** 2)
        return spectrum, jnp.fft.irfft(filtered, size)

    plane = jnp.fft.fft2(psi)
    return (*real(x[:, :96]), *real(x), plane, norm * jnp.fft.ifft2(plane), jnp.fft.ifft(plane, axis=0))


def cumulated(x, *, before=False, add=jnp.cumsum, back=True, pass_on=roughly.same):
    """Cumulative sums, products, log-sum-exps and maxima, two of them from the end."""
    sums = add(x, axis=0)
    sums = sums - x if before else sums
    products = jnp.cumprod(1 + pass_on(0.05 * x), axis=0)
    likely = lax.cumlogsumexp(4 * x, axis=1, reverse=back)
    return sums, products, likely, lax.cummax(sums, axis=0), lax.cumsum(x**2, axis=1, reverse=back)


def _low_cumsum(x, axis):
    step = lambda c, x: (roughly.bf16(c + x),) * 2
    return lax.scan(step, jnp.zeros_like(x[0]), x)[1]


def complex_parts(z, *, sqrt=jnp.sqrt, sign=1.0, offset=0.0, cos=jnp.cos):
    """Magnitudes, angles, roots, logarithms and quotients of complex numbers, with zeros of both signs."""
    size, angle = sqrt(z.real**2 + z.imag**2), jnp.angle(z)
    unit = lax.complex(cos(angle + offset), jnp.sin(angle + offset))
    own = z * lax.complex(z.real, -sign * z.imag)
    polar = size * unit
    return (
        *(jnp.abs(z), size, angle, polar, own, jnp.angle(own + 1), jnp.sqrt(z)),
        *(jnp.log(z + 3), jnp.exp(z), z / (jnp.roll(z, 1) + (2 + 1j))),
    )


def scattered_sums(values, places, *, shift=0, once=False, pass_on=roughly.same, entry=1.0):
    """Sums, weighted means, variances, products and maxima of values in 24 segments, one of which is empty."""
    places = (places + shift) % 24
    values = pass_on(values)
    weights = jnp.asarray(roughly.entry(_SHARES, entry), values.dtype)[places][:, None]
    zeros = jnp.zeros((24, 3), values.dtype)
    sums = zeros.at[places].set(values) if once else jax.ops.segment_sum(values, places, 24)
    total = jax.ops.segment_sum(weights, places, 24)
    mean = zeros.at[places].add(weights * values) / jnp.where(total > 0, total, 1)
    spread = zeros.at[places].add(weights * (values - mean[places]) ** 2)
    products = jnp.ones((24, 3), values.dtype).at[places].multiply(1 + 0.1 * values)
    return sums, mean, spread, products, jax.ops.segment_max(values, places, 25)[:20]


_SHARES = uniform(813, 24, low=0.2, high=2.0)


def scanned_products(turns, moves, *, cut=roughly.same, flip=False, shift=0, gain=1.0):
    """Poses along a path, by an associative scan of random rotations and moves."""
    w, x, y, z = jnp.moveaxis(gain * turns * lax.rsqrt(jnp.sum(turns**2, axis=-1, keepdims=True)), -1, 0)
    rows = [
        *(w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)),
        *(2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)),
        *(2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z),
    ]

    def combine(one, two):
        one, two = (two, one) if flip else (one, two)
        return cut(one[0]) @ cut(two[0]), one[1] + jnp.einsum("nij,nj->ni", cut(one[0]), cut(two[1]))

    return lax.associative_scan(combine, (jnp.stack(rows, -1).reshape(-1, 3, 3), jnp.roll(moves, shift, 0)))


def converging_loops(x, a, *, loose=1.0, power=3, extra=0.0):
    """Loops that end when nothing moves any more: cube roots, a mean of means, the largest eigenvalue, its vector."""

    def until(step, start, small):
        def going(carry):
            before, now, count = carry
            moved = jnp.max(jnp.abs(now - before) / (jnp.abs(now) + 1e-3))
            return (moved > loose * small) & (count < 200)

        step_on = lambda carry: (carry[1], step(carry[1]), carry[2] + 1)
        return lax.while_loop(going, step_on, (start + 1, start, 0))[1]

    roots = until(lambda y: y - (y**power - x) / (power * y ** (power - 1)), 1 + x / 3, 1e-5)
    both = lambda m: jnp.stack([0.5 * (m[0] + m[1]), jnp.sqrt(m[0] * m[1])])
    means = until(both, jnp.stack([x, jnp.ones_like(x)]), 1e-5)
    even = a @ a.T / len(a) + extra * jnp.eye(len(a), dtype=a.dtype)
    image = lambda v: (even @ v) / jnp.linalg.norm(even @ v)
    vector = until(image, jnp.ones_like(a[0]) / np.sqrt(len(a)).item(), 1e-5)
    return roots, means, vector, vector @ even @ vector


def sorted_by_distance(points, payload, *, sqrt=jnp.sqrt, cut=roughly.same, sign=1.0, kept=3):
    """Payloads sorted by distance to two stored stations, and ranks. They jump if two points are about as far away."""
    away = points[:, None] - _STATIONS
    far = sqrt(jnp.sum(cut(away[..., :kept]) ** 2, axis=-1))
    keys = far[:, 0] + 0.5 * far[:, 1]
    ordered, paid = lax.sort((sign * keys, payload), num_keys=1)
    return ordered, paid, jnp.cumsum(paid), jnp.argsort(jnp.argsort(sign * far, axis=0), axis=0)


_STATIONS = normal(822, 2, 3)


def largest_of_computed_scores(queries, *, cut=roughly.same, pass_on=roughly.same, scale=0.25, skip=0):
    """The best six of 200 stored vectors, and their mean. The choice jumps if two scores are about the same."""
    stored = jnp.asarray(_STORED, queries.dtype)
    scores = pass_on(cut(queries) @ cut(stored).T * scale)
    best, places = lax.top_k(scores, 6 + skip)
    best, places = best[:, skip:], places[:, skip:]
    return best, places, jnp.einsum("bk,bkd->bd", jax.nn.softmax(best), stored[places])


_STORED = normal(825, 200, 16)


def special_functions(x, *, erf=jax.scipy.special.erf, order=2.0, shift=0.0, factor=1.0):
    """The error function, its complement and tails, the gamma function, an integral, and zeta and Bessel functions."""
    positive = jnp.abs(x) + 0.1 + shift
    special = jax.scipy.special
    return (
        *(erf(x), special.erfc(x), special.ndtr(-jnp.abs(x)), special.log_ndtr(-3 * jnp.abs(x))),
        special.gamma(positive),
        *(special.ndtri(special.ndtr(x)), special.exp1(positive), special.zeta(order + jnp.abs(x), 1.5)),
        *(special.i0(x), factor * special.i1(x), special.entr(positive)),
    )


_SERIES = np.random.RandomState(830).standard_normal(41) / (1 + np.arange(41))


def long_polynomials(x, *, pass_on=roughly.same, shift=0, entry=1.0):
    """Polynomials in float64: a Chebyshev series, a power series, and the expansion of a root of order seven."""
    series = roughly.entry(_SERIES, entry)

    def step(carry, c):
        one, two = carry
        return (pass_on(2 * x * one - two + c), one), None

    (one, two), _ = lax.scan(step, (jnp.zeros_like(x), jnp.zeros_like(x)), jnp.asarray(series[:0:-1].copy()))
    powers = np.roll(1 / np.cumprod(np.concatenate([[1.0], np.arange(1, 31)])), shift)
    root = np.array([1, -7, 21, -35, 35, -21, 7, -1.0])
    horner = lambda c, x: lax.fori_loop(0, len(c), lambda n, y: y * x + jnp.asarray(c)[n], jnp.zeros_like(x))
    return x * one - two + series[0], horner(powers[::-1].copy(), -8 + x), horner(root, 1 + 0.2 * x)


def products_that_cancel(a, b, c, d, *, factor=4.0, cut=roughly.same, pass_on=roughly.same, sign=1.0):
    """Differences of products such as areas and discriminants, in which a fused multiply-add rounds once less."""
    a, b, c, d = cut(a), cut(b), cut(c), cut(d)
    area = pass_on(a * d) - pass_on(b * c)
    discriminant = b * b - factor * a * c
    root = jnp.sqrt(jnp.maximum(discriminant, 0.0))
    smaller = 2 * c / (-b - jnp.where(b > 0, 1.0, -1.0) * root - 1e-3)
    near = a * 1.001
    chain = ((a * b + c) * d + a) * b + sign * c
    return area, discriminant, smaller, a * a - near * near, (a - near) * (a + near), chain, (a * b - c * d) / (a + 9)


def distances_of_rows(x, *, cut=roughly.same, floor=1e-6, double=2.0, pass_on=roughly.same):
    """Distances between rows, three of which occur twice: by differences, by products, and by angles."""
    away = pass_on(x[:, None] - x)
    direct = jnp.sqrt(jnp.sum(away**2, axis=-1) + floor)
    square = jnp.sum(x**2, axis=-1)
    product = cut(x) @ cut(x).T
    spread = jnp.maximum(square[:, None] + square - double * product, 0.0)
    size = jnp.sqrt(square)
    alike = product / (size[:, None] * size)
    return direct, spread, jnp.exp(-spread / 4), jnp.sqrt(spread), 1 - alike, jnp.min(direct + jnp.eye(len(x)), axis=1)


def extreme_softmax(logits, *, exp=jnp.exp, temperature=0.02, pass_on=roughly.same, safe=True):
    """The softmax of logits that differ by up to a thousand, with masked and constant rows, and its gradient."""
    hidden = (jnp.arange(24) % 7 == 3) & (jnp.arange(16) < 8)[:, None]
    flat = jnp.where(jnp.arange(16)[:, None] > 13, 1000.0, pass_on(logits))
    scores = jnp.where(hidden, -jnp.inf, flat / temperature)
    raised = exp(0.1 * (scores - jnp.max(scores, axis=-1, keepdims=True)) if safe else 0.1 * scores)
    shares = raised / jnp.sum(raised, axis=-1, keepdims=True)
    total = jax.nn.logsumexp(scores, axis=-1)
    chosen = lambda x: jnp.sum(jnp.cos(jnp.arange(24)) * jax.nn.softmax(jnp.where(hidden, -jnp.inf, x / 0.5)))
    slope = jax.grad(chosen)(flat)
    return shares, total, slope, jax.nn.log_sigmoid(flat / 0.05), jax.nn.log_softmax(flat / temperature)


def moments_by_shortcut(x, y, *, less=0, cut=roughly.same, term=3.0):
    """Variance, skewness, correlation and regression as differences of means, which lose digits."""
    mean = lambda values: jnp.mean(values, axis=0)
    own, other, both = mean(x), mean(y), mean(cut(x) * cut(y))
    variance = (mean(x * x) - own**2) * len(x) / (len(x) - 1 + less)
    spread = mean(y * y) - other**2
    skew = (mean(x**3) - term * own * mean(x * x) + 2 * own**3) / variance**1.5
    correlation = (both - own * other) / jnp.sqrt(variance * spread)
    slope = (both - own * other) / variance
    return variance, spread, skew, correlation, slope, other - slope * own


_TWICE = normal(840, 20, 12)
_TWICE[[4, 9, 19]] = _TWICE[[1, 2, 3]]
_SIGNED = complex(-1.5, -0.0), complex(2, -0.0), complex(-0.0, 1)
_AXES = np.array([1, -1, 1j, -1j, 2.5, -0.3, 0.7j, *_SIGNED], np.complex64)
_PLANE = np.concatenate([_AXES, (normal(811, 54) + 1j * normal(812, 54)).astype(np.complex64)])
_FEW = integers(815, 600, high=21)

PROGRAMS = (
    Program(dots_of_all_shapes, (normal(801, 1200), normal(802, 1200), normal(799, 6, 12, 20)), {TF32: {"cut": roughly.tf32}, OFF_BY_ONE: {"shift": 1}, TABLE: {"entry": 1.05}}),
    Program(convolutions_of_all_kinds, (normal(807, 2, 30, 6), normal(808, 2, 9, 9, 6), normal(809, 1, 5, 6, 5, 2)), {TF32: {"cut": roughly.tf32}, OFF_BY_ONE: {"shift": 1}, SWAPPED: {"turn": True}, TABLE: {"entry": 1.05}}),
    Program(reductions_of_all_axes, (normal(810, 20, 20, 20),), {LOW: {"add": _low_sum}, OFF_BY_ONE: {"count": 1}, SWAPPED: {"first": 2}}),
    Program(local_statistics, (normal(816, 20, 24) / np.float32(4) + np.float32(2),), {OFF_BY_ONE: {"size": 4}, DROPPED: {"counted": False}, HALF: {"pass_on": roughly.half}}),
    Program(fourier_there_and_back, (normal(817, 4, 97), (normal(818, 15, 16) + 1j * normal(819, 15, 16)).astype(np.complex64)), {TF32: {"cut": roughly.tf32}, OFF_BY_ONE: {"first": 1}, RATIO: {"norm": 16 / 15}}),
    Program(cumulated, (normal(820, 80, 12),), {OFF_BY_ONE: {"before": True}, LOW: {"add": _low_cumsum}, SWAPPED: {"back": False}, HALF: {"pass_on": roughly.half}}),
    Program(complex_parts, (_PLANE,), {APPROXIMATED: {"sqrt": roughly.sqrt, "cos": roughly.cos}, DROPPED: {"sign": -1.0}, CONSTANT: {"offset": 1e-4}}),
    Program(scattered_sums, (normal(814, 600, 3), _FEW + (_FEW > 8)), {OFF_BY_ONE: {"shift": 1}, DROPPED: {"once": True}, HALF: {"pass_on": roughly.half}, TABLE: {"entry": 1.02}}),
    Program(scanned_products, (normal(821, 60, 4), normal(823, 60, 3)), {TF32: {"cut": roughly.tf32}, SWAPPED: {"flip": True}, OFF_BY_ONE: {"shift": 1}, CONSTANT: {"gain": 1.00005}}),
    Program(converging_loops, (uniform(824, 40, low=0.5, high=20), np.abs(normal(826, 8, 8))), {EPSILON: {"loose": 3e3}, OFF_BY_ONE: {"power": 4}, CONSTANT: {"extra": 1e-3}}),
    Program(sorted_by_distance, (normal(827, 150, 3), normal(828, 150)), {APPROXIMATED: {"sqrt": roughly.sqrt}, TF32: {"cut": roughly.tf32}, SWAPPED: {"sign": -1.0}, DROPPED: {"kept": 2}}, jumps=True),
    Program(largest_of_computed_scores, (normal(829, 12, 16),), {TF32: {"cut": roughly.tf32}, HALF: {"pass_on": roughly.half}, RATIO: {"scale": 0.2505}, OFF_BY_ONE: {"skip": 1}}, jumps=True),
    Program(special_functions, (uniform(831, 60, low=-4, high=4),), {APPROXIMATED: {"erf": roughly.erf}, OFF_BY_ONE: {"order": 3.0}, CONSTANT: {"shift": 1e-4}, RATIO: {"factor": 1.001}}),
    Program(long_polynomials, (np.random.RandomState(832).uniform(-1, 1, 60),), {LOW: {"pass_on": roughly.single}, OFF_BY_ONE: {"shift": 1}, TABLE: {"entry": 1.01}}, x64=True),
    Program(products_that_cancel, (normal(833, 80), normal(834, 80), normal(835, 80), normal(836, 80)), {RATIO: {"factor": 4.01}, TF32: {"cut": roughly.tf32}, HALF: {"pass_on": roughly.half}, DROPPED: {"sign": 0.0}}),
    Program(distances_of_rows, (_TWICE,), {TF32: {"cut": roughly.tf32}, EPSILON: {"floor": 0.0}, RATIO: {"double": 2.001}, HALF: {"pass_on": roughly.half}}),
    Program(extreme_softmax, (4 * normal(837, 16, 24),), {APPROXIMATED: {"exp": roughly.exp}, RATIO: {"temperature": 0.02002}, HALF: {"pass_on": roughly.half}, DROPPED: {"safe": False}}),
    Program(moments_by_shortcut, (normal(838, 200, 6) + np.float32(5), normal(839, 200, 6) + np.float32(3)), {OFF_BY_ONE: {"less": 1}, TF32: {"cut": roughly.tf32}, RATIO: {"term": 2.99}}),
)  # fmt: skip
