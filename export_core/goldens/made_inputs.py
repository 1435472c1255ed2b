"""Inputs that are made by a rule where nobody has any: the same values on every machine, with every NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from export_core.artifact import Aval
from export_core.goldens.arrays import KEYS, PLAIN, Leaf, leaf_of
from export_core.goldens.dimensions import size_of, symbols_of
from export_core.goldens.errors import GoldenError

SEED = 20261122  # never to be changed, like the rest of the rule: goldens hold the arrays that it gives

FIRST_SIZE = 2
"""The size of the first symbolic dimension by name, where none is given; the next one gets one more."""

MOST_ELEMENTS = 1 << 29
"""Of all made inputs: a damaged artifact may declare any shape."""

_KEY_SIZES = {"key<fry>": 2, "key<rbg>": 4, "key<urbg>": 4}
"""Words of 32 bits in the data of a PRNG key."""


def made_leaf(random: np.random.RandomState, dtype: str, shape: Sequence[int]) -> Leaf:
    """The next array of the rule.

    Floating-point and complex numbers are normally distributed, integers are from 0 to 7, booleans alternate, PRNG keys
    have random data. The numbers of `RandomState` are the same in every NumPy; those of `default_rng` need not be.
    """
    shape = tuple(shape)
    if dtype in KEYS:
        return Leaf(dtype, random.randint(0, 2**32, (*shape, _KEY_SIZES[dtype]), dtype=np.uint32))
    if dtype == "float0":
        return Leaf(dtype, np.zeros(shape, np.bool_))
    if dtype == "bool":
        return leaf_of(np.arange(math.prod(shape)).reshape(shape) % 2 == 0)
    if dtype.startswith(("int", "uint")):
        return leaf_of(random.randint(0, 8, shape, dtype=np.int32).astype(_numpy_dtype(dtype)))
    values = np.asarray(random.standard_normal(shape))
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return leaf_of(values.astype(_numpy_dtype(dtype)))


def made_inputs(avals: Sequence[Aval], given_sizes: Mapping[str, int]) -> tuple[list[Leaf], dict[str, int]]:
    """Inputs for an artifact that declares these types, and the sizes of all symbolic dimensions.

    Args:
        avals: the types of its flat arguments.
        given_sizes: sizes of symbolic dimensions; the others, sorted by name, get 2, 3, 4 and so on.

    Raises:
        GoldenError: it has no dimension of a given name, a size is not positive, or the arrays would be too large.
    """
    symbols = symbols_of(avals)
    if unknown := sorted(given_sizes.keys() - set(symbols)):
        raise GoldenError(
            f"expected sizes of its symbolic dimensions ({', '.join(symbols) or 'it has none'}), "
            f"found one of {', '.join(unknown)}."
        )
    others = (symbol for symbol in symbols if symbol not in given_sizes)
    sizes = {**given_sizes, **{symbol: FIRST_SIZE + number for number, symbol in enumerate(others)}}
    shapes = [_shape(aval, sizes) for aval in avals]
    count = sum(math.prod(max(size, 1) for size in shape) for shape in shapes)  # NumPy limits also shapes with a 0
    if count > MOST_ELEMENTS:
        raise GoldenError(
            f"expected at most {MOST_ELEMENTS:,} elements of inputs to make, found types with {count:,}. Give inputs."
        )
    random = np.random.RandomState(SEED)
    return [made_leaf(random, aval.dtype, shape) for aval, shape in zip(avals, shapes, strict=True)], sizes


def sizes_in_words(sizes: Mapping[str, int]) -> str:
    """``b = 2, h = 3``; empty without symbolic dimensions."""
    return ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))


def _shape(aval: Aval, sizes: Mapping[str, int]) -> tuple[int, ...]:
    shape = tuple(size_of(dim, sizes) for dim in aval.shape)
    # For jax, what a symbol gives is at least 1.
    if all(isinstance(dim, int) or (size or 0) > 0 for dim, size in zip(aval.shape, shape, strict=True)):
        return tuple(size or 0 for size in shape)
    raise GoldenError(
        f"expected sizes of symbolic dimensions that give {aval} a shape, found {sizes_in_words(sizes)}. "
        "Give other sizes, or inputs."
    )


def _numpy_dtype(dtype: str) -> np.dtype[Any]:
    if dtype in PLAIN:
        return np.dtype(dtype)
    import ml_dtypes  # here only: a golden of plain dtypes is made where there is no jax

    made: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype))
    return made
