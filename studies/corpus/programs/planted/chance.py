"""Random numbers, Monte Carlo, sorting and other programs whose results jump."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.program import CONSTANT, DROPPED, OFF_BY_ONE, SEED, SWAPPED, Program


def uniform_samples(*, seed=0, low=-1.0):
    return jax.random.uniform(jax.random.key(seed), (256,), minval=low)


def normal_samples(*, seed=0):
    return jax.random.normal(jax.random.key(seed), (16, 16))


def laplace_samples(*, seed=0):
    return jax.random.laplace(jax.random.key(seed), (128,))


def truncated_normal_samples(lower, *, seed=0):
    return jax.random.truncated_normal(jax.random.key(seed), lower, lower + 2)


def categorical_samples(logits, *, seed=0, axis=-1):
    return jax.random.categorical(jax.random.key(seed), logits, axis=axis)


def permutation(*, seed=0):
    return jax.random.permutation(jax.random.key(seed), 100)


def gumbel_softmax(logits, *, seed=0, temperature=0.5):
    noise = jax.random.gumbel(jax.random.key(seed), logits.shape)
    return jax.nn.softmax((logits + noise) / temperature)


def random_walk(*, seed=0, dtype=jnp.float32):
    steps = jax.random.normal(jax.random.key(seed), (1000,))
    return lax.scan(lambda at, step: ((at + step).astype(dtype).astype(jnp.float32),) * 2, jnp.float32(0), steps)[1]


def key_splits(*, seed=0):
    keys = jax.random.split(jax.random.key(seed), 4)
    return jax.random.key_data(keys), jax.vmap(lambda key: jax.random.normal(key, (3,)))(keys)


def _density(x, scale=1.0):
    return -0.5 * scale * jnp.sum(x**2) - 0.25 * jnp.sum((x[1:] - x[:-1] ** 2) ** 2)


def metropolis(x, *, seed=0, scale=1.0):
    def step(carry, key):
        x, value = carry
        one, two = jax.random.split(key)
        moved = x + 0.3 * jax.random.normal(one, x.shape)
        other = _density(moved, scale)
        accept = jnp.log(jax.random.uniform(two)) < other - value
        x, value = jnp.where(accept, moved, x), jnp.where(accept, other, value)
        return (x, value), x

    return lax.scan(step, (x, _density(x, scale)), jax.random.split(jax.random.key(seed), 200))[1]


def hamiltonian_chain(x, *, seed=0, scale=1.0, leaps=10):
    slope = jax.grad(_density)

    def leap(_, state):
        x, p = state
        p = p + 0.05 * slope(x, scale)
        x = x + 0.1 * p
        return x, p + 0.05 * slope(x, scale)

    def step(x, key):
        one, two = jax.random.split(key)
        p = jax.random.normal(one, x.shape)
        moved, q = lax.fori_loop(0, leaps, leap, (x, p))
        gain = _density(moved, scale) - _density(x, scale) + 0.5 * jnp.sum(p**2) - 0.5 * jnp.sum(q**2)
        x = jnp.where(jnp.log(jax.random.uniform(two)) < gain, moved, x)
        return x, x

    return lax.scan(step, x, jax.random.split(jax.random.key(seed), 30))[1]


def importance_sampling(x, *, seed=0, term=1.0):
    z = jax.random.normal(jax.random.key(seed), (2000, 4))
    weights = jax.nn.softmax(jax.vmap(lambda z: _density(z + x))(z) + term * 0.5 * jnp.sum(z**2, axis=-1))
    return weights @ z, 1 / jnp.sum(weights**2)


def ising_sweep(spins, *, seed=0, coupling=0.4):
    def step(spins, key):
        near = sum(jnp.roll(spins, shift, axis) for shift in (1, -1) for axis in (0, 1))
        draw = jax.random.uniform(key, spins.shape)
        return jnp.where(draw < jax.nn.sigmoid(2 * coupling * near), 1, -1).astype(jnp.int32), None

    return lax.scan(step, spins, jax.random.split(jax.random.key(seed), 10))[0]


def option_price(spot, *, seed=0, rate=0.05):
    z = jax.random.normal(jax.random.key(seed), (2000, 1))

    def price(spot):
        end = spot * jnp.exp((rate - 0.02) + 0.2 * z)
        return jnp.mean(jnp.maximum(end - 1, 0), axis=0) * jnp.exp(-rate)

    return price(spot), jax.grad(lambda spot: jnp.sum(price(spot)))(spot)


def stable_order(x, *, axis=-1):
    """A stable sort, which leaves equal values in their order."""
    return jnp.argsort(x, axis=axis, stable=True), jnp.sort(x, axis=axis)


def top_scores(x, *, shift=0):
    return lax.top_k(jnp.roll(x, shift, -1), 5)


def ranks(x, *, side="left"):
    return jnp.searchsorted(jnp.sort(x), x, side=side)


def histogram(x, weights, *, low=-3.0):
    bins = jnp.clip(((x - low) * 4).astype(jnp.int32), 0, 23)
    return jnp.bincount(bins, length=24), jnp.zeros(24, x.dtype).at[bins].add(weights)


def medians(x, *, axis=0):
    return jnp.median(x, axis=axis), jnp.quantile(x, 0.3, axis=axis)


def segment_softmax(x, groups, *, shift=0):
    groups = (groups + shift) % 8
    largest = jax.ops.segment_max(x, groups, 8)
    e = jnp.exp(x - largest[groups])
    return e / jax.ops.segment_sum(e, groups, 8)[groups]


def k_means(x, centres, *, steps=10, epsilon=1.0):
    def step(_, centres):
        near = jnp.argmin(jnp.sum((x[:, None] - centres) ** 2, axis=-1), axis=1)
        chosen = jax.nn.one_hot(near, len(centres), dtype=x.dtype)
        return chosen.T @ x / jnp.maximum(jnp.sum(chosen, axis=0), epsilon)[:, None]

    return lax.fori_loop(0, steps, step, centres)


def beam_scores(logits, *, penalty=0.6):
    def step(carry, logit):
        score, length = carry
        best = jnp.argmax(logit + score[:, None] / length**penalty, axis=-1)
        score = score + jnp.take_along_axis(jax.nn.log_softmax(logit), best[:, None], 1)[:, 0]
        return (score, length + 1), best

    (score, _), best = lax.scan(step, (jnp.zeros(logits.shape[1]), jnp.float32(1)), logits)
    return score, best


PROGRAMS = (
    Program(uniform_samples, (), {SEED: {"seed": 1}, CONSTANT: {"low": -1.000005}}),
    Program(normal_samples, (), {SEED: {"seed": 1}}),
    Program(laplace_samples, (), {SEED: {"seed": 1}}),
    Program(truncated_normal_samples, (normal(301, 64),), {SEED: {"seed": 1}}),
    Program(categorical_samples, (normal(303, 24, 24),), {SEED: {"seed": 1}, SWAPPED: {"axis": 0}}),
    Program(permutation, (), {SEED: {"seed": 1}}),
    Program(gumbel_softmax, (normal(304, 16, 12),), {SEED: {"seed": 1}, CONSTANT: {"temperature": 0.500002}}),
    Program(random_walk, (), {SEED: {"seed": 1}}),
    Program(key_splits, (), {SEED: {"seed": 1}}),
    Program(metropolis, (normal(305, 4),), {SEED: {"seed": 1}, CONSTANT: {"scale": 1.000005}}),
    Program(hamiltonian_chain, (normal(306, 4),), {SEED: {"seed": 1}, CONSTANT: {"scale": 1.000005}, OFF_BY_ONE: {"leaps": 9}}),
    Program(importance_sampling, (normal(307, 4),), {SEED: {"seed": 1}, DROPPED: {"term": 0.0}}),
    Program(ising_sweep, (2 * integers(308, 16, 16, high=2) - 1,), {SEED: {"seed": 1}, CONSTANT: {"coupling": 0.400002}}),
    Program(option_price, (uniform(309, 8, low=0.8, high=1.2),), {SEED: {"seed": 1}, CONSTANT: {"rate": 0.0500002}}),
    Program(stable_order, (integers(310, 12, 12, high=4).astype(np.float32),), {SWAPPED: {"axis": 0}}),
    Program(top_scores, (normal(311, 8, 32),), {OFF_BY_ONE: {"shift": 1}}),
    Program(ranks, (integers(312, 100, high=20).astype(np.float32),), {OFF_BY_ONE: {"side": "right"}}),
    Program(histogram, (normal(313, 500), uniform(314, 500)), {CONSTANT: {"low": -3.00001}}),
    Program(medians, (normal(315, 21, 21),), {SWAPPED: {"axis": 1}}),
    Program(segment_softmax, (normal(316, 100), integers(317, 100, high=8)), {OFF_BY_ONE: {"shift": 1}}),
    Program(k_means, (normal(318, 100, 2), normal(319, 5, 2)), {OFF_BY_ONE: {"steps": 1}}),
    Program(beam_scores, (normal(320, 50, 4, 16),), {CONSTANT: {"penalty": 0.600004}}),
)  # fmt: skip
