"""Scientific programs at real sizes, in jax alone: equations, signals, linear algebra, geometry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse
from jax.experimental.ode import odeint

from studies.corpus.programs.inputs import integers, normal


@pytest.mark.export_compat(vjp_order=1)
def test_ode_solve(export_golden):
    """The Van der Pol equation by an adaptive Runge-Kutta method; the gradient solves the adjoint equation."""

    def solve(y, stiffness):
        def slope(y, t, stiffness):
            return jnp.stack([y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]])

        return odeint(slope, y, jnp.linspace(0.0, 3.0, 16), stiffness, rtol=1e-4, atol=1e-5, mxstep=200)

    export_golden(jax.jit(solve), np.array([1.0, 0.5], np.float32), np.float32(1.5))


@pytest.mark.export_compat(vjp_order=1)
def test_leapfrog_of_bodies(export_golden):
    """Leapfrog steps of sixteen bodies."""

    def simulate(place, speed):
        def pull(place):
            apart = place[:, None] - place
            return -(apart / (jnp.sum(apart**2, -1, keepdims=True) + 0.5) ** 1.5).sum(1)

        def step(state, _):
            place, speed = state
            half = speed + 0.005 * pull(place)
            place = place + 0.01 * half
            return (place, half + 0.005 * pull(place)), jnp.sum(half**2)

        return jax.lax.scan(step, (place, speed), None, length=32)

    export_golden(jax.jit(simulate), normal(0, 16, 3), normal(1, 16, 3, scale=0.1))


@pytest.mark.export_compat(vjp_order=1)
def test_heat_equation(export_golden):
    """The heat equation by a stencil on a grid of 64 x 64, in 40 steps."""

    def heat(grid, rate):
        def step(_, u):
            around = sum(jnp.roll(u, shift, axis) for shift in (-1, 1) for axis in (0, 1))
            return (u + rate * (around - 4 * u)).at[0].set(0.0).at[:, -1].set(1.0)

        return jax.lax.fori_loop(0, 40, step, grid)

    export_golden(jax.jit(heat), normal(0, 64, 64), np.float32(0.2))


@pytest.mark.export_compat(vjp_order=1)
def test_spectral_flow(export_golden):
    """The vorticity of a flow on a torus of 64 x 64 by FFT, in eight steps of second order."""

    def flow(vorticity):
        wave = jnp.fft.fftfreq(64, 1 / 64)
        kx, ky = wave[:, None], wave[None, :33].at[-1].set(32)
        square = (kx**2 + ky**2).at[0, 0].set(1.0)

        def slope(w):
            stream = w / square
            velocity = [jnp.fft.irfft2(1j * ky * stream), jnp.fft.irfft2(-1j * kx * stream)]
            moved = velocity[0] * jnp.fft.irfft2(1j * kx * w) + velocity[1] * jnp.fft.irfft2(1j * ky * w)
            return -jnp.fft.rfft2(moved) - 0.01 * square * w

        def step(_, w):
            return w + 0.01 * slope(w + 0.005 * slope(w))

        return jnp.fft.irfft2(jax.lax.fori_loop(0, 8, step, jnp.fft.rfft2(vorticity)))

    export_golden(jax.jit(flow), normal(0, 64, 64))


@pytest.mark.export_compat(vjp_order=1)
def test_spectrogram(export_golden):
    """The spectrogram of a signal in 24 bands and in decibels, by FFTs of windows of 256 samples."""

    def spectrogram(signal):
        frames = signal[jnp.arange(0, 4096 - 255, 128)[:, None] + jnp.arange(256)] * jnp.hanning(256)
        power = jnp.abs(jnp.fft.rfft(frames)) ** 2
        centres = jnp.linspace(0, 128, 26)
        bands = jnp.maximum(0, 1 - jnp.abs(jnp.arange(129)[:, None] - centres[1:-1]) / (centres[1] - centres[0]))
        return 10 * jnp.log10(power @ bands + 1e-3)

    export_golden(jax.jit(spectrogram), normal(0, 4096))


@pytest.mark.export_compat(vjp_order=1)
def test_convolution_by_fft(export_golden):
    export_golden(
        jax.jit(lambda x, kernel: jax.scipy.signal.fftconvolve(x, kernel, mode="same")),
        *(normal(0, 4, 64, 48), normal(1, 1, 9, 9)),
    )


@pytest.mark.export_compat(vjp_order=1)
def test_linear_solve(export_golden):
    export_golden(jax.jit(lambda a, b: jnp.linalg.solve(a + 16 * jnp.eye(64), b)), normal(0, 64, 64), normal(1, 64, 4))


@pytest.mark.export_compat(vjp_order=1)
def test_gaussian_process(export_golden):
    """Gaussian process regression with 64 observations by Cholesky: likelihood, predictions and variances."""

    def fit(x, y, wanted, length, noise):
        def kernel(a, b):
            return jnp.exp(-0.5 * jnp.sum((a[:, None] - b) ** 2, -1) / length**2)

        lower = jax.scipy.linalg.cholesky(kernel(x, x) + noise * jnp.eye(64), lower=True)
        weights = jax.scipy.linalg.cho_solve((lower, True), y)
        cross = kernel(wanted, x)
        half = jax.scipy.linalg.solve_triangular(lower, cross.T, lower=True)
        likelihood = -0.5 * y @ weights - jnp.sum(jnp.log(jnp.diagonal(lower)))
        return likelihood, cross @ weights, 1 - jnp.sum(half**2, 0)

    arguments = normal(0, 64, 3), normal(1, 64), normal(2, 16, 3)
    export_golden(jax.jit(fit), *arguments, np.float32(1.0), np.float32(0.1))


@pytest.mark.export_compat(vjp_order=1)
def test_least_squares_by_qr(export_golden):
    def fit(a, b):
        q, r = jnp.linalg.qr(a)
        return jax.scipy.linalg.solve_triangular(r, q.T @ b)

    export_golden(jax.jit(fit), normal(0, 96, 24), normal(1, 96, 2))


@pytest.mark.export_compat
def test_principal_components(export_golden):
    """Projections of low rank, which do not depend on the signs of singular vectors."""

    def components(x):
        left, values, right = jnp.linalg.svd(x - x.mean(0), full_matrices=False)
        return (left[:, :4] * values[:4]) @ right[:4], jnp.linalg.eigvalsh(jnp.cov(x.T))

    export_golden(jax.jit(components), normal(0, 80, 24) * np.linspace(4, 0.5, 24, dtype=np.float32))


@pytest.mark.export_compat(vjp_order=1)
def test_conjugate_gradients(export_golden):
    """A Poisson equation on 24 x 24 by conjugate gradients without a matrix; its gradient solves it again."""

    def solve(right):
        def minus_laplace(u):
            return 4 * u - sum(
                jnp.pad(u, 1)[1 + i : 25 + i, 1 + j : 25 + j] for i, j in ((0, 1), (0, -1), (1, 0), (-1, 0))
            )

        return jax.scipy.sparse.linalg.cg(minus_laplace, right, tol=1e-6, maxiter=100)[0]

    export_golden(jax.jit(solve), normal(0, 24, 24))


@pytest.mark.export_compat(vjp_order=1)
def test_implicit_root(export_golden):
    """Kepler's equation for 256 planets by Newton's method in a while loop, with the implicit gradient."""

    def root(mean, eccentricity):
        def newton(f, start):
            def step(state):
                x, _, count = state
                move = f(x) / (1 - eccentricity * jnp.cos(x))
                return x - move, jnp.abs(move).max(), count + 1

            return jax.lax.while_loop(lambda s: (s[1] > 1e-6) & (s[2] < 20), step, (start, jnp.inf, 0))[0]

        return jax.lax.custom_root(
            lambda x: x - eccentricity * jnp.sin(x) - mean,
            *(mean, newton, lambda g, y: y / g(jnp.ones_like(y))),
        )

    export_golden(jax.jit(root), np.linspace(0, 6, 256, dtype=np.float32), np.linspace(0, 0.8, 256, dtype=np.float32))


@pytest.mark.export_compat(vjp_order=1)
def test_sparse_product(export_golden):
    """A product with a sparse matrix (BCOO) of 256 x 128 that has 1,500 entries."""

    def product(data, indices, x):
        return sparse.BCOO((data, indices), shape=(256, 128)) @ x

    indices = np.stack([integers(0, 1500, high=256), integers(1, 1500, high=128)], -1)
    export_golden(jax.jit(product), normal(2, 1500), indices, normal(3, 128, 8))


@pytest.mark.export_compat(vjp_order=1)
def test_image_warp(export_golden):
    """An image of 48 x 48, rotated by linear and enlarged by cubic interpolation."""

    def warp(image, angle):
        rows, columns = jnp.mgrid[:48, :48] - 23.5
        turned = [rows * jnp.cos(angle) - columns * jnp.sin(angle), rows * jnp.sin(angle) + columns * jnp.cos(angle)]
        turned = jax.scipy.ndimage.map_coordinates(image, [c + 23.5 for c in turned], order=1)
        return jax.image.resize(turned, (72, 60), "cubic")

    export_golden(jax.jit(warp), normal(0, 48, 48), np.float32(0.3))


@pytest.mark.export_compat(vjp_order=1)
def test_rendered_spheres(export_golden):
    """A rendered picture of five spheres: rays of 32 x 32 pixels march through a distance field, and are shaded."""

    def render(centres, radii):
        grid = jnp.linspace(-1, 1, 32)
        rays = jnp.stack([*jnp.meshgrid(grid, grid), jnp.ones((32, 32))], -1)
        rays = rays / jnp.linalg.norm(rays, axis=-1, keepdims=True)

        def distance(point):
            each = jnp.linalg.norm(point[..., None, :] - centres, axis=-1) - radii
            return -jax.nn.logsumexp(-8 * each, -1) / 8

        def march(depth, _):
            return depth + 0.8 * distance(rays * depth[..., None]), None

        depth, _ = jax.lax.scan(march, jnp.zeros((32, 32)), None, length=16)
        normals = jax.grad(lambda p: distance(p).sum())(rays * depth[..., None])
        return jnp.where(depth < 8, jnp.maximum(normals @ jnp.array([0.5, -0.5, -0.7]), 0.1), 0.0)

    export_golden(
        jax.jit(render),
        normal(0, 5, 3, scale=0.6) + np.array([0, 0, 3], np.float32),
        np.linspace(0.3, 0.7, 5, dtype=np.float32),
    )


@pytest.mark.export_compat(vjp_order=1)
def test_special_functions(export_golden):
    def all_of_them(x, y):
        a, b = jnp.exp(x), jnp.exp(y)
        share = jax.nn.sigmoid(x * y)
        special = jax.scipy.special
        return (
            *(special.gammaln(a), special.digamma(b), special.betainc(1.5, 2.5, share)),
            *(special.gammainc(1.5, a), special.erf(x), special.ndtri(share), special.i0e(x), special.i1e(y)),
            *(special.logsumexp(x, 1), special.xlogy(a, b), jnp.sinc(x)),
        )

    export_golden(jax.jit(all_of_them), normal(0, 32, 32, scale=0.7), normal(1, 32, 32, scale=0.7))
