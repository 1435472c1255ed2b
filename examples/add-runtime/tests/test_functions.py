"""Two functions: numpyref has the operations of one of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.mark.export_compat
def test_gate(export_golden):
    export_golden(jax.jit(lambda x: jnp.tanh(x) * 2 + x), X)


@pytest.mark.export_compat
def test_wave(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(x) + x), X)
