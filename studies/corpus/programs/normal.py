"""Arguments of the programs: the same numbers in every release of NumPy and JAX."""

import numpy as np


def normal(seed, *shape, scale=1.0):
    """Normally distributed float32 numbers of this shape, from a generator whose stream NumPy never changes."""
    return (scale * np.random.RandomState(seed).standard_normal(shape)).astype(np.float32)


def whole(seed, high, *shape):
    """Evenly distributed int32 numbers from 0 to below `high`, of this shape."""
    return np.random.RandomState(seed).randint(0, high, shape).astype(np.int32)
