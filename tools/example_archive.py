"""The script that writes the artifacts of examples/archive: tides with jaxlib 0.6.2, rainfall with 0.9.2.

Run `python tools/example_archive.py tides` in an environment with that jaxlib and the jax of the same version. The
example pretends that the source code of the functions is lost.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

FOLDER = Path(__file__).parents[1] / "examples" / "archive" / "artifacts"
DEGREES_AN_HOUR = np.array([28.984104, 30.0, 15.041069, 13.943036], np.float32)  # M2, S2, K1, O1
STATIONS = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 1]], np.float32)


def tides(hours: jax.Array, amplitudes: jax.Array, phases: jax.Array) -> jax.Array:
    """Return the height of the sea at each hour, as the sum of four tidal constituents."""
    return jnp.cos(jnp.deg2rad(hours[:, None] * DEGREES_AN_HOUR - phases)) @ amplitudes


def rainfall(points: jax.Array, measured: jax.Array) -> jax.Array:
    """Return the rain between stations by kriging, with a Cholesky factorization of their covariances."""

    def covariance(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.exp(-jnp.sum((a[:, None] - b[None]) ** 2, axis=-1))

    factor = jax.scipy.linalg.cho_factor(covariance(STATIONS, STATIONS) + 0.01 * jnp.eye(5), lower=True)
    return covariance(points, STATIONS) @ jax.scipy.linalg.cho_solve(factor, measured)


ARGUMENTS = {
    tides: (
        np.arange(24, dtype=np.float32),
        np.array([1.2, 0.4, 0.2, 0.1], np.float32),
        np.array([10, 40, 120, 200], np.float32),
    ),
    rainfall: (np.array([[0.5, 0.5], [1.5, 0.5], [2, 2]], np.float32), np.array([3, 5, 4, 6, 2], np.float32)),
}


def main(name: str) -> None:
    """Write the artifact, the arguments and the results of the function of this name."""
    function = globals()[name]
    arguments = ARGUMENTS[function]
    jitted = jax.jit(function)
    FOLDER.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_traceback_in_locations_limit", 0)  # no path of this machine in the bytes
    (FOLDER / f"{name}.jaxexport").write_bytes(export.export(jitted)(*arguments).serialize())
    np.savez(FOLDER / f"{name}.inputs.npz", *arguments)
    np.savez(FOLDER / f"{name}.outputs.npz", jitted(*arguments))


if __name__ == "__main__":
    main(sys.argv[1])
