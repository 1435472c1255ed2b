"""Sorting by keys that the program computes: order, ranks, quantiles, nearest neighbours, largest values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from studies.corpus.programs.inputs import normal, uniform
from studies.corpus.programs.program import CONSTANT, DROPPED, OFF_BY_ONE, Program

_POINTS = normal(620, 40, 3)
_BOXES = uniform(621, 24, 2)


def _keys(size, rate=1.9):
    return jnp.sin(jnp.arange(size) * rate) + 0.3 * jnp.cos(jnp.arange(size) * 0.77)


def order_of_waves(*, rate=1.9):
    """The order of computed keys, and the sorted keys, without arguments. Places jump if two keys are almost equal."""
    keys = _keys(200, rate)
    order = jnp.argsort(keys)
    return order, keys[order]


def largest_shares(scores, *, shift=0):
    """The eight largest values of a softmax, and their places, which jump if two values are almost equal."""
    return lax.top_k(jnp.roll(jax.nn.softmax(scores @ _POINTS.T), shift, -1), 8)


def median_filter(image, *, size=3):
    padded = jnp.pad(image * 1.7 + jnp.sin(image), 1, mode="edge")
    windows = [padded[y : y + image.shape[0], x : x + image.shape[1]] for y in range(size) for x in range(3)]
    return jnp.median(jnp.stack(windows), axis=0)


def rank_correlation(x, *, turn=0.3):
    """The ranks of rotated points, and their correlation. Ranks jump if two coordinates are almost equal."""
    cos, sin = np.float32(np.cos(turn)), np.float32(np.sin(turn))
    turned = x @ jnp.array([[cos, -sin], [sin, cos]])
    ranks = jnp.argsort(jnp.argsort(turned, axis=0), axis=0).astype(jnp.float32)
    ranks = ranks - jnp.mean(ranks, axis=0)
    return ranks, ranks.T @ ranks / jnp.sum(ranks[:, 0] ** 2)


def quantiles_of_products(x, *, share=0.35):
    """Quantiles of products, which are interpolated between neighbours in the sorted order."""
    return jnp.quantile(x @ x.T, jnp.array([0.05, share, 0.9]), axis=1), jnp.percentile(jnp.exp(x), 70)


def quantile_gradient(x, *, share=0.35):
    """The gradient of quantiles. It is zero but for the neighbours of a quantile, so it jumps between elements."""
    return jax.grad(lambda x: jnp.sum(jnp.quantile(jnp.tanh(x @ _POINTS.T), share, axis=1) ** 2))(x)


def places_in_a_sum(draws, *, power=0.5):
    """The places of numbers in a computed cumulative sum. A place jumps if a number almost equals a sum."""
    table = jnp.cumsum(jnp.arange(1.0, 60.0) ** -power)
    return jnp.searchsorted(table, draws * table[-1], side="right")


def nearest_neighbours(x, *, count=4):
    """The distances of the nearest points, and their indices, which jump if two are almost equally far."""
    square = jnp.sum(x**2, -1)[:, None] + jnp.sum(_POINTS**2, -1) - 2 * x @ _POINTS.T
    far, who = lax.top_k(-square, count)
    return jnp.sqrt(jnp.maximum(-far, 0)), who


def _soft_order(x, *, temperature=0.5):
    """A smooth permutation matrix, made by scaling rows and columns in turns, and the values that it sorts."""
    scores = -jnp.abs(x[:, None] - jnp.linspace(-2, 2, len(x))) / temperature
    scale = lambda _, s: jax.nn.log_softmax(jax.nn.log_softmax(s, axis=0), axis=1)
    plan = jnp.exp(lax.fori_loop(0, 20, scale, scores))
    return plan, plan.T @ x


def soft_order_gradient(x, *, temperature=0.5):
    return jax.grad(lambda x: jnp.sum(_soft_order(x, temperature=temperature)[1] ** 3))(x)


def kept_boxes(scores, *, overlap=0.4):
    """Constant boxes, without those that overlap a better box. A box jumps in or out with a last bit."""
    corner, size = jnp.asarray(_BOXES), 0.25 + 0.1 * jnp.sin(jnp.arange(48.0)).reshape(24, 2)
    order = jnp.argsort(-jax.nn.sigmoid(scores))
    low, high = corner[order], (corner + size)[order]
    shared = jnp.prod(jnp.maximum(jnp.minimum(high[:, None], high) - jnp.maximum(low[:, None], low), 0), axis=-1)
    area = jnp.prod(high - low, axis=-1)
    ratio = shared / (area[:, None] + area - shared)

    def step(number, kept):
        beaten = jnp.any(jnp.where(jnp.arange(24) < number, kept & (ratio[number] > overlap), False))
        return kept.at[number].set(~beaten)

    return ratio, lax.fori_loop(1, 24, step, jnp.ones(24, bool))


def sparsemax(scores, *, scale=1.0):
    """The projection of scores onto the simplex, computed by sorting and cumulative sums."""
    scores = scale * scores
    ranked = -jnp.sort(-scores, axis=-1)
    total = jnp.cumsum(ranked, axis=-1)
    number = jnp.arange(1.0, scores.shape[-1] + 1)
    count = jnp.sum(1 + number * ranked > total, axis=-1, keepdims=True)
    threshold = (jnp.take_along_axis(total, count - 1, axis=-1) - 1) / count
    return jnp.maximum(scores - threshold, 0)


def earth_movers_distance(a, b, *, power=1.0):
    """The earth mover's distance between two samples, by sorting, and its gradient in the first sample."""
    loss = lambda a: jnp.mean(jnp.abs(jnp.sort(jnp.tanh(a)) - jnp.sort(b)) ** power)
    return jax.value_and_grad(loss)(a)


_SCORES = normal(622, 10, 3)

PROGRAMS = (
    Program(order_of_waves, (), {CONSTANT: {"rate": 1.900019}}, jumps=True),
    Program(largest_shares, (_SCORES,), {OFF_BY_ONE: {"shift": 1}}, jumps=True),
    Program(median_filter, (normal(624, 18, 18),), {DROPPED: {"size": 2}}),
    Program(rank_correlation, (normal(625, 60, 2),), {OFF_BY_ONE: {"turn": 0.4}}, jumps=True),
    Program(quantiles_of_products, (normal(626, 20, 6),), {CONSTANT: {"share": 0.3500035}}),
    Program(quantile_gradient, (normal(627, 12, 3),), {CONSTANT: {"share": 0.3500035}}, jumps=True),
    Program(places_in_a_sum, (uniform(629, 100),), {OFF_BY_ONE: {"power": 0.6}}, jumps=True),
    Program(nearest_neighbours, (normal(630, 16, 3),), {}, jumps=True),
    Program(soft_order_gradient, (normal(633, 16),), {CONSTANT: {"temperature": 0.500005}}),
    Program(kept_boxes, (normal(634, 24),), {OFF_BY_ONE: {"overlap": 0.2}}, jumps=True),
    Program(sparsemax, (normal(635, 16, 12),), {CONSTANT: {"scale": 1.00001}}),
    Program(earth_movers_distance, (normal(638, 40), normal(639, 40)), {CONSTANT: {"power": 1.00001}}),
)  # fmt: skip
