"""How do stored leaves become arguments again, of the kinds that a test passes?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from export_core.goldens import Leaf

_IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


def arguments_like(
    args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Leaf]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The trees of `args` and `kwargs` with other values in them; a Python number stays a Python number."""
    now, tree = jax.tree_util.tree_flatten((args, kwargs))
    values = [_like(value, leaf) for value, leaf in zip(now, leaves, strict=True)]
    rebuilt: tuple[tuple[Any, ...], dict[str, Any]] = jax.tree_util.tree_unflatten(tree, values)
    return rebuilt


def _like(value: Any, leaf: Leaf) -> Any:
    if leaf.dtype in _IMPLEMENTATIONS:
        return jax.random.wrap_key_data(leaf.data, impl=_IMPLEMENTATIONS[leaf.dtype])
    if leaf.dtype == "float0":
        return np.zeros(leaf.shape, jax.dtypes.float0)
    if isinstance(value, (bool, int, float, complex)):
        return type(value)(leaf.numpy().item())
    return jax.numpy.asarray(leaf.numpy())
