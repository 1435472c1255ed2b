"""Programs of real breaks that no golden of this project shows; `nox -s why` exports them with an older release."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


@pytest.mark.export_compat
def test_transposed_int4(export_golden):
    """A transposition of 4-bit numbers, which jaxlib 0.8.1 does not compile for the CPU."""
    export_golden(jax.jit(lambda x: (x.reshape(2, 3).T, x.astype(jnp.float32) * 2)), np.arange(6).astype(jnp.int4))


@pytest.mark.export_compat
def test_bf16_accumulation(export_golden):
    """A product that is rounded to bfloat16 and then made float32. Until 0.11.0, compiled code does not round it."""
    numbers = np.random.default_rng(154)
    a, b = (numbers.normal(size=shape).astype(np.float32) for shape in ((64, 512), (512, 32)))
    product = jax.jit(lambda a, b: jnp.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)).astype(jnp.float32))
    export_golden(product, a, b)


@pytest.mark.export_compat
def test_constraint_on_another_mesh(export_golden):
    """An argument on a mesh of one axis, with a constraint on a 2 x 2 mesh, which fails since 0.9.1."""
    devices = np.array(jax.devices()[:4])
    line, grid = Mesh(devices, ("a",)), Mesh(devices.reshape(2, 2), ("x", "y"))
    in_parts = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, NamedSharding(grid, P("x", "y"))))
    export_golden(in_parts, jax.device_put(np.arange(4, dtype=np.float32).reshape(2, 2), NamedSharding(line, P())))
