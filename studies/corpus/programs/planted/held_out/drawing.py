"""Samplers, with distributions and random keys that are computed inside the program."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.program import CONSTANT, OFF_BY_ONE, SEED, Program


def _logits(rows, columns):
    return 2 * jnp.sin(jnp.arange(rows * columns) * 1.7 + 0.2).reshape(rows, columns)


def categorical_of_made_logits(*, seed=5, scale=1.0):
    """Categories by the argmax of logits plus noise: a small change of a sum makes an integer jump."""
    return jax.random.categorical(jax.random.key(seed), scale * _logits(40, 12))


def gumbel_top_words(*, seed=6):
    """The three largest logits with noise, and their places, which jump if two sums are almost the same."""
    logits = jax.nn.log_softmax(_logits(16, 20))
    return lax.top_k(logits + jax.random.gumbel(jax.random.key(seed), logits.shape), 3)


def relaxed_one_hot_gradient(logits, *, seed=7, temperature=0.4):
    def loss(logits):
        noise = jax.random.gumbel(jax.random.key(seed), logits.shape)
        return jnp.sum(jax.nn.softmax((logits + noise) / temperature) @ jnp.cos(jnp.arange(9.0)))

    return jax.grad(loss)(logits)


def resampled_particles(*, seed=8, sharpness=4.0):
    """Eight rounds of a particle filter without arguments: a last bit may decide which particles are resampled."""

    def step(particles, key):
        move, pick = jax.random.split(key)
        particles = 0.95 * particles + 0.3 * jax.random.normal(move, particles.shape)
        weights = jax.nn.softmax(-sharpness * (particles - 0.5) ** 2)
        places = (jnp.arange(64) + jax.random.uniform(pick)) / 64
        chosen = jnp.minimum(jnp.searchsorted(jnp.cumsum(weights), places), 63)
        return particles[chosen], weights @ particles

    start = jnp.linspace(-2, 2, 64)
    return lax.scan(step, start, jax.random.split(jax.random.key(seed), 8))


def softly_resampled(*, seed=9, width=0.2):
    """A particle filter without arguments that chooses nothing: each particle becomes a mean of its neighbours."""

    def step(particles, key):
        particles = 0.95 * particles + 0.3 * jax.random.normal(key, particles.shape)
        weights = jax.nn.softmax(-2 * (particles - 0.5) ** 2)
        near = jax.nn.softmax(-((particles[:, None] - particles) ** 2) / width + jnp.log(weights))
        return near @ particles, weights @ particles

    return lax.scan(step, jnp.linspace(-2, 2, 32), jax.random.split(jax.random.key(seed), 8))


def metropolis_from_constants(*, seed=10, width=0.6):
    """60 Metropolis steps of sixteen chains, without arguments: a last bit may decide whether a step is accepted."""
    density = lambda x: -0.5 * x[0] ** 2 - 2 * (x[1] - x[0] ** 2) ** 2

    def step(x, key):
        one, two = jax.random.split(key)
        moved = x + width * jax.random.normal(one, x.shape)
        gain = jax.vmap(density)(moved) - jax.vmap(density)(x)
        return jnp.where((jnp.log(jax.random.uniform(two, (16,))) < gain)[:, None], moved, x), None

    start = jnp.stack([jnp.linspace(-1, 1, 16), jnp.zeros(16)], -1)
    return lax.scan(step, start, jax.random.split(jax.random.key(seed), 60))[0]


def langevin_steps(*, seed=11, rate=0.02):
    """Langevin steps without arguments: noise and gradients are added, and nothing is chosen."""
    slope = jax.vmap(jax.grad(lambda x: -0.5 * jnp.sum(x**2) - 0.3 * jnp.sum(jnp.cos(3 * x))))

    def step(x, key):
        return x + rate * slope(x) + jnp.sqrt(2 * rate) * jax.random.normal(key, x.shape), None

    start = jnp.sin(jnp.arange(24.0)).reshape(8, 3)
    return lax.scan(step, start, jax.random.split(jax.random.key(seed), 50))[0]


def rejected_by_where(*, seed=12, bound=1.4):
    """The first of twenty proposals that is under a curve, without arguments: a last bit may decide which one it is."""
    place, height = jax.random.split(jax.random.key(seed))
    x = jax.random.uniform(place, (64, 20), minval=-2.0, maxval=2.0)
    under = jax.random.uniform(height, (64, 20)) * bound < jnp.exp(-(x**2)) * (1 + 0.3 * jnp.sin(5 * x))
    return jnp.take_along_axis(x, jnp.argmax(under, axis=1)[:, None], axis=1)[:, 0]


def inverse_of_a_table(draws, *, shift=0):
    """Draws through the inverse of a distribution function that is tabulated inside and interpolated."""
    x = jnp.linspace(-3, 3, 50)
    share = jnp.cumsum(jax.nn.softmax(jnp.roll(-(x**2) + jnp.cos(3 * x), shift)))
    return jnp.interp(draws, share, x)


def stratified_counts(draws, *, power=1.5):
    """How often each of ten categories is drawn: these integers jump."""
    share = jnp.cumsum(jnp.arange(1.0, 11.0) ** -power)
    return jnp.bincount(jnp.searchsorted(share / share[-1], (jnp.arange(200) + draws) / 200), length=10)


def halton_points(numbers, *, term=0.0):
    """Halton points of integers (reversed digits in base 2 and 3), turned into normal draws."""

    def turned(base, digits):
        place = base ** jnp.arange(digits)
        return jnp.sum((numbers[:, None] // place % base) * (1.0 / base) ** (jnp.arange(digits) + 1), axis=-1)

    even = jnp.stack([turned(2, 9), turned(3, 6)], axis=-1) + 1e-3
    return jax.scipy.special.ndtri(even) + term


def reparametrized_gradient(mean, *, seed=17, samples=64):
    """The gradient of an expectation over random draws that the program makes itself."""

    def loss(mean, log_scale):
        z = jax.random.normal(jax.random.key(seed), (samples, len(mean)))
        x = mean + jnp.exp(log_scale) * z
        return jnp.mean(jnp.sum(jnp.cosh(0.5 * x), axis=-1)) - jnp.sum(log_scale)

    return jax.grad(loss, (0, 1))(mean, 0.1 * jnp.cos(jnp.arange(1.0 * len(mean))))


PROGRAMS = (
    Program(categorical_of_made_logits, (), {SEED: {"seed": 6}}, jumps=True),
    Program(gumbel_top_words, (), {SEED: {"seed": 7}}, jumps=True),
    Program(relaxed_one_hot_gradient, (normal(600, 12, 9),), {SEED: {"seed": 8}, CONSTANT: {"temperature": 0.400004}}),
    Program(resampled_particles, (), {SEED: {"seed": 9}, CONSTANT: {"sharpness": 4.00004}}, jumps=True),
    Program(softly_resampled, (), {SEED: {"seed": 10}, CONSTANT: {"width": 0.200002}}),
    Program(metropolis_from_constants, (), {SEED: {"seed": 11}, CONSTANT: {"width": 0.600006}}, jumps=True),
    Program(langevin_steps, (), {SEED: {"seed": 12}, CONSTANT: {"rate": 0.0200002}}),
    Program(rejected_by_where, (), {SEED: {"seed": 13}}, jumps=True),
    Program(inverse_of_a_table, (uniform(601, 80, low=0.01, high=0.99),), {OFF_BY_ONE: {"shift": 1}}),
    Program(stratified_counts, (uniform(602, 200),), {OFF_BY_ONE: {"power": 1.6}}, jumps=True),
    Program(halton_points, (integers(603, 60, high=500) + np.int32(1),), {CONSTANT: {"term": 1e-5}}),
    Program(reparametrized_gradient, (normal(604, 6),), {SEED: {"seed": 18}, OFF_BY_ONE: {"samples": 63}}),
)  # fmt: skip
