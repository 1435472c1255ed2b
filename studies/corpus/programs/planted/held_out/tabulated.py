"""Physics with tables and constants inside: interpolated tables, integrators, harmonics, bodies, lattices, rays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import normal, uniform
from studies.corpus.programs.program import CONSTANT, DROPPED, EPSILON, OFF_BY_ONE, Program

_PRESSURE = np.cumsum(uniform(580, 40)).astype(np.float32)
_SPECTRUM = uniform(581, 64, low=0.2, high=1.0)
_MASSES = np.array([1.0, 9.5e-4, 2.9e-4, 4.4e-5, 5.2e-5], np.float32)
_PLACES = np.array(
    [[0, 0, 0], [-3.5, -3.8, -1.5], [9.0, 3.0, 1.2], [8.3, -16.3, -7.2], [11.5, -25.7, -10.8]], np.float32
)
_SPEEDS = np.array(
    [[0, 0, 0], [2.06, -1.53, -0.71], [-0.61, 2.02, 0.86], [1.29, 0.52, 0.21], [1.06, 0.43, 0.15]], np.float32
)


def equation_of_state(density, *, shift=0):
    """The values of a table on a logarithmic grid, interpolated."""
    place = (jnp.log(density) - jnp.log(0.1)) / jnp.log(100.0) * 39
    low = jnp.clip(jnp.floor(place).astype(jnp.int32), 0, 38)
    table = jnp.roll(_PRESSURE, shift)
    return table[low] * (1 - (place - low)) + table[low + 1] * (place - low)


def sound_speed(density, *, exponent=1.4):
    """The speed of sound by the derivative of an interpolated table."""
    pressure = lambda density: jnp.interp(density**exponent, jnp.linspace(0, 12, 40), _PRESSURE)
    return jnp.sqrt(jax.vmap(jax.grad(pressure))(density))


def bicubic_table(places, *, scale=1.0):
    """A computed table of two variables, interpolated by cubic polynomials through four by four neighbours."""
    table = scale * jnp.sin(jnp.arange(12.0))[:, None] * jnp.cos(0.7 * jnp.arange(12.0))

    def at(place):
        low = jnp.clip(jnp.floor(place).astype(jnp.int32), 1, 9)
        t = place - low
        weights = jnp.stack(
            [-t * (t - 1) * (t - 2) / 6, (t * t - 1) * (t - 2) / 2, -t * (t + 1) * (t - 2) / 2, t * (t * t - 1) / 6]
        )
        return weights[:, 0] @ lax.dynamic_slice(table, low - 1, (4, 4)) @ weights[:, 1]

    return jax.vmap(at)(places)


def black_body(temperatures, *, second=1.4387769):
    """Planck's law over a computed grid of wavelengths, and its sum."""
    wave = jnp.linspace(0.2, 3.0, 64)
    light = 1.191 / wave**5 / jnp.expm1(second / (wave * temperatures[:, None]))
    return light, jnp.sum(light * _SPECTRUM, axis=-1) * (wave[1] - wave[0])


def spring_chain(*, stiffness=4.0, steps=200):
    """Leapfrog steps of a chain of springs from a computed start, without arguments."""
    x = jnp.sin(jnp.arange(24.0) * 0.5) * 0.3

    def force(x):
        d = jnp.diff(jnp.pad(x, 1))
        return stiffness * jnp.diff(d + 0.3 * d**3)

    def step(_, state):
        x, v = state
        v = v + 0.01 * force(x)
        x = x + 0.02 * v
        return x, v + 0.01 * force(x)

    return lax.fori_loop(0, steps, step, (x, jnp.zeros_like(x)))


def particle_in_a_table(starts, *, kick=1.0):
    """Particles in a periodic potential that is a table; the force is the derivative of its interpolation."""
    potential = jnp.cos(jnp.arange(64) * (2 * np.pi / 64)) + 0.3 * jnp.cos(jnp.arange(64) * (6 * np.pi / 64) + 1)

    def force(x):
        place = x % 64
        low = jnp.floor(place).astype(jnp.int32)
        slope = (jnp.roll(potential, -1) - jnp.roll(potential, 1)) / 2
        return -(slope[low] * (1 - (place - low)) + slope[(low + 1) % 64] * (place - low))

    def step(state, _):
        x, v = state
        v = v + 0.1 * force(x)
        return (x + 0.1 * v, v), x

    return lax.scan(step, (starts, kick * jnp.ones_like(starts)), None, length=80)[1]


def spherical_harmonics(points, *, term=1.0):
    """Real spherical harmonics up to degree 3, by polynomials of the unit vector."""
    x, y, z = (points / jnp.linalg.norm(points, axis=-1, keepdims=True)).T
    parts = [jnp.ones_like(x), y, z, x, x * y, y * z, term * (3 * z**2 - 1) / np.sqrt(12), x * z, (x**2 - y**2) / 2]
    parts += [
        y * (3 * x**2 - y**2),
        x * y * z,
        y * (5 * z**2 - 1),
        z * (5 * z**2 - 3),
        x * (5 * z**2 - 1),
        z * (x**2 - y**2),
    ]
    return jnp.stack(parts, axis=-1)


def legendre_recursion(*, degrees=20):
    """Normalized Legendre polynomials of degree 0 to 19 on a computed grid, without arguments."""
    x = jnp.cos(jnp.linspace(0.05, 3.0, 40))

    def step(carry, degree):
        before, now = carry
        after = ((2 * degree + 1) * x * now - degree * before) / (degree + 1)
        return (now, after), now * jnp.sqrt(degree + 0.5)

    return lax.scan(step, (jnp.ones_like(x), x), jnp.arange(1.0, degrees))[1]


def outer_planets(*, gravity=39.478, steps=60):
    """The orbits of five planets from constants, in 20 steps a year, without arguments."""

    def pull(x):
        away = x[None] - x[:, None]
        square = jnp.sum(away**2, axis=-1) + jnp.eye(5)
        return gravity * jnp.sum(_MASSES[None, :, None] * away * (square**-1.5)[..., None], axis=1)

    def step(state, _):
        x, v = state
        v = v + 0.025 * pull(x)
        x = x + 0.05 * v
        return (x, v + 0.025 * pull(x)), x[1:]

    return lax.scan(step, (jnp.asarray(_PLACES), jnp.asarray(_SPEEDS)), None, length=steps)[1][::6]


def kepler_equation(*, eccentricity=0.6, rounds=6):
    """Kepler's equation for computed mean anomalies, by Newton's method, without arguments."""
    mean = jnp.linspace(0, 2 * np.pi, 50)
    newton = lambda _, e: e - (e - eccentricity * jnp.sin(e) - mean) / (1 - eccentricity * jnp.cos(e))
    e = lax.fori_loop(0, rounds, newton, mean)
    return e, jnp.sqrt(1 - eccentricity**2) * jnp.sin(e), jnp.cos(e) - eccentricity


def _face_centred(cells=2, side=1.56):
    base = jnp.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    corners = jnp.stack(jnp.meshgrid(*[jnp.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    return ((corners + base) * side).reshape(-1, 3)


def _lattice_energy(x, sigma, box):
    away = x[:, None] - x[None]
    away = away - box * jnp.round(away / box)
    square = jnp.sum(away**2, axis=-1) + 1e6 * jnp.eye(len(x))
    sixth = (sigma**2 / square) ** 3
    return 2 * jnp.sum(sixth**2 - sixth)


def lattice_forces(*, sigma=1.0, shake=0.03):
    """Forces between nearest images in a lattice that is displaced by sines, without arguments."""
    x = _face_centred()
    x = x + shake * jnp.sin(13 * jnp.arange(x.size).reshape(x.shape) + 0.3)
    return jax.value_and_grad(_lattice_energy)(x, sigma, 3.12)


def perfect_lattice_forces(*, side=1.56):
    """Forces in a perfect lattice, which are zero but for rounding, and its energy, which is not, without arguments."""
    return jax.value_and_grad(_lattice_energy)(_face_centred(side=side), 1.0, 2 * side)


def ewald_energy(charges, *, width=0.9):
    """The Ewald energy of point charges in a box: near images by erfc, the others by waves."""
    x = _face_centred()[: len(charges)] + 0.05 * jnp.cos(jnp.arange(3.0 * len(charges))).reshape(-1, 3)
    away = x[:, None] - x[None]
    away = away - 3.12 * jnp.round(away / 3.12)
    far = jnp.sqrt(jnp.sum(away**2, axis=-1) + jnp.eye(len(x)))
    near = 0.5 * jnp.sum(charges[:, None] * charges * jax.scipy.special.erfc(width * far) / far * (1 - jnp.eye(len(x))))
    waves = jnp.stack(jnp.meshgrid(*[jnp.arange(-3, 4)] * 3, indexing="ij"), -1).reshape(-1, 3) * (2 * np.pi / 3.12)
    square = jnp.sum(waves**2, axis=-1)
    factor = jnp.where(square > 0, jnp.exp(-square / (4 * width**2)) / jnp.where(square > 0, square, 1), 0)
    shape = jnp.exp(1j * (waves @ x.T)) @ charges
    return near, 2 * np.pi / 3.12**3 * jnp.sum(factor * jnp.abs(shape) ** 2)


def _magnetic_loop(points, *, pieces=64):
    """Return the magnetic field of a ring of current, which is cut into pieces."""
    angle = (jnp.arange(64) + 0.5) * (2 * np.pi / pieces)
    place = jnp.stack([jnp.cos(angle), jnp.sin(angle), jnp.zeros_like(angle)], -1)
    along = jnp.stack([-jnp.sin(angle), jnp.cos(angle), jnp.zeros_like(angle)], -1)
    away = points[:, None] - place
    return jnp.sum(jnp.cross(along, away) / jnp.sum(away**2, axis=-1, keepdims=True) ** 1.5, axis=1) / pieces


def magnetic_gradient(points, *, pieces=64):
    """The gradient, in space, of the strength of a loop's magnetic field."""
    strength = lambda point: jnp.sum(_magnetic_loop(point[None], pieces=pieces) ** 2)
    return jax.vmap(jax.grad(strength))(points)


def sphere_image(*, radius=0.8):
    """The image of a lit ball, without arguments: a pixel at the edge jumps, since its ray hits or misses the ball."""
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, 25), jnp.linspace(-1, 1, 25), indexing="ij")
    square = radius**2 - x**2 - y**2
    z = jnp.sqrt(jnp.maximum(square, 0))
    light = (0.4 * x - 0.5 * y + 0.77 * z) / radius
    return jnp.where(square > 0, jnp.maximum(light, 0.05), 0.0)


def normal_modes(*, stiffness=1.0):
    """The frequencies of a chain of unequal masses, by eigenvalues, without arguments."""
    masses = 1 + 0.3 * jnp.sin(jnp.arange(12.0))
    matrix = stiffness * (2 * jnp.eye(12) - jnp.eye(12, k=1) - jnp.eye(12, k=-1))
    return jnp.sqrt(jnp.linalg.eigvalsh(matrix / jnp.sqrt(masses[:, None] * masses)))


def gaussian_process(values, *, length=0.7, noise=1e-2):
    """Mean and variance of a Gaussian process between its points; the program computes the kernel."""
    x, between = jnp.linspace(0, 4, 16), jnp.linspace(0.1, 3.9, 20)
    kernel = lambda a, b: jnp.exp(-0.5 * ((a[:, None] - b) / length) ** 2)
    factor = jnp.linalg.cholesky(kernel(x, x) + noise * jnp.eye(16))
    solved = jax.scipy.linalg.cho_solve((factor, True), values)
    half = jax.scipy.linalg.solve_triangular(factor, kernel(x, between), lower=True)
    return kernel(between, x) @ solved, 1 - jnp.sum(half**2, axis=0)


def reaction_network(*, rate=0.7, steps=60):
    """Three chemical reactions by implicit Euler steps with Newton's method, without arguments."""

    def flow(y):
        a, b, c = y
        return jnp.stack([-rate * a + 3.0 * b * c, rate * a - 3.0 * b * c - 5.0 * b**2, 5.0 * b**2])

    def step(y, _):
        def newton(_, z):
            residual = z - y - 0.05 * flow(z)
            return z - jnp.linalg.solve(jnp.eye(3) - 0.05 * jax.jacfwd(flow)(z), residual)

        y = lax.fori_loop(0, 3, newton, y)
        return y, y

    return lax.scan(step, jnp.array([1.0, 0.0, 0.0]), None, length=steps)[1]


_POINTS = normal(582, 16, 3)

PROGRAMS = (
    Program(equation_of_state, (uniform(583, 60, low=0.12, high=9.0),), {OFF_BY_ONE: {"shift": 1}}),
    Program(sound_speed, (uniform(584, 40, low=0.2, high=4.0),), {CONSTANT: {"exponent": 1.400014}}, jumps=True),
    Program(bicubic_table, (uniform(585, 40, 2, low=1.0, high=10.0),), {CONSTANT: {"scale": 1.00001}}),
    Program(black_body, (uniform(586, 12, low=0.4, high=1.2),), {CONSTANT: {"second": 1.4387913}}),
    Program(spring_chain, (), {CONSTANT: {"stiffness": 4.00004}, OFF_BY_ONE: {"steps": 199}}),
    Program(particle_in_a_table, (uniform(588, 6, high=64.0),), {CONSTANT: {"kick": 1.00001}}),
    Program(spherical_harmonics, (_POINTS,), {DROPPED: {"term": 0.0}}),
    Program(legendre_recursion, (), {}),
    Program(outer_planets, (), {CONSTANT: {"gravity": 39.4784}}),
    Program(kepler_equation, (), {CONSTANT: {"eccentricity": 0.600006}, OFF_BY_ONE: {"rounds": 3}}),
    Program(lattice_forces, (), {CONSTANT: {"sigma": 1.00001}}),
    Program(perfect_lattice_forces, (), {CONSTANT: {"side": 1.560016}}),
    Program(ewald_energy, (np.tile(np.array([1, -1], np.float32), 12),), {CONSTANT: {"width": 0.900009}}),
    Program(magnetic_gradient, (_POINTS + np.float32(2),), {OFF_BY_ONE: {"pieces": 65}}),
    Program(sphere_image, (), {CONSTANT: {"radius": 0.800008}}, jumps=True),
    Program(normal_modes, (), {CONSTANT: {"stiffness": 1.00001}}, lapack=True),
    Program(gaussian_process, (normal(591, 16),), {EPSILON: {"noise": 1e-3}, CONSTANT: {"length": 0.700007}}, lapack=True),
    Program(reaction_network, (), {CONSTANT: {"rate": 0.700007}}, lapack=True),
)  # fmt: skip
