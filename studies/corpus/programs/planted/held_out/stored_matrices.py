"""Programs that apply stored matrices and bases to integers; for half of them, the terms of sums cancel."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal
from studies.corpus.programs.planted.held_out.whole_numbers import EXACT, rippled, through_half, with_bits, with_entry
from studies.corpus.programs.program import (
    APPROXIMATED,
    BF16,
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


def _cosines(size):
    """Return the matrix of the orthogonal cosine transform."""
    rows = np.cos(np.pi / size * np.arange(size)[:, None] * (np.arange(size) + 0.5)) * np.sqrt(2 / size)
    rows[0] /= np.sqrt(2)
    return rows


def _hadamard(size):
    signs = np.ones((1, 1))
    while len(signs) < size:
        signs = np.block([[signs, signs], [signs, -signs]])
    return signs


def _cubic(wide, narrow, centre=0.5):
    """Return the matrix that enlarges a row of `narrow` pixels to `wide` ones by Keys' cubic."""
    place = (np.arange(wide) + centre) * narrow / wide - centre
    distance = np.abs(place[:, None] - np.arange(-3, narrow + 3))
    near = 1.5 * distance**3 - 2.5 * distance**2 + 1
    far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
    weights = np.where(distance < 1, near, np.where(distance < 2, far, 0))
    inside = weights[:, 3:-3].copy()
    inside[:, 0] += weights[:, :3].sum(1)
    inside[:, -1] += weights[:, -3:].sum(1)
    return inside.astype(np.float32)


def _slopes(size):
    """Return the matrix of finite differences, of fourth order inside and of lower order at both ends."""
    matrix = np.zeros((size, size))
    for row in range(2, size - 2):
        matrix[row, row - 2 : row + 3] = np.array([1, -8, 0, 8, -1]) / 12
    for row in (1, size - 2):
        matrix[row, row - 1 : row + 2] = [-0.5, 0, 0.5]
    matrix[0, :3], matrix[-1, -3:] = [-1.5, 2, -0.5], [0.5, -2, 1.5]
    return matrix.astype(np.float32)


def _chebyshev(size):
    """Return the matrix that differentiates a polynomial given at Chebyshev points."""
    x = np.cos(np.pi * np.arange(size) / (size - 1))
    c = np.where(np.arange(size) % (size - 1) == 0, 2.0, 1.0) * (-1) ** np.arange(size)
    matrix = np.outer(c, 1 / c) / (x[:, None] - x + np.eye(size))
    return matrix - np.diag(matrix.sum(1))


_COLOURS = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], np.float32)
_DCT = _cosines(8).astype(np.float32)
_STRENGTHS = (3 + np.add.outer(np.arange(8), np.arange(8)) * 2.7).astype(np.float32)
_ROTATION = (_hadamard(32) / np.sqrt(32)).astype(np.float32)
_ROTATED = (_hadamard(32) / np.sqrt(32) @ np.random.RandomState(1800).randn(32, 20) / 5).astype(np.float32)
_KEYS = np.array([697, 770, 852, 941, 1209, 1336, 1477, 1633])
_TONES = np.exp(-2j * np.pi * np.outer(np.arange(200), _KEYS) / 8000).astype(np.complex64)
_LATE_TONES = np.exp(-2j * np.pi * np.outer(np.arange(1, 201), _KEYS + 40) / 8000).astype(np.complex64)
_STAINS = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11]])
_UNMIXING = np.linalg.pinv(_STAINS).astype(np.float32)
_STAINS = _STAINS.astype(np.float32)
_NORTH, _EAST = _slopes(20), _slopes(22)
_TALL, _WIDE, _TALL_BY_CORNERS = _cubic(27, 18), _cubic(35, 24), _cubic(27, 18, 0.0)
_NODES, _QUADRATURE = np.polynomial.legendre.leggauss(33)
_LEGENDRE = np.polynomial.legendre.legvander(_NODES, 8).T
_WAVES = np.exp(-2j * np.pi * np.outer(np.arange(48), np.arange(48)) / 48).astype(np.complex64)
_BENDS = (np.array([-1, 4, -6, 4, -1]) * 0.17).astype(np.float32)
_FITS = np.linalg.pinv(np.vander(np.arange(-4, 5) / 4, 4, increasing=True))
_FITS = np.stack([_FITS[0] - np.eye(9)[4], _FITS[1] / 4, _FITS[2] / 8, _FITS[3] / 64], axis=1).astype(np.float32)
_CHEBYSHEV = _chebyshev(17)
_LAPLACE = (np.array([[1, 4, 1], [4, -20, 4], [1, 4, 1]]) / 6).astype(np.float32)
_MEXICAN = np.array([[0, 0, 1, 0, 0], [0, 1, 2, 1, 0], [1, 2, -16, 2, 1], [0, 1, 2, 1, 0], [0, 0, 1, 0, 0]]) * 0.071
_TEMPLATE = (normal(1801, 36) - normal(1801, 36).mean()).astype(np.float32) / np.float32(6)
_PATTERNS = (_hadamard(64)[[3, 12, 33, 50]]).astype(int)
_TURN = np.linalg.qr(np.random.RandomState(1802).randn(4, 4))[0]
_COMPONENTS = (_TURN @ _PATTERNS / 8).astype(np.float32)
_MEAN = 60 + integers(1803, 64, high=130)
_LINE = np.vander(np.arange(50) / 49, 3)
_NO_TREND = np.eye(50) - _LINE @ np.linalg.pinv(_LINE)


def chroma_of_half_size(image, *, entry=1.0, flip=False, white=255.0, bits=EXACT):
    """Brightness of colours in bytes, and their chroma at half the size, as in JPEG."""
    x = image[..., ::-1] if flip else image
    x = with_bits(x.astype(jnp.float32) / white, bits) @ with_bits(jnp.asarray(with_entry(_COLOURS, entry)).T, bits)
    small = jnp.mean(x[..., 1:].reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2, 2), axis=(1, 3))
    return x[..., 0], small + 0.5


def cosine_blocks_of_bytes(image, *, level=128.0, turn=False, entry=1.0, bits=EXACT):
    """The cosine transform of bytes in blocks of eight by eight, divided by stored steps, and each wave's energy."""
    blocks = image.reshape(3, 8, 4, 8).transpose(0, 2, 1, 3).astype(jnp.float32) - level
    cosines = with_bits(jnp.asarray(with_entry(_DCT, entry)), bits)
    waves = (
        jnp.einsum("ij,abjk,lk->ab" + ("li" if turn else "il"), cosines, with_bits(blocks, bits), cosines) / _STRENGTHS
    )
    return waves, jnp.log1p(jnp.mean(waves**2, axis=(0, 1)))


def hadamard_rotated_layer(q, *, entry=1.0, epsilon=1e-2, bits=EXACT):
    """A layer with bytes and weights that are rotated by a stored Hadamard matrix."""
    x = with_bits(q.astype(jnp.float32) * 0.004, bits) @ with_bits(jnp.asarray(with_entry(_ROTATION, entry)), bits)
    x = x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon)
    return x, jax.nn.silu(with_bits(x, bits) @ with_bits(jnp.asarray(_ROTATED), bits))


def keys_by_their_tones(samples, *, late=False, entry=1.0, half=False, bits=EXACT):
    """The strength of a telephone key's eight tones in decibels, and the shares of rows and columns of keys."""
    x = with_bits(through_half(samples.astype(jnp.float32), half), bits)
    tones = with_entry(_LATE_TONES if late else _TONES, entry)
    power = (x @ with_bits(jnp.asarray(tones.real), bits)) ** 2 + (x @ with_bits(jnp.asarray(tones.imag), bits)) ** 2
    power = power / 4e8 + 1e-3
    pairs = power[:, :4, None] * power[:, None, 4:]
    return 10 * jnp.log10(power), pairs / jnp.sum(pairs, axis=(1, 2), keepdims=True)


def stains_unmixed(image, *, white=241.0, entry=1.0, bits=EXACT, ripple=0.0):
    """The amounts of two stains in a picture of bytes, by a stored pseudo-inverse, and a picture of each stain."""
    x = (image.astype(jnp.float32) + 1) / white
    density = -rippled(jnp.log(x), x, ripple)
    amounts = with_bits(density, bits) @ with_bits(jnp.asarray(with_entry(_UNMIXING, entry)), bits)
    return amounts, 255 * jnp.exp(-jnp.einsum("yxs,sc->yxsc", amounts, _STAINS))


def hillshade_of_metres(heights, *, cell=30.0, entry=1.0, bits=EXACT, turn=1.0):
    """Slopes of a map with heights in whole metres, by stored differences, in degrees, and the light on them."""
    x = with_bits(heights.astype(jnp.float32), bits)
    down = with_bits(jnp.asarray(with_entry(_NORTH, entry)), bits) @ x / cell
    across = x @ with_bits(jnp.asarray(_EAST), bits).T / cell
    steep = jnp.sqrt(1 + down**2 + across**2)
    return jnp.rad2deg(jnp.arctan(jnp.hypot(down, across))), (0.71 + 0.5 * turn * across - 0.5 * down) / steep


def enlarged_by_matrices(image, *, corners=False, entry=1.0, bits=EXACT):
    """An image of bytes enlarged by stored cubic matrices, and the error after it is made smaller again."""
    tall = jnp.asarray(with_entry(_TALL_BY_CORNERS if corners else _TALL, entry))
    x = image.astype(jnp.float32) / 255
    large = jnp.einsum("ij,jk,lk->il", with_bits(tall, bits), with_bits(x, bits), with_bits(jnp.asarray(_WIDE), bits))
    return large, tall.T @ large @ _WIDE / 2.25 - x


def legendre_moments(counts, *, dtype=np.float64, entry=1.0, norm=0.5, drop=0):
    """Legendre moments of counts at Gauss points in float64, the curve from them, and the largest moment's share."""
    table = with_entry(_LEGENDRE, entry)
    weighted = counts.astype(dtype) * _QUADRATURE.astype(dtype)
    moments = (weighted @ table.T.astype(dtype)).astype(np.float64) * (np.arange(9) + norm)
    curve = moments[:, : 9 - drop] @ table[: 9 - drop]
    return moments, curve, jnp.max(jnp.abs(moments), axis=-1) / jnp.sum(jnp.abs(moments), axis=-1)


def waves_of_exact_tones(samples, *, entry=1.0, late=0, sign=1.0, bits=EXACT):
    """The Fourier transform of integers with a few exact tones, by a stored matrix, and the energy of each wave."""
    waves = with_entry(_WAVES, entry)
    x = jnp.roll(samples, late, axis=-1).astype(jnp.float32) / 7
    real, imaginary = (with_bits(x, bits) @ with_bits(jnp.asarray(part), bits) for part in (waves.real, waves.imag))
    spectrum = lax.complex(real, sign * imaginary)
    return spectrum, jnp.einsum("rk,rk->rk", spectrum, jnp.conj(spectrum)).real


def transforms_of_exact_tones(samples, *, scale=0.01, late=0, half=False):
    """Fourier transforms of integers with exact tones, and the correlation of each row with the next at every delay."""
    x = through_half(jnp.roll(samples, late, axis=-1) * np.float32(scale), half)
    spectrum = jnp.fft.fft(x)
    return spectrum, jnp.fft.ifft(spectrum[:-1] * jnp.conj(spectrum[1:]))


def bends_around_a_circle(steps, *, late=0, half=False, entry=1.0):
    """Integers in steps, convolved by Fourier transforms with a stored filter that is zero on constants."""
    taps = jnp.zeros(60).at[(jnp.arange(-2, 3) + late) % 60].set(with_entry(_BENDS, entry))
    spectrum = jnp.fft.rfft(steps.astype(jnp.float32)) * jnp.fft.rfft(taps)
    if half:
        spectrum = lax.complex(through_half(spectrum.real, half), through_half(spectrum.imag, half))
    return jnp.fft.irfft(spectrum, 60)


def cubics_fitted_to_parabolas(counts, *, entry=1.0, bits=EXACT, late=0):
    """Savitzky-Golay fits of cubics: residuals, zero for most rows, which are parabolas, and three derivatives."""
    windows = counts[:, jnp.arange(32)[:, None] + jnp.arange(9) + late].astype(jnp.float32) * 0.01
    return jnp.einsum("rnw,wd->drn", with_bits(windows, bits), with_bits(jnp.asarray(with_entry(_FITS, entry)), bits))


def chebyshev_slopes_of_constants(levels, *, dtype=np.float64, entry=1.0, turn=False, unit=0.1):
    """First and second derivatives of levels by a stored Chebyshev matrix in float64; most levels are constant."""
    matrix = with_entry(_CHEBYSHEV, entry).astype(dtype)
    first = (matrix.T if turn else matrix) @ (levels.astype(dtype) * dtype(unit))
    return first.astype(np.float64), (matrix @ first).astype(np.float64)


def laplacians_of_ramps(image, *, white=255.0, entry=1.0, bits=EXACT):
    """Two stored kernels with zero sum, applied to an image of bytes that is flat, rises evenly, or is rough."""

    def folded(kernel):
        x, kernel = with_bits(image.astype(jnp.float32) / white, bits), with_bits(jnp.asarray(kernel), bits)
        return lax.conv_general_dilated(x[None, None], kernel[None, None], (1, 1), "VALID")[0, 0]

    return folded(with_entry(_LAPLACE, entry)), folded(with_entry(_MEXICAN.astype(np.float32), entry))


def flat_patches_normalised(patches, *, epsilon=1e-5, fewer=0, entry=1.0, bits=EXACT):
    """Patches of bytes, normalized, and their product with a stored template; half of the patches are flat."""
    x = patches.astype(jnp.float32) / 255
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    x = x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True) / (36 - fewer) + epsilon)
    return x, jnp.sum(with_bits(x, bits) * with_bits(jnp.asarray(with_entry(_TEMPLATE, entry)), bits), axis=-1)


def leftovers_of_stored_components(images, *, mean=1.0, entry=1.0, bits=EXACT):
    """Principal components of bytes by stored vectors, and the residuals, which are zero for most images."""
    components = with_bits(jnp.asarray(with_entry(_COMPONENTS, entry)), bits)
    x = (images.astype(jnp.float32) - mean * _MEAN.astype(np.float32)) / 255
    along = with_bits(x, bits) @ components.T
    left = x - along @ components
    return along, left, jnp.linalg.norm(left, axis=-1)


def counts_without_their_trend(counts, *, entry=1.0, bits=EXACT, scale=0.01):
    """Rising counts without their parabolic trend, by a stored projection, which leaves little of them."""
    x = counts.astype(jnp.float32) * scale
    matrix = jnp.asarray(with_entry(_NO_TREND.astype(np.float32), entry))
    left = with_bits(x, bits) @ with_bits(matrix, bits)
    return left, jnp.std(left, axis=-1)


def _hills():
    y, x = np.mgrid[:20, :22]
    return np.round(900 + 21.3 * y + 13.7 * x + 90 * np.sin(y / 3) * np.cos(x / 4)).astype(np.int16)


def _calls():
    time = np.arange(200) / 8000
    pairs = [(697, 1209), (770, 1477), (941, 1336), (852, 1633)]
    tones = np.stack([7000 * np.sin(6.28 * a * time) + 5000 * np.sin(6.28 * b * time + 1) for a, b in pairs])
    return np.round(tones + 200 * np.random.RandomState(1810).randn(4, 200)).astype(np.int16)


def _exact_tones():
    three, four, six = np.array([2, -1, -1]), np.array([1, 0, -1, 0]), np.array([2, 1, -1, -2, -1, 1])
    cycle = [np.tile(c, 48 // len(c)) for c in (three, four, six)]
    rows = [31 * cycle[0], 77 * cycle[1] + 5, 43 * cycle[2], 9 * cycle[0] - 50 * cycle[2], np.full(48, 97)]
    return np.stack([*rows, integers(1813, 48, high=200) - 100]).astype(np.int16)


def _staircases():
    stairs = np.repeat(integers(1814, 5, 6, high=255), 10, axis=1)
    stairs[0] = 213
    return stairs.astype(np.uint8)


def _parabolas():
    k = np.arange(41)
    rows = [np.full(41, 713), 17 * k + 30, 3 * k * k - 40 * k + 500, -2 * k * k + 91 * k, 7 * k * k]
    return np.stack([*rows, integers(1815, 41, high=2000)]).astype(np.int32)


def _levels():
    levels = np.repeat(integers(1816, 1, 8, high=500), 17, axis=0)
    levels[:, 6:] = integers(1817, 17, 2, high=500)
    return levels.astype(np.int32)


def _ramps():
    y, x = np.mgrid[:24, :24]
    image = 7 * x + 2 * y
    image[:9, :9], image[16:, 14:] = 45, integers(1818, 8, 10, high=256)
    return image.astype(np.uint8)


def _patches():
    patches = integers(1819, 20, 36, high=256)
    patches[::2] = patches[::2, :1]
    return patches.astype(np.uint8)


def _spanned():
    images = _MEAN + (integers(1820, 12, 4, high=29) - 14) @ _PATTERNS
    images[9:] += integers(1821, 3, 64, high=7)
    images[0] = _MEAN
    return np.clip(images, 0, 255).astype(np.uint8)


def _rising():
    k = np.arange(50)
    rows = [np.full(50, 431), 12 * k + 70, k * k + 3 * k, 40 * k - k * k, 5 * k * k + 900]
    return np.stack([*rows, 12 * k + integers(1822, 50, high=40)]).astype(np.int32)


_TISSUE = (np.array([150, 90, 140]) + integers(1823, 14, 16, 3, high=90)).astype(np.uint8)

PROGRAMS = (
    Program(chroma_of_half_size, (integers(1824, 16, 18, 3, high=256).astype(np.uint8),), {TABLE: {"entry": 1.002}, SWAPPED: {"flip": True}, RATIO: {"white": 256.0}, TF32: {"bits": 10}}),
    Program(cosine_blocks_of_bytes, (integers(1825, 24, 32, high=256).astype(np.uint8),), {TABLE: {"entry": 1.002}, DROPPED: {"level": 0.0}, SWAPPED: {"turn": True}, TF32: {"bits": 10}}),
    Program(hadamard_rotated_layer, ((integers(1826, 16, 32, high=255) - 127).astype(np.int8),), {TABLE: {"entry": 1.01}, EPSILON: {"epsilon": 0.0}, BF16: {"bits": 7}}),
    Program(keys_by_their_tones, (_calls(),), {OFF_BY_ONE: {"late": True}, TABLE: {"entry": 1.01}, HALF: {"half": True}, TF32: {"bits": 10}}),
    Program(stains_unmixed, (_TISSUE,), {RATIO: {"white": 242.0}, TABLE: {"entry": 1.002}, TF32: {"bits": 10}, APPROXIMATED: {"ripple": 3e-4}}),
    Program(hillshade_of_metres, (_hills(),), {RATIO: {"cell": 30.1}, TABLE: {"entry": 1.01}, TF32: {"bits": 10}, CONSTANT: {"turn": -1.0}}),
    Program(enlarged_by_matrices, (integers(1827, 18, 24, high=256).astype(np.uint8),), {OFF_BY_ONE: {"corners": True}, TABLE: {"entry": 1.002}, BF16: {"bits": 7}}),
    Program(legendre_moments, (np.random.RandomState(1828).poisson(40, (6, 33)).astype(np.int32),), {LOW: {"dtype": np.float32}, TABLE: {"entry": 1.001}, OFF_BY_ONE: {"norm": 1.0}, DROPPED: {"drop": 1}}, x64=True),
    Program(waves_of_exact_tones, (_exact_tones(),), {TABLE: {"entry": 1.01}, OFF_BY_ONE: {"late": 1}, CONSTANT: {"sign": -1.0}, TF32: {"bits": 10}}),
    Program(transforms_of_exact_tones, (_exact_tones(),), {RATIO: {"scale": 0.01001}, OFF_BY_ONE: {"late": 1}, HALF: {"half": True}}),
    Program(bends_around_a_circle, (_staircases(),), {OFF_BY_ONE: {"late": 1}, TABLE: {"entry": 1.002}, HALF: {"half": True}}),
    Program(cubics_fitted_to_parabolas, (_parabolas(),), {TABLE: {"entry": 1.002}, OFF_BY_ONE: {"late": 1}, TF32: {"bits": 10}}),
    Program(chebyshev_slopes_of_constants, (_levels(),), {LOW: {"dtype": np.float32}, TABLE: {"entry": 1.001}, SWAPPED: {"turn": True}, RATIO: {"unit": 0.1001}}, x64=True),
    Program(laplacians_of_ramps, (_ramps(),), {TABLE: {"entry": 1.001}, RATIO: {"white": 256.0}, TF32: {"bits": 10}}),
    Program(flat_patches_normalised, (_patches(),), {EPSILON: {"epsilon": 0.0}, OFF_BY_ONE: {"fewer": 1}, TABLE: {"entry": 1.01}, TF32: {"bits": 10}}),
    Program(leftovers_of_stored_components, (_spanned(),), {DROPPED: {"mean": 0.0}, TABLE: {"entry": 1.01}, TF32: {"bits": 10}}),
    Program(counts_without_their_trend, (_rising(),), {TABLE: {"entry": 1.01}, BF16: {"bits": 7}, RATIO: {"scale": 0.0101}}),
)  # fmt: skip
