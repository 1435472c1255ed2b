"""Derivatives of a function, computed without its artifact: the expected results of those that the artifact holds.

The derivative of order k takes the arguments of order k-1 followed by a cotangent for each of its outputs, and gives a
cotangent for each of its arguments, as `jax.export.Exported.vjp` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

Flat = Callable[..., tuple[Any, ...]]
"""A function from flat arrays to flat arrays."""

SEED = 20240618  # never to be changed: goldens hold the cotangents that it gives


def derivatives(
    function: Flat, values: Sequence[Any], order: int, *, run: bool = True
) -> list[tuple[list[Any], list[Any] | None]]:
    """Flat arguments and results of the derivatives of order 1 to `order`, at `values`; None without `run`.

    The cotangents are random numbers from a fixed seed, the same for every writer.
    """
    calls: list[tuple[list[Any], list[Any] | None]] = []

    def results_of(function: Flat, arguments: Sequence[Any]) -> list[Any]:
        # All are kept: the derivative of a linear function uses no argument that says on which devices it runs.
        jitted = jax.jit(function, keep_unused=True)
        return list(jitted(*arguments) if run else jax.eval_shape(function, *arguments))

    arguments, results = list(values), results_of(function, values)
    random = np.random.RandomState(SEED)  # its numbers are the same in every NumPy, those of default_rng need not be
    for _ in range(order):
        function = _pullback(function, len(arguments))  # of the derivative before, as jax.export nests its VJPs
        arguments = [*arguments, *(_cotangent(value, random) for value in results)]
        results = results_of(function, arguments)
        calls.append((arguments, results if run else None))
    return calls


def _pullback(function: Flat, count: int) -> Flat:
    """The derivative of a function of `count` arguments."""

    def pullback(*flat: Any) -> tuple[Any, ...]:
        _, pull = jax.vjp(function, *flat[:count])
        return tuple(pull(tuple(flat[count:])))

    return pullback


def _cotangent(value: Any, random: np.random.RandomState) -> Any:
    """A cotangent of the dtype that jax expects for this output: float0 where the output is not differentiable."""
    kind = np.dtype(value.dtype) if value.dtype == jax.dtypes.float0 else value.dtype
    if not jax.dtypes.issubdtype(kind, np.inexact):
        return np.zeros(value.shape, jax.dtypes.float0)
    real = random.standard_normal(value.shape)
    if jax.dtypes.issubdtype(kind, np.complexfloating):
        real = real + 1j * random.standard_normal(value.shape)
    return np.asarray(real).astype(kind)
