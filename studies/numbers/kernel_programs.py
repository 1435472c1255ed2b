"""The program that calls each of `FUNCTIONS` in a release's environment, and stores the outputs.

`python -m studies.numbers.kernel_programs FILE` writes FILE.npz. It needs jax and numpy only.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import conv_general_dilated, linalg

from studies.corpus.programs.factorizations import FACTORIZATIONS

_RANDOM = np.random.default_rng(0)


def _normal(*shape: int) -> Any:
    return _RANDOM.standard_normal(shape).astype(np.float32)


_MATRIX, _TABLE, _IDENTITY = _normal(48, 48), _normal(64, 256), np.eye(48, dtype=np.float32)
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "`cholesky`": (linalg.cholesky, _MATRIX @ _MATRIX.T + 48 * _IDENTITY),
    "`triangular_solve`": (
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
        np.tril(_MATRIX) + 48 * _IDENTITY,
        _normal(48, 8),
    ),
    "`qr`": (FACTORIZATIONS["qr"], _MATRIX),
    "`lu`": (FACTORIZATIONS["lu"], _MATRIX),
    "`eigh`": (FACTORIZATIONS["eigh"], _MATRIX + _MATRIX.T),
    "`svd`": (FACTORIZATIONS["svd"], _MATRIX),
    "`schur`": (FACTORIZATIONS["schur"], _MATRIX),
    "`eig`": (FACTORIZATIONS["eig"], _MATRIX),
    "matrix times matrix": (jnp.matmul, _TABLE, _normal(256, 64)),
    "matrix times vector": (jnp.matmul, _normal(512, 512), _normal(512)),
    "convolution": (
        lambda a, b: conv_general_dilated(a, b, (1, 1), "SAME"),
        _normal(2, 8, 16, 16),
        _normal(8, 8, 3, 3),
    ),
    "FFT": (jnp.fft.fft, _normal(8, 256)),
    "sum": (lambda a: jnp.sum(a, axis=1), _normal(64, 4096)),
    "`sin`": (jnp.sin, _TABLE),
    "`tanh`": (jnp.tanh, _TABLE),
    "`exp`": (jnp.exp, _TABLE),
    "x·y + z": (lambda x, y, z: x * y + z, _TABLE, _normal(64, 256), _normal(64, 256)),
    "softmax of layer norm": (
        lambda a: jax.nn.softmax((a - a.mean(-1, keepdims=True)) / jnp.sqrt(a.var(-1, keepdims=True) + 1e-5)),
        _TABLE,
    ),
}
"""The functions by name, each with its arguments. Matrices of factorizations are 48 by 48; all inputs are float32."""


def main(file: str) -> None:
    outputs = {}
    for name, (function, *arguments) in FUNCTIONS.items():
        for index, output in enumerate(jax.tree_util.tree_leaves(jax.jit(function)(*arguments))):
            outputs[f"{name} {index}"] = np.asarray(output)
    np.savez(file, **outputs)  # type: ignore[arg-type]  # its own keyword is no name here


if __name__ == "__main__":
    main(sys.argv[1])
