"""What are the derivatives of a function, worked out without its artifact?

The derivative of order k of a function takes the arguments of order k-1 followed by a cotangent for each of its outputs, and gives a
cotangent for each of its arguments: what `jax.export.Exported.vjp` calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

Flat = Callable[..., tuple[Any, ...]]
"""A function of flat arrays that gives flat arrays."""

SEED = 20240618


def derivatives(function: Flat, values: Sequence[Any], order: int) -> list[tuple[list[Any], list[Any]]]:
    """Arguments and results of the derivatives of order 1 to `order`, at `values`.

    The cotangents are drawn from a fixed seed, the same for every writer.
    """
    found: list[tuple[list[Any], list[Any]]] = []
    arguments, results = list(values), list(jax.jit(function)(*values))
    drawn = np.random.RandomState(SEED)  # its numbers are the same in every NumPy
    for _ in range(order):
        function = _pullback(function, len(arguments))
        arguments = [*arguments, *(_cotangent(value, drawn) for value in results)]
        results = list(jax.jit(function)(*arguments))
        found.append((arguments, results))
    return found


def _pullback(function: Flat, count: int) -> Flat:
    def pulled_back(*flat: Any) -> tuple[Any, ...]:
        _, pull = jax.vjp(function, *flat[:count])
        return tuple(pull(tuple(flat[count:])))

    return pulled_back


def _cotangent(value: Any, drawn: np.random.RandomState) -> Any:
    """A cotangent of the type that jax wants for this output: float0 where there is nothing to differentiate."""
    kind = np.dtype(value.dtype) if value.dtype == jax.dtypes.float0 else value.dtype
    if not jax.dtypes.issubdtype(kind, np.inexact):
        return np.zeros(value.shape, jax.dtypes.float0)
    real = drawn.standard_normal(value.shape)
    if jax.dtypes.issubdtype(kind, np.complexfloating):
        real = real + 1j * drawn.standard_normal(value.shape)
    return np.asarray(real).astype(kind)
