"""A live call of an artifact: the function that a server calls, and the values of a call as goldens store them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from export_core.artifact import Aval
from export_core.export import api
from export_core.export.arguments import as_declared, leaf_from
from export_core.goldens import Leaf


def jitted_call(data: bytes) -> Callable[..., Any]:
    """The function of an artifact. It is compiled once for each set of shapes."""
    function: Callable[..., Any] = jax.jit(api.call_of(api.export_module().deserialize(bytearray(data))))
    return function


def is_traced(values: Sequence[Any]) -> bool:
    """Whether this is a call inside a function that jax traces: there are no values."""
    return any(isinstance(value, jax.core.Tracer) for value in values)


def flat(values: Any) -> list[Any]:
    """The leaves of arguments or results, in the order of the artifact's types."""
    return list(jax.tree_util.tree_leaves(values))


def held(values: Sequence[Any]) -> list[Any]:
    """The same values, whatever the caller does next: NumPy arrays are copied, and arrays of jax cannot change."""
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


def nbytes(values: Sequence[Any]) -> int:
    """Bytes of all arrays among these values."""
    return sum(int(getattr(value, "nbytes", 0)) for value in values)


def stored(values: Sequence[Any], avals: Sequence[Aval]) -> list[Leaf]:
    """Values as goldens store them, in the dtypes that the artifact declares. Waits for arrays that are computed.

    Raises `GoldenError` or an error of jax, such as for an array that was donated meanwhile.
    """
    leaves = [leaf_from(value) for value in values]
    if len(leaves) != len(avals):
        return leaves  # what checks the number names both
    return [as_declared(leaf, aval) for leaf, aval in zip(leaves, avals, strict=True)]


def platform_of(values: Sequence[Any]) -> str:
    """The platform of the device that holds these values, as jax.export calls it."""
    arrays = (value for value in values if isinstance(value, jax.Array))
    platform = next((device.platform for array in arrays for device in array.devices()), "gpu")
    return api.platform_name() if platform == "gpu" else str(platform)
