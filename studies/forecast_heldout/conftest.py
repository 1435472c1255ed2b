"""The fixtures that the programs share: numbers of a seed, and 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest


@pytest.fixture
def draw() -> Callable[..., Any]:
    """A function of a seed and a shape, ``draw(7, 3, 4)``: normally distributed float32 numbers."""
    return lambda seed, *shape: np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture
def x64() -> Iterator[None]:
    """jax_enable_x64, set during a test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
