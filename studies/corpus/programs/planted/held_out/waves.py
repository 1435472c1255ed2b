"""Fourier transforms of grids, windows and signals that the program computes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal
from studies.corpus.programs.program import CONSTANT, DROPPED, EPSILON, OFF_BY_ONE, Program

PI = np.float32(np.pi)


def _chirp(size, rate=40.0):
    t = jnp.linspace(0, 1, size)
    return jnp.sin(2 * PI * (5 * t + rate * t**2)) + 0.2 * jnp.cos(2 * PI * 90 * t)


def _bumps(rows, columns):
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, rows), jnp.linspace(-1, 1, columns), indexing="ij")
    return jnp.exp(-9 * ((x - 0.2) ** 2 + y**2)) - jnp.exp(-12 * ((x + 0.4) ** 2 + (y - 0.3) ** 2))


def _hann(size):
    return 0.5 - 0.5 * jnp.cos(2 * PI * jnp.arange(size) / size)


def poisson_on_a_made_grid(*, size=24):
    """The potential of two bumps by Fourier transforms, without arguments."""
    charge = _bumps(24, 24)
    k = 2 * PI * jnp.fft.fftfreq(24, 1 / size)
    square = k[:, None] ** 2 + k**2
    spectrum = jnp.fft.fft2(charge - jnp.mean(charge)) / jnp.where(square == 0, 1e6, -square)
    return jnp.fft.ifft2(spectrum).real


def slope_by_waves(*, order=1):
    """The derivative of a computed signal by Fourier transforms, which amplify high waves most, without arguments."""
    x = 2 * PI * jnp.arange(64) / 64
    signal = jnp.exp(jnp.sin(x)) * jnp.cos(2 * x)
    return jnp.fft.irfft((1j * jnp.arange(33)) ** order * jnp.fft.rfft(signal), 64)


def spectrogram(*, hop=16, rate=40.0):
    """The spectrogram of a computed chirp in decibels, without arguments."""
    signal = _chirp(512, rate)
    frames = signal[jnp.arange(0, 512 - 64, hop)[:, None] + jnp.arange(64)] * _hann(64)
    return 10 * jnp.log10(jnp.abs(jnp.fft.rfft(frames)) ** 2 + 1e-6)


def mel_energies(samples, *, low=100.0):
    """Mel-frequency cepstral coefficients of 16-bit samples, which are the only argument."""
    frames = (samples.astype(jnp.float32) / 32768)[jnp.arange(0, 400, 100)[:, None] + jnp.arange(128)] * _hann(128)
    power = jnp.abs(jnp.fft.rfft(frames)) ** 2
    mel = lambda f: 1127 * jnp.log1p(f / 700)
    edges = jnp.linspace(mel(low), mel(4000.0), 14)
    place = mel(jnp.linspace(0, 4000, 65))
    rising = (place - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - place) / (edges[2:] - edges[1:-1])[:, None]
    energies = jnp.log(power @ jnp.maximum(jnp.minimum(rising, falling), 0).T + 1e-5)
    cosines = jnp.cos(PI / 12 * (jnp.arange(12) + 0.5) * jnp.arange(8)[:, None])
    return energies @ cosines.T


def mel_gradient(signal, *, low=100.0):
    """The gradient of a mel-band energy in the signal."""
    weights = jnp.exp(-(((jnp.arange(65) - low / 10) / 4) ** 2))
    loss = lambda signal: jnp.sum(jnp.log(jnp.abs(jnp.fft.rfft(signal * _hann(128))) ** 2 @ weights + 1e-3))
    return jax.grad(loss)(signal)


def compressed_block(image, *, quality=1.0):
    """Blocks coded by cosines, rounded as in JPEG and decoded: a last bit decides how a half is rounded."""
    cosines = jnp.cos((2 * jnp.arange(8) + 1) * jnp.arange(8)[:, None] * PI / 16) * 0.5
    cosines = cosines.at[0].multiply(np.float32(np.sqrt(0.5)))
    table = quality * 0.05 * (1 + jnp.arange(8)[:, None] + jnp.arange(8))
    coded = jnp.round(jnp.einsum("ij,bjk,lk->bil", cosines, image, cosines) / table)
    return jnp.einsum("ji,bjk,kl->bil", cosines, coded * table, cosines)


def wiener_filter(*, noise=0.05):
    """A computed blur removed by a Wiener filter, without arguments."""
    image = _bumps(24, 24)
    x = jnp.minimum(jnp.arange(24), 24 - jnp.arange(24))
    kernel = jnp.exp(-0.4 * (x[:, None] ** 2 + x**2))
    spectrum = jnp.fft.fft2(kernel / jnp.sum(kernel))
    blurred = jnp.fft.fft2(image) * spectrum
    return jnp.fft.ifft2(blurred * jnp.conj(spectrum) / (jnp.abs(spectrum) ** 2 + noise)).real


def autocorrelation(*, rate=40.0):
    """The autocorrelation of a computed chirp by Fourier transforms, without arguments."""
    signal = _chirp(200, rate)
    spectrum = jnp.fft.rfft(jnp.pad(signal - jnp.mean(signal), (0, 200)))
    found = jnp.fft.irfft(jnp.abs(spectrum) ** 2)[:100]
    return found / found[0]


def burgers_equation(*, viscosity=0.05, steps=40):
    """Burgers' equation of a wave that steepens, with derivatives by Fourier transforms, without arguments."""
    x = 2 * PI * jnp.arange(64) / 64
    k = 1j * jnp.arange(33)
    keep = jnp.arange(33) < 21

    def flow(u):
        spectrum = jnp.fft.rfft(u * u) * keep
        return jnp.fft.irfft(-0.5 * k * spectrum + viscosity * k**2 * jnp.fft.rfft(u), 64)

    def step(_, u):
        one = flow(u)
        two = flow(u + 0.01 * one)
        return u + 0.02 * two

    return lax.fori_loop(0, steps, step, jnp.sin(x) + 0.3 * jnp.cos(2 * x))


def vortices(*, steps=10, drag=0.0):
    """A two-dimensional flow by its vorticity, without arguments."""
    k = jnp.fft.fftfreq(24, 1 / 24)
    ky, kx = k[:, None] * jnp.ones(24), k[None] * jnp.ones((24, 1))
    square = jnp.where(ky**2 + kx**2 == 0, 1.0, ky**2 + kx**2)
    back = lambda spectrum: jnp.fft.ifft2(spectrum).real

    def step(_, w):
        stream = w / square
        turn = back(1j * ky * stream) * back(1j * kx * w) - back(1j * kx * stream) * back(1j * ky * w)
        return (w - 0.02 * jnp.fft.fft2(turn)) * jnp.exp(-0.001 * square - drag)

    return back(lax.fori_loop(0, steps, step, jnp.fft.fft2(5 * _bumps(24, 24))))


def split_step_soliton(*, strength=1.0):
    """A light pulse in a fibre in 50 split steps, without arguments."""
    x = jnp.linspace(-8, 8, 96, endpoint=False)
    k = 2 * PI * jnp.fft.fftfreq(96, 16 / 96)
    move = jnp.exp(-0.5j * 0.02 * k**2)
    start = (1.2 / jnp.cosh(1.2 * x)) * jnp.exp(0.5j * x)
    step = lambda _, u: jnp.fft.ifft(move * jnp.fft.fft(u * jnp.exp(0.02j * strength * jnp.abs(u) ** 2)))
    return lax.fori_loop(0, 50, step, start)


def shifted_by_phases(image, *, by=2.37):
    """An image moved by a fraction of a pixel, and the derivative of a match in this fraction."""
    k = 2 * PI * jnp.fft.fftfreq(image.shape[1])

    def moved(by):
        return jnp.fft.ifft(jnp.fft.fft(image) * jnp.exp(-1j * k * by)).real

    return moved(jnp.float32(by)), jax.grad(lambda by: jnp.mean(moved(by) * image))(jnp.float32(by))


def line_projections(*, angles=12):
    """Line projections of a computed image, filtered by a ramp as in tomography, without arguments."""
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, 20), jnp.linspace(-1, 1, 20), indexing="ij")

    def along(angle):
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        places = [(cos * y - sin * x + 1) * 9.5, (sin * y + cos * x + 1) * 9.5]
        return jnp.sum(jax.scipy.ndimage.map_coordinates(_bumps(20, 20), places, order=1), axis=0)

    lines = jax.vmap(along)(PI * jnp.arange(12) / angles)
    return lines, jnp.fft.irfft(jnp.fft.rfft(lines) * jnp.arange(11.0), 20)


def harmonic_sums(numbers, *, term=1.0):
    """Sums of sines and cosines of integers, as large as 10,000 radians; integers are the only argument."""
    angle = numbers[:, None] * jnp.arange(1, 9)
    return jnp.sum(jnp.sin(angle) / jnp.arange(1, 9), axis=-1), term * jnp.sum(jnp.cos(angle), axis=-1)


_SAMPLES = (integers(650, 600, high=65536) - np.int32(32768)).astype(np.int16)

PROGRAMS = (
    Program(poisson_on_a_made_grid, (), {OFF_BY_ONE: {"size": 25}}),
    Program(slope_by_waves, (), {OFF_BY_ONE: {"order": 2}}),
    Program(spectrogram, (), {CONSTANT: {"rate": 40.0004}}),
    Program(mel_energies, (_SAMPLES,), {CONSTANT: {"low": 100.001}}),
    Program(mel_gradient, (normal(651, 128),), {CONSTANT: {"low": 100.001}}),
    Program(compressed_block, (normal(653, 6, 8, 8),), {CONSTANT: {"quality": 1.00001}}, jumps=True),
    Program(wiener_filter, (), {EPSILON: {"noise": 0.04}, CONSTANT: {"noise": 0.0500005}}),
    Program(autocorrelation, (), {CONSTANT: {"rate": 40.0004}}),
    Program(burgers_equation, (), {CONSTANT: {"viscosity": 0.0500005}, OFF_BY_ONE: {"steps": 39}}),
    Program(vortices, (), {OFF_BY_ONE: {"steps": 9}, CONSTANT: {"drag": 1e-6}}),
    Program(split_step_soliton, (), {CONSTANT: {"strength": 1.00001}}),
    Program(shifted_by_phases, (normal(655, 10, 24),), {CONSTANT: {"by": 2.370024}}),
    Program(line_projections, (), {OFF_BY_ONE: {"angles": 13}}),
    Program(harmonic_sums, (integers(656, 60, high=1250),), {DROPPED: {"term": 0.0}}),
)  # fmt: skip
