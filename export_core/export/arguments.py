"""What does a jitted function take as arrays, and how are other values put in their place?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from export_core.export.errors import ExportError
from export_core.goldens import Leaf
from export_core.goldens.arrays import key_leaf, leaf_of

_IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call. `static` are the positions and names that `jax.jit` was told to take as part of the function."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    static: frozenset[int | str] = frozenset()

    @property
    def dynamic(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What is taken as arrays: positional, by keyword."""
        args = tuple(value for position, value in enumerate(self.args) if position not in self.static)
        return args, {name: value for name, value in self.kwargs.items() if name not in self.static}

    def flat(self) -> list[Any]:
        """The leaves of `dynamic`, in order."""
        return list(jax.tree_util.tree_leaves(self.dynamic))

    def with_dynamic(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
        """The same call with these in place of `dynamic`."""
        rest = iter(args)
        whole = tuple(value if position in self.static else next(rest) for position, value in enumerate(self.args))
        return replace(self, args=whole, kwargs={**self.kwargs, **kwargs})

    def with_flat(self, values: Sequence[Any]) -> Arguments:
        """The same call with these leaves."""
        tree = jax.tree_util.tree_structure(self.dynamic)
        return self.with_dynamic(*jax.tree_util.tree_unflatten(tree, list(values)))

    def with_leaves(self, leaves: Sequence[Leaf]) -> Arguments:
        """The same call with stored values. A Python number stays a Python number."""
        return self.with_flat([_like(value, leaf) for value, leaf in zip(self.flat(), leaves, strict=True)])

    def copied(self) -> Arguments:
        """The same values in arrays of their own, since a function may consume its arguments (`donate_argnums`)."""
        return self.with_flat([value.copy() if isinstance(value, jax.Array) else value for value in self.flat()])


def arguments_of(test: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], taken: Any) -> Arguments:
    """Find the static arguments.

    Args:
        test: for messages.
        args: as they were passed, positional.
        kwargs: as they were passed, by name.
        taken: the tree of what the function takes as arrays (`api.dynamic_tree`).

    Raises:
        ExportError: it cannot be told which they are.
    """
    found = [
        whole
        for static in _candidates(args, kwargs)
        if jax.tree_util.tree_structure((whole := Arguments(args, dict(kwargs), static)).dynamic) == taken
    ]
    if len(found) != 1:
        raise ExportError(
            f"{test}: the function takes {taken} as arrays, and that can be {'any of several' if found else 'none'} of the arguments: "
            "expected to tell the static ones from their kind. Bind them with functools.partial before jax.jit."
        )
    return found[0]


def _candidates(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[frozenset[int | str]]:
    """Which arguments may be static: those that are hashable, as jit wants it. Arrays are not."""
    named: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    hashable = [where for where, value in named if _may_be_static(value)]
    must = {where for where, value in named if where in hashable and not _may_be_array(value)}
    optional = [where for where in hashable if where not in must]
    for count in range(len(optional) + 1):
        for chosen in itertools.combinations(optional, count):
            yield frozenset({*must, *chosen})


def _may_be_static(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return value is not None and not any(
        isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree_util.tree_leaves(value)
    )


def _may_be_array(value: Any) -> bool:
    return all(is_array(leaf) for leaf in jax.tree_util.tree_leaves(value))


def is_array(leaf: object) -> bool:
    """Whether JAX takes this as an array."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        # Objects, texts, dates and records are NumPy's, not JAX's; float0 is a record to NumPy, and JAX's.
        return leaf.dtype.kind not in "OSUMmV" or leaf.dtype.isbuiltin == 2 or leaf.dtype == jax.dtypes.float0
    return isinstance(leaf, (jax.Array, bool, int, float, complex))


def leaf_from(value: Any) -> Leaf:
    """A jax array, NumPy array or Python number as it is stored."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return key_leaf(str(value.dtype), np.asarray(jax.random.key_data(value)))
    if isinstance(value, (bool, int, float, complex)):
        return leaf_of(np.asarray(jax.numpy.asarray(value)))
    return leaf_of(np.asarray(value))


def _like(value: Any, leaf: Leaf) -> Any:
    if leaf.dtype in _IMPLEMENTATIONS:
        return jax.random.wrap_key_data(leaf.data, impl=_IMPLEMENTATIONS[leaf.dtype])
    if leaf.dtype == "float0":
        return np.zeros(leaf.shape, jax.dtypes.float0)
    if isinstance(value, (bool, int, float, complex)):
        return type(value)(leaf.numpy().item())
    array = jax.numpy.asarray(leaf.numpy())
    return jax.device_put(array, value.sharding) if len(getattr(value, "devices", set)()) > 1 else array
