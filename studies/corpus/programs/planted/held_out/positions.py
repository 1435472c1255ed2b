"""Positional encodings that the program computes: waves, rotations, distances."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from studies.corpus.programs.inputs import integers, normal
from studies.corpus.programs.program import CONSTANT, DROPPED, OFF_BY_ONE, SWAPPED, Program


def _waves(positions, size, base=10000.0):
    """Return sines followed by cosines, as in the first transformers."""
    rate = jnp.exp(-jnp.log(base) * jnp.arange(0, size, 2) / size)
    angle = positions[:, None] * rate
    return jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1).reshape(len(positions), size)


def _turned(x, angle):
    """Return pairs of neighbours rotated by an angle."""
    one, two = x[..., 0::2], x[..., 1::2]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([one * cos - two * sin, one * sin + two * cos], axis=-1).reshape(x.shape)


def _angles(length, size, base=10000.0):
    return jnp.arange(length)[:, None] * base ** (-jnp.arange(0, size, 2) / size)


def sinusoidal_table(*, base=10000.0, length=512):
    """A table of sinusoidal positions without arguments, with angles of up to 511."""
    return _waves(jnp.arange(512) + (length - 512), 16, base)


def timestep_embedding(steps, *, flip=False):
    """The embedding of a diffusion model's time steps, which are integers, through a small network."""
    one, two = _waves(steps.astype(jnp.float32), 32)[:, 0::2], _waves(steps.astype(jnp.float32), 32)[:, 1::2]
    waves = jnp.concatenate([one, two] if flip else [two, one], axis=-1)
    return jax.nn.silu(waves @ _MIX) @ _MIX.T


def rotary_queries(q, *, base=10000.0):
    """Rotary embeddings of queries at 300 positions."""
    return _turned(q, _angles(300, q.shape[-1], base))


def rotary_gradients(q, k, v, *, base=10000.0):
    def loss(q, k, v):
        turn = lambda x: _turned(x, _angles(len(x), x.shape[-1], base))
        return jnp.mean((jax.nn.softmax(turn(q) @ turn(k).T / 4, axis=-1) @ v) ** 2)

    return jax.grad(loss, (0, 1, 2))(q, k, v)


def stretched_rotary(q, *, factor=4.0):
    """Rotary embeddings for long contexts: slow waves are stretched, fast ones are not, others are blended."""
    size = q.shape[-1]
    rate = 10000.0 ** (-jnp.arange(0, size, 2) / size)
    blend = jnp.clip((2 * jnp.pi / rate / 64 - 1) / 7, 0, 1)
    rate = rate * (1 - blend) + rate / factor * blend
    return _turned(q, jnp.arange(len(q))[:, None] * rate)


def alibi_attention(q, k, v, *, heads=4, power=8.0):
    """Attention with linear biases, whose slopes are a geometric sequence."""
    slopes = 2.0 ** (-power * jnp.arange(1, heads + 1) / heads)
    far = jnp.arange(len(q))[:, None] - jnp.arange(len(k))[None]
    scores = jnp.einsum("qd,kd->qk", q, k) / 4 - slopes[:, None, None] * jnp.abs(far)
    return jnp.einsum("hqk,kd->qhd", jax.nn.softmax(jnp.where(far >= 0, scores, -1e9), axis=-1), v)


def alibi_gradient(q, k, v, *, power=8.0):
    return jax.grad(lambda k: jnp.sum(jnp.sin(alibi_attention(q, k, v, power=power))))(k)


def relative_buckets(table, *, buckets=16):
    """Biases by distances in logarithmic buckets, which are truncated to integers: a last bit can change a bucket."""
    far = jnp.abs(jnp.arange(100)[:, None] - jnp.arange(100)[None])
    large = 8 + (jnp.log(far / 8 + 1e-6) / np.log(16) * (buckets - 8)).astype(jnp.int32)
    return jnp.mean(table[jnp.where(far < 8, far, jnp.minimum(large, 15))], axis=1)


def fourier_features(points, *, scale=1.0):
    """Fourier features of coordinates in ten octaves, as in radiance fields, up to a frequency of 512 π."""
    angle = (points[..., None] * 2.0 ** jnp.arange(10) * np.pi * scale).reshape(len(points), -1)
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)


def radiance_gradient(points, *, octaves=8):
    """The gradient, in space, of a small network over Fourier features."""

    def density(point):
        angle = (point[:, None] * 2.0 ** jnp.arange(octaves) * 1.1).ravel()
        features = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)])
        return jax.nn.softplus(jnp.tanh(features @ _FIELD[: len(features)]) @ _FIELD[48])

    return jax.vmap(jax.value_and_grad(density))(points)


def image_positions(*, turn=False):
    """Positions of an image without arguments: half of the waves are those of the row, half those of the column."""
    rows, columns = (jnp.repeat(jnp.arange(8.0), 12), jnp.tile(jnp.arange(12.0), 8))
    rows, columns = (columns, rows) if turn else (rows, columns)
    return jnp.concatenate([_waves(rows, 16), _waves(columns, 16)], axis=-1) @ _MIX[:, :12]


_MIX = normal(520, 32, 24) / np.float32(5)
_FIELD = normal(521, 49, 16) / np.float32(6)
_Q, _K, _V = normal(522, 40, 16), normal(523, 40, 16), normal(524, 40, 16)

PROGRAMS = (
    Program(sinusoidal_table, (), {CONSTANT: {"base": 10000.1}, OFF_BY_ONE: {"length": 513}}),
    Program(timestep_embedding, (integers(525, 20, high=1000),), {SWAPPED: {"flip": True}}),
    Program(rotary_queries, (normal(526, 300, 8),), {CONSTANT: {"base": 10000.1}}),
    Program(rotary_gradients, (_Q, _K, _V), {CONSTANT: {"base": 10000.1}}),
    Program(stretched_rotary, (normal(528, 128, 16),), {CONSTANT: {"factor": 4.00004}}),
    Program(alibi_attention, (_Q, _K, _V), {CONSTANT: {"power": 8.00008}}),
    Program(alibi_gradient, (_Q, _K, _V), {CONSTANT: {"power": 8.00008}}),
    Program(relative_buckets, (normal(529, 16, 4),), {OFF_BY_ONE: {"buckets": 17}}, jumps=True),
    Program(fourier_features, (normal(530, 24, 3),), {CONSTANT: {"scale": 1.00001}}),
    Program(radiance_gradient, (normal(531, 16, 3),), {DROPPED: {"octaves": 7}}),
    Program(image_positions, (), {SWAPPED: {"turn": True}}),
)  # fmt: skip
