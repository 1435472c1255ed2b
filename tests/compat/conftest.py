"""Inputs of the cases: fixed numbers that no release of jax or numpy draws differently."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Numbers = Callable[..., Any]


@pytest.fixture
def numbers() -> Numbers:
    """``numbers(3, 4)``: a float32 array of that shape with entries in [-1, 1), spread without a pattern that operations could use."""

    def make(*shape: int, offset: int = 0) -> Any:
        count = int(np.prod(shape))
        spread = np.modf((np.arange(offset, offset + count) + 1) * 0.6180339887498949)[0]
        return (2 * spread - 1).astype(np.float32).reshape(shape)

    return make
