"""Arguments of the programs: the same numbers in every release, since NumPy promises that RandomState never changes."""

from __future__ import annotations

from typing import Any

import numpy as np


def normal(seed: int, *shape: int, scale: float = 1.0, dtype: Any = np.float32) -> Any:
    """Return normally distributed numbers."""
    return (scale * np.random.RandomState(seed).standard_normal(shape)).astype(dtype)


def uniform(seed: int, *shape: int, low: float = 0.0, high: float = 1.0, dtype: Any = np.float32) -> Any:
    """Return evenly distributed numbers between two bounds."""
    return np.random.RandomState(seed).uniform(low, high, shape).astype(dtype)


def integers(seed: int, *shape: int, high: int) -> Any:
    """Return evenly distributed int32 numbers from 0 to below `high`."""
    return np.random.RandomState(seed).randint(0, high, shape).astype(np.int32)
