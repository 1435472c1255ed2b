"""What the programs share: numbers of a seed, and 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest


@pytest.fixture
def draw() -> Callable[..., Any]:
    """``draw(7, 3, 4)``: normally distributed float32 numbers of a seed, in a shape."""
    return lambda seed, *shape: np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture
def x64() -> Iterator[None]:
    """Sets jax_enable_x64 for a test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
