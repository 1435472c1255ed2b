"""noise.npz: how far each output element moved when its writer ran the artifact again, coarsely.

It has an array for each output in each file of outputs, in the order of the manifest: the logarithm of the noise in
steps of an eighth of an octave, rounded up (int16), of outputs of one byte an element in octaves (int8), so that it
takes no more than the outputs do. An array is empty where no element of the output has noise. Integers and booleans
have noise where elements jump.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens.arrays import Array, Leaf, from_npz, to_npz
from export_core.goldens.errors import GoldenError

Noise = tuple["Array | None", ...]
"""For each output its noise as float64 of the same shape; None where elements must be equal."""

_STEPS = {"int16": 8, "int8": 1}


def noise_to_npz(files: Iterable[tuple[Sequence[Leaf], Noise]]) -> bytes:
    """The bytes of noise.npz, from the outputs of each file and their noise."""
    return to_npz(
        _encoded(leaf, noise) for outputs, noises in files for leaf, noise in zip(outputs, noises, strict=True)
    )


def noise_from_npz(data: bytes, where: str, outputs: Sequence[Sequence[Leaf]]) -> list[Noise]:
    """The noise of each file, whose outputs are given. Raises `GoldenError` for a file that does not belong to them."""
    stored = from_npz(data, where)
    expected = [leaf for call in outputs for leaf in call]
    if len(stored) != len(expected):
        raise GoldenError(f"{where}: expected an array for each of {len(expected)} outputs, found {len(stored)}.")
    decoded = iter([_decoded(code, leaf, where) for code, leaf in zip(stored, expected, strict=True)])
    return [tuple(next(decoded) for _ in call) for call in outputs]


def _encoded(leaf: Leaf, noise: Array | None) -> Leaf:
    dtype = "int8" if leaf.data.itemsize == 1 else "int16"
    if noise is None or not noise.any():
        return Leaf(dtype, np.zeros(0, dtype))
    limits = np.iinfo(dtype)
    with np.errstate(divide="ignore"):
        steps = np.ceil(np.log2(noise) * _STEPS[dtype])
    # The smallest code is for zero: log2 of it is minus infinity.
    return Leaf(dtype, np.where(noise > 0, np.clip(steps, limits.min + 1, limits.max), limits.min).astype(dtype))


def _decoded(code: Leaf, leaf: Leaf, where: str) -> Array | None:
    if code.dtype not in _STEPS or (code.data.size and code.shape != leaf.shape):
        raise GoldenError(f"{where}: expected int16[{','.join(map(str, leaf.shape))}] for {leaf}, found {code}.")
    if not code.data.size:
        return np.zeros(leaf.shape) if leaf.dtype in FLOATS else None
    noise = code.data.astype(np.float64)
    noise /= _STEPS[code.dtype]  # in place: of a large output these are the largest arrays
    with np.errstate(over="ignore"):
        np.exp2(noise, out=noise)
    noise[code.data == np.iinfo(code.dtype).min] = 0.0
    return noise
