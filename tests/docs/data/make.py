"""Writes squared_differences.jaxexport, for docs/how-to/watch-costs.md: run it with jax 0.9.2."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export


def roughness(field: jax.Array) -> jax.Array:
    """The sum of the squared differences between neighbours, along all three axes."""
    return sum(jnp.sum(jnp.square(jnp.diff(field, axis=axis))) for axis in range(3))


jax.config.update("jax_traceback_in_locations_limit", 0)  # no path of this machine in the bytes
exported = export.export(jax.jit(roughness))(jax.ShapeDtypeStruct((192, 192, 192), jnp.float32))
Path(__file__).with_name("squared_differences.jaxexport").write_bytes(exported.serialize())
