"""What is delivered to the server, exported with example arguments."""

import jax
import jax.numpy as jnp
import pytest


def scores(weights, features):
    return jax.nn.softmax(jnp.tanh(features @ weights["hidden"]) @ weights["out"])


@pytest.mark.export_compat
def test_scores(export_golden):
    weights = {"hidden": jnp.ones((4, 8)) / 4, "out": jnp.eye(8, 3)}
    export_golden(jax.jit(scores), weights, jnp.linspace(-1, 1, 8).reshape(2, 4))
