"""Programs of real breaks that no golden of this project shows: `nox -s why` exports them with an older release."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.export_compat
def test_transposed_int4(export_golden):
    """4-bit numbers transposed on a CPU: jaxlib 0.8.1 does not compile it."""
    export_golden(jax.jit(lambda x: (x.reshape(2, 3).T, x.astype(jnp.float32) * 2)), np.arange(6).astype(jnp.int4))


@pytest.mark.export_compat
def test_bf16_accumulation(export_golden):
    """A product that is rounded to bfloat16 and then made float32: it keeps the digits of its sum until 0.11.0."""
    numbers = np.random.default_rng(154)
    a, b = (numbers.normal(size=shape).astype(np.float32) for shape in ((64, 512), (512, 32)))
    product = jax.jit(lambda a, b: jnp.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)).astype(jnp.float32))
    export_golden(product, a, b)
