"""The script that writes the artifacts of docs/how-to/watch-costs.md: run it with jax 0.9.2."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export


def roughness(field: jax.Array) -> jax.Array:
    """Return the sum of the squared differences between neighbours, along all three axes."""
    return sum(jnp.sum(jnp.square(jnp.diff(field, axis=axis))) for axis in range(3))


def log_sums(weights: jax.Array, values: jax.Array) -> jax.Array:
    """Return the logarithms of weighted sums along the third of eight axes, as in jax issue 39257."""
    sums = jnp.sum(weights[..., None, None, None, None, None] * values, axis=2)
    return jnp.log(jnp.maximum(sums, 2.2e-16))


DATA = Path(__file__).parents[1] / "tests" / "docs" / "data"
jax.config.update("jax_traceback_in_locations_limit", 0)  # no path of this machine in the bytes
for name, function, shapes in (
    ("squared_differences", roughness, [(192, 192, 192)]),
    ("log_sums", log_sums, [(10, 4, 6), (10, 4, 6, 9, 9, 9, 9, 9)]),
):
    exported = export.export(jax.jit(function))(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))
    (DATA / f"{name}.jaxexport").write_bytes(exported.serialize())
