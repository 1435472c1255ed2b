"""Physics, differential equations, Fourier transforms, special functions; float64 and complex programs too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import normal, uniform
from studies.corpus.programs.program import CONSTANT, DROPPED, EPSILON, LOW, OFF_BY_ONE, SWAPPED, Program


def logistic_map(x, *, rate=3.9, steps=60):
    """60 steps of the chaotic logistic map, after which the last digits of x decide everything."""
    return lax.fori_loop(0, steps, lambda _, x: rate * x * (1 - x), x)


def _rk4(f, y, h, steps):
    def step(y, _):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, y, None, length=steps)[0]


def lorenz(y, *, rho=28.0, steps=100):
    def f(y):
        return jnp.stack([10 * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    return _rk4(f, y, 0.01, steps)


def lorenz_long(y, *, rho=28.0):
    """2,000 steps of the Lorenz equations, which are chaotic."""
    return lorenz(y, rho=rho, steps=2000)


def van_der_pol_double(y, *, mu=2.0):
    return _rk4(lambda y: jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]), y, 0.01, 300)


def ode_gradient(y, *, damping=0.1):
    f = lambda y, k: jnp.stack([y[1], -k * y[0] - damping * y[1]])
    return jax.grad(lambda y, k: jnp.sum(_rk4(lambda y: f(y, k), y, 0.05, 100) ** 2), (0, 1))(y, jnp.float32(2.0))


def implicit_heat(u, *, rate=0.4, steps=5):
    def apply(u):
        return (1 + 2 * rate) * u - rate * (jnp.roll(u, 1) + jnp.roll(u, -1))

    solve = lambda _, u: jax.scipy.sparse.linalg.cg(apply, u, tol=0.0, maxiter=15)[0]
    return lax.fori_loop(0, steps, solve, u)


def heat_equation(u, *, rate=0.2, dtype=jnp.float32):
    def step(u, _):
        u = u.astype(dtype)
        spread = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        return (u + jnp.asarray(rate, dtype) * spread).astype(jnp.float32), None

    return lax.scan(step, u, None, length=100)[0]


def wave_equation(u, *, speed=0.5, axis=0, shift=1):
    def step(carry, _):
        before, now = carry
        spread = jnp.roll(now, shift, axis) + jnp.roll(now, -1, axis) - 2 * now
        return (now, 2 * now - before + speed**2 * spread), None

    return lax.scan(step, (u, u), None, length=100)[0][1]


def advection(u, *, speed=0.5, term=1.0):
    def step(_, u):
        slope = (jnp.roll(u, -1) - jnp.roll(u, 1)) / 2
        bend = jnp.roll(u, -1) - 2 * u + jnp.roll(u, 1)
        return u - speed * slope + term * speed**2 / 2 * bend

    return lax.fori_loop(0, 64, step, u)


def n_body(x, v, m, *, softening=1e-3, gravity=1.0):
    def force(x):
        away = x[None] - x[:, None]
        distance = jnp.sum(away**2, axis=-1) + softening
        return gravity * jnp.sum(m[None, :, None] * away * distance[..., None] ** -1.5, axis=1)

    def step(_, state):
        x, v = state
        v = v + 0.005 * force(x)
        return x + 0.01 * (v + 0.0), v + 0.005 * force(x + 0.01 * v)

    return lax.fori_loop(0, 50, step, (x, v))


def lennard_jones_forces(x, *, sigma=1.0, term=1.0):
    def energy(x):
        away = x[None] - x[:, None]
        square = jnp.sum(away**2, axis=-1) + jnp.eye(len(x), dtype=x.dtype) * 1e6
        sixth = (sigma**2 / square) ** 3
        return 2 * jnp.sum(sixth**2 - term * sixth)

    return energy(x), -jax.grad(energy)(x)


def kalman_filter(z, *, noise=0.1, process=1e-3):
    f = jnp.array([[1.0, 1.0], [0.0, 1.0]], jnp.float32)

    def step(carry, z):
        x, p = carry
        x, p = f @ x, f @ p @ f.T + process * jnp.eye(2, dtype=jnp.float32)
        gain = p[:, 0] / (p[0, 0] + noise)
        x, p = x + gain * (z - x[0]), p - jnp.outer(gain, p[0])
        return (x, p), x

    return lax.scan(step, (jnp.zeros(2, jnp.float32), jnp.eye(2, dtype=jnp.float32)), z)[1]


def moving_average(x, *, decay=0.99):
    """An exponential moving average in 1,000 steps."""
    return lax.scan(lambda mean, x: (decay * mean + (1 - decay) * x,) * 2, jnp.zeros_like(x[0]), x)[1]


def linear_recurrence(a, b, *, reverse=False):
    combine = lambda one, two: (one[0] * two[0], two[0] * one[1] + two[1])
    return lax.associative_scan(combine, (a, b), reverse=reverse)[1]


def interpolation(x, xp, fp, *, shift=0):
    return jnp.interp(x, xp, jnp.roll(fp, shift))


def polynomial(x, *, last=-1 / 5040):
    return jnp.polyval(jnp.array([last, 0, 1 / 120, 0, -1 / 6, 0, 1, 0], jnp.float32), x)


def fft(x, *, axis=-1):
    return jnp.fft.fft(x, axis=axis)


def spectral_derivative(x, *, shift=0):
    k = 1j * jnp.arange(shift, x.shape[-1] // 2 + 1 + shift)
    return jnp.fft.irfft(k * jnp.fft.rfft(x), x.shape[-1])


def fft_convolution(x, k, *, shift=0):
    size = x.shape[-1]
    return jnp.fft.irfft(jnp.fft.rfft(jnp.roll(x, shift)) * jnp.fft.rfft(k, size), size)


def poisson_2d(f, *, epsilon=1.0):
    """The Poisson equation by Fourier transforms; a zero divisor is replaced, which XLA's fast math undoes."""
    k = jnp.fft.fftfreq(f.shape[0]).astype(jnp.float32)
    square = k[:, None] ** 2 + k[None, :] ** 2
    return jnp.fft.ifft2(jnp.fft.fft2(f) / jnp.where(square == 0, epsilon, -4 * np.float32(np.pi) ** 2 * square)).real


def erf_inverse(x, *, factor=1.0):
    return jax.scipy.special.erfinv(factor * x)


def log_gamma(x, *, shift=0.0):
    return jax.scipy.special.gammaln(x + shift)


def digamma(x, *, shift=0.0):
    return jax.scipy.special.digamma(x + shift), jax.scipy.special.polygamma(1, x + shift)


def incomplete_gamma(a, x, *, factor=1.0):
    return jax.scipy.special.gammainc(a, factor * x)


def incomplete_beta(a, b, x, *, factor=1.0):
    return jax.scipy.special.betainc(a, b, factor * x)


def bessel(x, *, factor=1.0):
    return jax.scipy.special.i0e(factor * x), jax.scipy.special.i1e(factor * x)


def elementary(x, *, factor=1.0):
    x = factor * x
    return jnp.sin(100 * x), jnp.tanh(x), jnp.log1p(x**2), jnp.expm1(x), jnp.arctan2(x, 1 - x), jnp.abs(x) ** 1.7


def gaussian_tail(x, *, factor=0.5):
    """The tail of a Gaussian down to denormal numbers, which XLA makes zero on a CPU."""
    return jnp.exp(-factor * x**2)


def gaussian_tail_double(x, *, factor=0.5):
    return jnp.exp(-factor * x**2)


def logarithms_with_nan(x, *, factor=1.0):
    return jnp.log(factor * x), jnp.sqrt(x), jnp.arccos(x)


def mean_without_nan(x, *, shift=0):
    x = jnp.where(jnp.abs(x) > 1, jnp.nan, x)
    return jnp.nanmean(jnp.roll(x, shift, 0), axis=0), jnp.cumsum(x, axis=1)


def matmul_double(a, b, *, dtype=jnp.float64):
    return jnp.matmul(a.astype(dtype), b.astype(dtype)).astype(jnp.float64)


def log_likelihood_double(x, mean, scale, *, term=1.0):
    covariance = scale @ scale.T + jnp.eye(len(mean))
    factor = jnp.linalg.cholesky(covariance)
    z = jax.scipy.linalg.solve_triangular(factor, (x - mean).T, lower=True)
    return (
        -0.5 * jnp.sum(z**2, axis=0) - term * jnp.sum(jnp.log(jnp.diag(factor))) - 0.5 * len(mean) * np.log(2 * np.pi)
    )


def complex_product(a, b, *, conjugate=False):
    return a @ (jnp.conj(b) if conjugate else b)


def quantum_evolution(psi, *, step=0.01, potential=0.5):
    """A wave packet in a harmonic potential by split steps."""
    size = len(psi)
    x = jnp.linspace(-8, 8, size, dtype=jnp.float32)
    k = (2 * np.pi * jnp.fft.fftfreq(size, 16 / size)).astype(jnp.float32)
    half, whole = jnp.exp(-0.5j * step * potential * x**2), jnp.exp(-0.5j * step * k**2)
    return lax.fori_loop(0, 50, lambda _, psi: half * jnp.fft.ifft(whole * jnp.fft.fft(half * psi)), psi)


def escape_times(c, *, bound=4.0):
    """The number of iterations until a point of the complex plane escapes."""

    def step(_, state):
        z, count = state
        inside = z.real**2 + z.imag**2 <= bound
        return jnp.where(inside, z * z + c, z), count + inside

    return lax.fori_loop(0, 30, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


_TIME = np.linspace(0, 6, 64, dtype=np.float32)
_POINTS = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3).astype(np.float32) * np.float32(1.2)
_PLANE = (np.linspace(-2, 0.6, 32)[None, :] + 1j * np.linspace(-1.3, 1.3, 32)[:, None]).astype(np.complex64)
_PACKET = (np.exp(-((np.linspace(-8, 8, 128) - 1) ** 2)) * np.exp(1j * np.linspace(-8, 8, 128))).astype(np.complex64)

PROGRAMS = (
    Program(logistic_map, (uniform(201, 32, low=0.1, high=0.9),), {CONSTANT: {"rate": 3.900004}, OFF_BY_ONE: {"steps": 59}}, compare="shape"),
    Program(lorenz, (np.array([1, 2, 20], np.float32),), {CONSTANT: {"rho": 28.0001}, OFF_BY_ONE: {"steps": 99}}),
    Program(lorenz_long, (np.array([1, 2, 20], np.float32),), {CONSTANT: {"rho": 28.0001}}, compare="shape"),
    Program(van_der_pol_double, (np.array([2.0, 0.0]),), {CONSTANT: {"mu": 2.00001}}, x64=True),
    Program(ode_gradient, (np.array([1, 0], np.float32),), {DROPPED: {"damping": 0.0}, CONSTANT: {"damping": 0.1000004}}),
    Program(implicit_heat, (normal(202, 64),), {CONSTANT: {"rate": 0.400002}, OFF_BY_ONE: {"steps": 4}}),
    Program(heat_equation, (uniform(203, 32, 32),), {CONSTANT: {"rate": 0.2000008}, LOW: {"dtype": jnp.bfloat16}}),
    Program(wave_equation, (normal(204, 24, 24),), {SWAPPED: {"axis": 1}, CONSTANT: {"speed": 0.500002}, OFF_BY_ONE: {"shift": 2}}),
    Program(advection, (np.sin(_TIME),), {DROPPED: {"term": 0.0}, CONSTANT: {"speed": 0.500003}}),
    Program(n_body, (normal(205, 8, 3), normal(206, 8, 3), uniform(207, 8)), {EPSILON: {"softening": 1e-9}, CONSTANT: {"gravity": 1.000005}}),
    Program(lennard_jones_forces, (_POINTS + normal(208, 27, 3) / np.float32(20),), {DROPPED: {"term": 0.0}, CONSTANT: {"sigma": 1.000005}}),
    Program(kalman_filter, (normal(209, 200),), {CONSTANT: {"noise": 0.1000004}, DROPPED: {"process": 0.0}}),
    Program(moving_average, (normal(210, 1000, 4),), {CONSTANT: {"decay": 0.990004}}),
    Program(linear_recurrence, (uniform(211, 500), normal(212, 500)), {OFF_BY_ONE: {"reverse": True}}),
    Program(interpolation, (uniform(213, 100, high=9), np.arange(10, dtype=np.float32), normal(214, 10)), {OFF_BY_ONE: {"shift": 1}}),
    Program(polynomial, (normal(215, 128),), {DROPPED: {"last": 0.0}, CONSTANT: {"last": -1 / 5040.02}}),
    Program(fft, (normal(216, 32, 32),), {SWAPPED: {"axis": 0}}),
    Program(spectral_derivative, (normal(217, 4, 64),), {OFF_BY_ONE: {"shift": 1}}),
    Program(fft_convolution, (normal(218, 256), normal(219, 16)), {OFF_BY_ONE: {"shift": 1}}),
    Program(poisson_2d, (normal(220, 24, 24),), {CONSTANT: {"epsilon": 1.00001}}),
    Program(erf_inverse, (uniform(221, 256, low=-0.999, high=0.999),), {CONSTANT: {"factor": 0.999997}}),
    Program(log_gamma, (uniform(222, 256, low=0.1, high=30),), {CONSTANT: {"shift": 3e-6}}),
    Program(digamma, (uniform(223, 128, low=0.5, high=10),), {CONSTANT: {"shift": 3e-6}}),
    Program(incomplete_gamma, (uniform(224, 64, low=0.5, high=5), uniform(225, 64, high=8)), {CONSTANT: {"factor": 1.000003}}),
    Program(incomplete_beta, (uniform(226, 64, low=0.5, high=5), uniform(227, 64, low=0.5, high=5), uniform(228, 64, high=0.99)), {CONSTANT: {"factor": 1.000003}}),
    Program(bessel, (uniform(229, 128, low=-20, high=20),), {CONSTANT: {"factor": 1.000003}}),
    Program(elementary, (uniform(230, 128, low=-3, high=3),), {CONSTANT: {"factor": 1.000003}}),
    Program(gaussian_tail, (uniform(231, 128, low=0, high=14),), {CONSTANT: {"factor": 0.500002}}),
    Program(gaussian_tail_double, (uniform(232, 128, low=0, high=38.5, dtype=np.float64),), {CONSTANT: {"factor": 0.500002}}, x64=True),
    Program(logarithms_with_nan, (normal(233, 128),), {CONSTANT: {"factor": 1.000003}}),
    Program(mean_without_nan, (normal(234, 16, 32),), {}),
    Program(matmul_double, (normal(235, 32, 32, dtype=np.float64), normal(236, 32, 32, dtype=np.float64)), {LOW: {"dtype": jnp.float32}}, x64=True),
    Program(log_likelihood_double, (normal(237, 40, 6, dtype=np.float64), normal(238, 6, dtype=np.float64), normal(239, 6, 6, dtype=np.float64)), {DROPPED: {"term": 0.0}}, x64=True, lapack=True),
    Program(complex_product, (normal(240, 24, 24) + 1j * normal(241, 24, 24), normal(242, 24, 24) + 1j * normal(243, 24, 24)), {}),
    Program(quantum_evolution, (_PACKET,), {CONSTANT: {"potential": 0.500002}}),
    Program(escape_times, (_PLANE,), {CONSTANT: {"bound": 4.00004}}),
)  # fmt: skip
