"""What is shipped: a recognizer of gestures, exported with example arguments."""

import jax
import jax.numpy as jnp
import pytest


def gesture(kernel, signal):
    windows = jnp.stack([signal[start : start + 4] for start in range(5)])
    return jax.nn.softmax(jnp.max(jax.nn.relu(windows @ kernel), axis=0))


@pytest.mark.export_compat
def test_gesture(export_golden):
    export_golden(jax.jit(gesture), jnp.linspace(-1, 1, 12).reshape(4, 3), jnp.linspace(0, 1, 8))
