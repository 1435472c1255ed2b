"""Programs whose golden shows nothing in some leaf, programs that only look so, and programs that mean it.

Their author did not know the rules by which goldens get remarks, and no rule may be made to fit them. Remarks fail no
test here: a measurement compares the remarks with the field `expected` of each program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.inputs import integers, normal, uniform

INDEPENDENT = "independent"  # an output that depends on no input
UNUSED = "unused"  # an input on which no output depends
ONE_VALUE = "one value"  # an output whose elements are all the same
SATURATED = "saturated"  # an output of what is left when something was clipped, masked, dropped or lost

Remark = tuple[str, str]


@dataclass(frozen=True)
class Looked:
    """A function of jax, its arguments, and the remarks that it must get: the kind of each, and its leaf.

    `also` has remarks that are true and not required, for example because a leaf shows nothing in several ways, or
    because other inputs are similar (zeros stay zeros). `meant` has the leaves that the marker names as constant, which
    must get no remark.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: tuple[Remark, ...] = ()
    also: tuple[Remark, ...] = ()
    meant: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__


_W = normal(900, 12, 8)
_POSITIVE = np.abs(_W) + np.float32(0.1)
_PRIOR = np.array([0, 0, 0, 80, 0, 0, 0, 0], np.float32)  # of classes: the fourth always wins


# Nothing is shown.


def positions_of_tokens(tokens):
    """Positional encodings, which depend only on the shape of the tokens."""
    place = jnp.arange(tokens.shape[1])[:, None] * 100.0 ** (-jnp.arange(4) / 4)
    codes = jnp.concatenate([jnp.sin(place), jnp.cos(place)], axis=-1)
    return jnp.broadcast_to(codes, (tokens.shape[0], *codes.shape))


def dropout_that_keeps_all(x, key):
    """Dropout with a rate of 0: numbers are drawn by the key, and none of them has an effect."""
    hidden = jnp.tanh(x @ _W)
    return jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 1.0, hidden.shape), hidden, 0)


def dead_relu_layer(parameters, x):
    return jax.nn.relu(x @ parameters["weights"] + parameters["bias"])


def cold_softmax(logits):
    """A softmax with so low a temperature that each row is exactly one-hot."""
    return jax.nn.softmax(logits / 1e-3, axis=-1)


def unscaled_features(pixels):
    """A gated layer whose pixels were not divided by 255: gates are exactly 1, states exactly 1 or -1."""
    return {"gate": jax.nn.sigmoid(pixels @ _POSITIVE), "state": jnp.tanh(pixels @ jnp.sign(_W) * 50 + 25)}


def fully_masked_loss(logits, labels, mask):
    """The loss of a batch that is all padding."""
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)[..., 0]
    losses = losses * mask
    return {"loss": jnp.sum(losses) / jnp.maximum(jnp.sum(mask), 1), "losses": losses}


def one_class_everywhere(x):
    return jnp.argmax(x @ _W + _PRIOR, axis=-1).astype(jnp.int32)


def bytes_scaled_twice(image):
    """Pixels scaled to bytes for a second time, so that nearly all are clipped."""
    return jnp.clip(jnp.round(image * 255), 0, 255).astype(jnp.uint8)


def projected_zeros(state, weights):
    return jnp.einsum("bti,io->bto", state, weights)


def likelihood_of_sequences(observed, means):
    """A likelihood as a product of densities, which underflows, in place of a sum of logarithms."""
    density = jnp.exp(-0.5 * (observed - means[:, None]) ** 2) / np.float32(np.sqrt(2 * np.pi))
    return jnp.prod(density, axis=-1)


def diverged_descent(start):
    """A gradient descent with too large steps: it gives infinities, and then NaN."""

    def step(x, _):
        x = x - 2.0 * jax.grad(lambda y: jnp.sum(y**4 - y**2))(x)
        return x, x

    return jax.lax.scan(step, start, None, length=40)[1]


def nothing_detected(features, boxes):
    """An untrained detector, whose bias puts every score below the threshold."""
    kept = jax.nn.sigmoid(features @ _W[:, 0] / 4 - 12) > 0.5
    return {"boxes": jnp.where(kept[:, None], boxes, 0), "count": jnp.sum(kept, dtype=jnp.int32)}


def gradient_of_satisfied_hinge(parameters, x, labels):
    """The gradient of a hinge loss whose margins are all satisfied."""

    def loss(parameters):
        score = x @ parameters["weights"] + parameters["bias"]
        return jnp.mean(jax.nn.relu(1 - labels * score))

    return jax.grad(loss)(parameters)


def within_bounds(x):
    return jnp.abs(jnp.tanh(x @ _W)) <= 1


def sorted_priorities(priorities):
    """Priorities sorted by size, which are all equal, as in a new buffer."""
    return jnp.sort(priorities, axis=-1)[:, ::-1]


def rate_before_decay(steps):
    """Learning rates at steps in the constant part of a schedule."""
    decayed = 3e-4 * 0.5 * (1 + jnp.cos(jnp.pi * (steps - 1000) / 9000))
    return jnp.where(steps < 1000, jnp.float32(3e-4), decayed)


def encoder_of_floored_variance(x):
    """An encoder with three outputs, of which the second, a log variance, is at its floor everywhere."""
    mean = jnp.tanh(x @ _W)
    log_variance = jnp.clip(x @ _W[:, ::-1] - 60, -10, 10)
    sample = mean + jnp.exp(0.5 * log_variance) * jnp.cos(jnp.arange(8.0))
    return mean, log_variance, sample


def features_without_pooler(parameters, x):
    """A layer that does not use one of its weights, since that is for another task."""
    return jnp.tanh(x @ parameters["layer"]["weights"] + parameters["layer"]["bias"])


_LABELS = np.where(normal(914, 24, 12) @ _W[:, 1] > 0, 1, -1).astype(np.float32)
_APART = normal(914, 24, 12) + _LABELS[:, None] * _W[:, 1]
_LOGITS = np.stack([np.random.RandomState(904 + row).permutation(10) for row in range(6)]).astype(np.float32)

NOTHING: tuple[Looked, ...] = (
    Looked(
        positions_of_tokens,
        (integers(901, 3, 10, high=50),),
        expected=((INDEPENDENT, "result"), (UNUSED, "args[0]")),
    ),
    Looked(
        dropout_that_keeps_all, (normal(902, 5, 12), np.array([7, 1902], np.uint32)), expected=((UNUSED, "args[1]"),)
    ),
    Looked(
        dead_relu_layer,
        ({"weights": _W, "bias": np.full(8, -100, np.float32)}, normal(903, 16, 12)),
        expected=((SATURATED, "result"),),
        also=(
            (ONE_VALUE, "result"),
            (INDEPENDENT, "result"),
            (UNUSED, "args[0]['bias']"),
            (UNUSED, "args[0]['weights']"),
            (UNUSED, "args[1]"),
        ),
    ),
    Looked(cold_softmax, (_LOGITS,), expected=((SATURATED, "result"),)),
    Looked(
        unscaled_features,
        (np.round(uniform(905, 9, 12, low=20, high=255)),),
        expected=((SATURATED, "result['gate']"), (SATURATED, "result['state']")),
        also=((ONE_VALUE, "result['gate']"), (INDEPENDENT, "result['gate']")),
    ),
    Looked(
        fully_masked_loss,
        (normal(906, 4, 7, 11), integers(907, 4, 7, high=11), np.zeros((4, 7), np.float32)),
        expected=((SATURATED, "result['loss']"), (SATURATED, "result['losses']")),
        also=(
            (ONE_VALUE, "result['loss']"),
            (ONE_VALUE, "result['losses']"),
            (INDEPENDENT, "result['loss']"),
            (INDEPENDENT, "result['losses']"),
            (UNUSED, "args[0]"),
            (UNUSED, "args[1]"),
            (UNUSED, "args[2]"),
        ),
    ),
    Looked(
        one_class_everywhere,
        (normal(908, 32, 12),),
        expected=((ONE_VALUE, "result"),),
        also=((INDEPENDENT, "result"), (SATURATED, "result"), (UNUSED, "args[0]")),
    ),
    Looked(
        bytes_scaled_twice,
        (np.round(uniform(909, 12, 12, 3, low=1, high=255)),),
        expected=((SATURATED, "result"),),
        also=((ONE_VALUE, "result"), (INDEPENDENT, "result"), (UNUSED, "args[0]")),
    ),
    Looked(
        projected_zeros,
        (np.zeros((2, 5, 12), np.float32), _W),
        expected=((SATURATED, "result"),),
        also=((ONE_VALUE, "result"), (INDEPENDENT, "result"), (UNUSED, "args[0]"), (UNUSED, "args[1]")),
    ),
    Looked(
        likelihood_of_sequences,
        (normal(910, 6, 300), normal(911, 6)),
        expected=((SATURATED, "result"),),
        also=((ONE_VALUE, "result"), (INDEPENDENT, "result"), (UNUSED, "args[0]"), (UNUSED, "args[1]")),
    ),
    Looked(diverged_descent, (uniform(912, 5, low=1.5, high=3),), expected=((SATURATED, "result"),)),
    Looked(
        nothing_detected,
        (normal(913, 20, 12), uniform(915, 20, 4, high=64)),
        expected=((SATURATED, "result['boxes']"), (INDEPENDENT, "result['count']")),
        also=(
            (ONE_VALUE, "result['boxes']"),
            (INDEPENDENT, "result['boxes']"),
            (ONE_VALUE, "result['count']"),
            (SATURATED, "result['count']"),
            (UNUSED, "args[0]"),
            (UNUSED, "args[1]"),
        ),
    ),
    Looked(
        gradient_of_satisfied_hinge,
        ({"weights": 10 * _W[:, 1], "bias": np.array(0.25, np.float32)}, _APART, _LABELS),
        expected=((SATURATED, "result['bias']"), (SATURATED, "result['weights']")),
        also=(
            (ONE_VALUE, "result['bias']"),
            (ONE_VALUE, "result['weights']"),
            (INDEPENDENT, "result['bias']"),
            (INDEPENDENT, "result['weights']"),
            (UNUSED, "args[0]['bias']"),
            (UNUSED, "args[0]['weights']"),
            (UNUSED, "args[1]"),
            (UNUSED, "args[2]"),
        ),
    ),
    Looked(
        within_bounds,
        (normal(916, 10, 12),),
        expected=((ONE_VALUE, "result"),),
        also=((INDEPENDENT, "result"), (SATURATED, "result"), (UNUSED, "args[0]")),
    ),
    Looked(sorted_priorities, (np.full((4, 16), 0.125, np.float32),), expected=((ONE_VALUE, "result"),)),
    Looked(
        rate_before_decay,
        (np.arange(0, 640, 10, dtype=np.int32),),
        expected=((ONE_VALUE, "result"),),
        also=((INDEPENDENT, "result"), (SATURATED, "result"), (UNUSED, "args[0]")),
    ),
    Looked(
        encoder_of_floored_variance,
        (normal(917, 6, 12),),
        expected=((SATURATED, "result[1]"),),
        also=((ONE_VALUE, "result[1]"), (INDEPENDENT, "result[1]")),
    ),
    Looked(
        features_without_pooler,
        ({"layer": {"weights": _W, "bias": normal(918, 8)}, "pooler": normal(919, 8, 8)}, normal(920, 6, 12)),
        expected=((UNUSED, "args[0]['pooler']"),),
    ),
)


# Something is shown.


def mixed_mask(x, threshold):
    return jnp.abs(x) > threshold


def one_hot_words(words):
    return jax.nn.one_hot(words, 20)


def sparse_relu(x):
    """A ReLU with nine of ten outputs zero."""
    return jax.nn.relu(x @ _W - 4)


def class_ids(x):
    return jnp.argmax(x @ _W, axis=-1).astype(jnp.int32)


def scalar_loss(x, y):
    return jnp.mean((jnp.tanh(x @ _W) - y) ** 2)


def returned_as_it_is(x):
    return x


def sorted_with_order(x):
    return jnp.sort(x), jnp.argsort(x).astype(jnp.int32)


def normalised_rows(logits):
    """A softmax whose rows sum to one, and are not saturated."""
    return jax.nn.softmax(logits, axis=-1)


def mean_of_rows_again(x):
    """The mean of each row, repeated along the row."""
    return jnp.broadcast_to(jnp.mean(x, axis=1, keepdims=True), x.shape)


def histogram_of_values(x):
    """A histogram with some empty bins."""
    return jnp.zeros(16, jnp.int32).at[jnp.clip(jnp.floor(x * 2 + 8), 0, 15).astype(jnp.int32)].add(1)


def contrast(image):
    """An image with higher contrast, in which some pixels are clipped to 0 or 255."""
    return jnp.clip(jnp.round(2.0 * (image - 128) + 128), 0, 255).astype(jnp.uint8)


def sharp_softmax(logits):
    """A softmax with most rows exactly one-hot; in two rows the largest logits are close."""
    return jax.nn.softmax(logits * 150, axis=-1)


def causal_weights(q, k):
    """Causal attention weights: zero above the diagonal, and one-hot in the first row."""
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
    return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -jnp.inf), axis=-1)


def integer_arithmetic(a, b):
    return {"quotient": a // (b + 1), "remainder": a % (b + 1), "bits": (a ^ b) & 3}


def hashed_buckets(ids):
    return ((ids.astype(jnp.uint32) * jnp.uint32(2654435761)) >> 16) % 8


def drawn_from_seed(seed):
    key, other = jax.random.split(jax.random.key(seed))
    return {"key": jax.random.key_data(other), "drawn": jax.random.normal(key, (4, 6))}


def share_with_one_nan(part, whole):
    """A quotient with one element that is 0/0 on purpose."""
    return part / whole


def log_ratio(p, q):
    """Differences of logarithms, which are infinite where a count is zero."""
    return jnp.log(p) - jnp.log(q)


def gathered_rows(table, ids):
    return table[ids]


def life(cells):
    """One generation of the game of Life on a torus."""
    around = sum(
        jnp.roll(cells.astype(jnp.int32), (down, right), (0, 1))
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
        if (down, right) != (0, 0)
    )
    return (around == 3) | (cells & (around == 2))


def grey_thumbnail(image):
    """A grey thumbnail in bytes of an image in bytes."""
    grey = jnp.sum(image.astype(jnp.int32) * jnp.array([77, 150, 29]), axis=-1) >> 8
    return (grey.reshape(6, 2, 6, 2).sum((1, 3)) // 4).astype(jnp.uint8)


def filtered_spectrum(signal, response):
    """A complex spectrum times a complex response."""
    return jnp.fft.fft(signal, axis=-1) * response


def period_of_pendulum(length, angle):
    """The period of a pendulum, with scalars as inputs and output."""
    return 2 * jnp.pi * jnp.sqrt(length / 9.81) * (1 + angle**2 / 16 + 11 * angle**4 / 3072)


def joined_with_empty(x, more):
    """Rows joined with an array without elements, and a slice without elements."""
    joined = jnp.concatenate([x, more])
    return {"head": joined[:0], "rows": joined * 2}


_NEAR = _LOGITS.copy()
_NEAR[1, 4] = _NEAR[1].max() + 0.004
_NEAR[4, 2] = _NEAR[4].max() + 0.002
_WHOLE = uniform(941, 4, 8, low=1, high=5)
_WHOLE[2, 5] = 0
_PART = uniform(942, 4, 8)
_PART[2, 5] = 0
_P, _Q = np.ones((2, 30), np.float32) + integers(943, 2, 30, high=40)
_P[[3, 17]] = 0
_Q[[8, 21]] = 0

FINE: tuple[Looked, ...] = (
    Looked(mixed_mask, (normal(921, 8, 8), np.array(0.7, np.float32))),
    Looked(one_hot_words, (integers(922, 14, high=20),)),
    Looked(sparse_relu, (normal(923, 16, 12),)),
    Looked(class_ids, (normal(924, 24, 12),)),
    Looked(scalar_loss, (normal(925, 10, 12), normal(926, 10, 8))),
    Looked(returned_as_it_is, (normal(927, 5, 5),)),
    Looked(sorted_with_order, (normal(928, 40),)),
    Looked(normalised_rows, (normal(929, 7, 9),)),
    Looked(mean_of_rows_again, (normal(930, 6, 10),)),
    Looked(histogram_of_values, (normal(931, 60),)),
    Looked(contrast, (np.round(uniform(932, 10, 10, 3, high=255)),)),
    Looked(sharp_softmax, (_NEAR,)),
    Looked(causal_weights, (normal(933, 2, 6, 4), normal(934, 2, 6, 4))),
    Looked(integer_arithmetic, (integers(935, 25, high=100), integers(936, 25, high=9))),
    Looked(hashed_buckets, (integers(937, 40, high=10000),)),
    Looked(drawn_from_seed, (np.array(1234, np.int32),)),
    Looked(share_with_one_nan, (_PART, _WHOLE)),
    Looked(log_ratio, (_P, _Q)),
    Looked(gathered_rows, (normal(938, 15, 6), integers(939, 9, high=15))),
    Looked(life, (uniform(940, 12, 12) < 0.4,)),
    Looked(grey_thumbnail, (integers(944, 12, 12, 3, high=256).astype(np.uint8),)),
    Looked(
        filtered_spectrum,
        ((normal(945, 3, 16) + 1j * normal(946, 3, 16)).astype(np.complex64), normal(947, 16).astype(np.complex64)),
    ),
    Looked(period_of_pendulum, (np.array(1.25, np.float32), np.array(0.6, np.float32))),
    Looked(joined_with_empty, (normal(948, 5, 4), np.zeros((0, 4), np.float32))),
)


# One leaf is constant, and is meant to be.


def first_adam_step(weights, gradient, state):
    """The first step of Adam, in which the counter goes from 0 to 1."""
    step = state["step"] + 1
    first = 0.9 * state["first"] + 0.1 * gradient
    second = 0.999 * state["second"] + 0.001 * gradient**2
    change = (first / (1 - 0.9**step)) / (jnp.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights - 0.01 * change, {"step": step, "first": first, "second": second}


def gradient_beside_frozen_layer(parameters, x):
    def loss(parameters):
        hidden = jnp.tanh(x @ jax.lax.stop_gradient(parameters["frozen"]))
        return jnp.mean((hidden @ parameters["head"]) ** 2)

    return jax.grad(loss)(parameters)


def padded_rows(x):
    """Padded rows, and which of them are padding, which follows from the shape alone."""
    rows = 8
    padded = jnp.pad(x, ((0, rows - x.shape[0]), (0, 0)))
    return {"rows": padded, "padding": jnp.arange(rows) >= x.shape[0]}


def scores_with_version(x):
    return {"scores": jax.nn.log_softmax(x @ _W), "version": jnp.array([1, 4], jnp.int32)}


MEANT: tuple[Looked, ...] = (
    Looked(
        first_adam_step,
        (
            normal(950, 6, 3),
            normal(951, 6, 3),
            {
                "step": np.zeros((), np.int32),
                "first": np.zeros((6, 3), np.float32),
                "second": np.zeros((6, 3), np.float32),
            },
        ),
        meant=("result[1]['step']",),
    ),
    Looked(
        gradient_beside_frozen_layer,
        ({"frozen": _W, "head": normal(952, 8, 2)}, normal(953, 9, 12)),
        meant=("result['frozen']",),
    ),
    Looked(padded_rows, (normal(954, 5, 3),), meant=("result['padding']",)),
    Looked(scores_with_version, (normal(955, 4, 12),), meant=("result['version']",)),
)


def _case(looked):
    """Return a parameter whose marker names the leaves that are meant to be constant."""
    keywords = {"constant": looked.meant} if looked.meant else {}
    return pytest.param(looked, id=looked.name, marks=pytest.mark.export_compat(**keywords))


@pytest.mark.parametrize("looked", [_case(looked) for looked in NOTHING])
def test_nothing(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)


@pytest.mark.parametrize("looked", [_case(looked) for looked in FINE])
def test_fine(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)


@pytest.mark.parametrize("looked", [_case(looked) for looked in MEANT])
def test_meant(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)
