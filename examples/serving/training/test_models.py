"""What the training team exports. It runs with the jax of training, which is newer than the server's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

WEIGHTS = np.linspace(-1, 1, 8 * 4, dtype=np.float32).reshape(8, 4)
ROWS = np.linspace(0, 2, 3 * 8, dtype=np.float32).reshape(3, 8)


def embed(weights, rows):
    return jnp.tanh(rows @ weights)


def rank(weights, rows):
    """Return a score for each row: how near it is to the first one."""
    vectors = embed(weights, rows)
    return jax.nn.softmax(vectors @ vectors[0])


@pytest.mark.export_compat
def test_embed(export_golden):
    export_golden(jax.jit(partial(embed, WEIGHTS)), ROWS)


@pytest.mark.export_compat(symbolic_shapes="rows, 8")
def test_rank(export_golden):
    exported = export_golden(jax.jit(partial(rank, WEIGHTS)), ROWS)
    exported.also(ROWS[:2])
