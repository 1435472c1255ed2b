"""The arguments of a call: which are arrays and which are static, and the same call with other values."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from export_core.export.errors import ExportError
from export_core.goldens import Leaf
from export_core.goldens.arrays import key_leaf, leaf_of

IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
"""Implementations of random keys, by their dtypes."""

PASS_LEAVES = (
    "Pass its leaves: leaves, tree = jax.tree.flatten(x), and export jax.jit(lambda leaves: f(jax.tree.unflatten(tree, "
    "leaves)))."
)
"""What to do with a tree node that takes nothing but arrays, or says by their types what it is."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call.

    `static` holds the positions and names that are static (`static_argnums` of `jax.jit`).
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    static: frozenset[int | str] = frozenset()

    @property
    def dynamic(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that are not static: positional, and by keyword."""
        args = tuple(value for position, value in enumerate(self.args) if position not in self.static)
        return args, {name: value for name, value in self.kwargs.items() if name not in self.static}

    def flat(self) -> list[Any]:
        """The leaves of `dynamic`, in order."""
        return list(jax.tree_util.tree_leaves(self.dynamic))

    def with_dynamic(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
        """The same call with these in place of `dynamic`."""
        rest = iter(args)
        merged = tuple(value if position in self.static else next(rest) for position, value in enumerate(self.args))
        return replace(self, args=merged, kwargs={**self.kwargs, **kwargs})

    def with_flat(self, values: Sequence[Any]) -> Arguments:
        """The same call with these leaves."""
        tree = jax.tree_util.tree_structure(self.dynamic)
        return self.with_dynamic(*jax.tree_util.tree_unflatten(tree, list(values)))

    def with_leaves(self, leaves: Sequence[Leaf]) -> Arguments:
        """The same call with stored values. A Python number stays a Python number."""
        return self.with_flat([_leaf_like(value, leaf) for value, leaf in zip(self.flat(), leaves, strict=True)])

    def copy(self) -> Arguments:
        """The same values in new arrays, since a function may consume its arguments (`donate_argnums`)."""
        return self.with_flat([_copy(value) if isinstance(value, jax.Array) else value for value in self.flat()])


def find_static_arguments(test: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_tree: Any) -> Arguments:
    """Find out which arguments are static.

    No release of jax lets a jitted function say that. So every choice is tried: the right one leaves exactly the tree
    of arrays that the function takes.

    Args:
        test: for messages.
        args: as they were passed, positional.
        kwargs: as they were passed, by name.
        dynamic_tree: the tree of the arguments that the function takes as arrays (`api.dynamic_tree`).

    Raises:
        ExportError: no choice of static arguments fits, or several do; or a tree node is not as jax needs it.
    """
    matching = [
        arguments
        for static in _possible_static(args, kwargs, dynamic_tree)
        if jax.tree_util.tree_structure((arguments := Arguments(args, dict(kwargs), static)).dynamic) == dynamic_tree
    ]
    # ArgInfo is what jax puts in place of arrays: here a node took it for no array, and into its structure.
    if not matching and "ArgInfo(" in str(dynamic_tree):
        raise ExportError(
            f"{test}: a tree node in the arguments decides by type which leaves are arrays, and jax.export fails "
            f"on it (Too many leaves for PyTreeDef). {PASS_LEAVES} The arguments of the function are "
            f"{tree_text(dynamic_tree)}."
        )
    if len(matching) != 1:
        raise ExportError(
            f"{test}: cannot tell which arguments are static: the function takes {tree_text(dynamic_tree)} as arrays, "
            f"and {'several choices of' if matching else 'no'} static arguments leave that. "
            "Bind the static ones with functools.partial before jax.jit."
        )
    return matching[0]


def tree_text(tree: Any) -> str:
    """A `PyTreeDef` as messages show it: that of a model may have hundreds of lines."""
    text = " ".join(str(tree).split())
    return text if len(text) <= 300 else f"{text[:300]}… ({tree.num_leaves} leaves)"


def _possible_static(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_tree: Any
) -> Iterator[frozenset[int | str]]:
    """Every set of as many arguments as are static, by position and name; those that must be are in all of them."""
    named: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    hashable = {key: value for key, value in named if _may_be_static(value)}
    optional = [key for key, value in hashable.items() if _may_be_array(value)]
    # Text or a function can only be static. A number can be either, and is tried both ways.
    certain = hashable.keys() - set(optional)
    taken = sum(len(part.children()) for part in dynamic_tree.children())  # of the arguments, positional and by name
    count = len(named) - taken - len(certain)
    for chosen in itertools.combinations(optional, max(count, 0)):
        yield frozenset({*certain, *chosen})


def _may_be_static(value: Any) -> bool:
    """Whether jit accepts it as static: it is hashable. Arrays of jax are not."""
    try:
        hash(value)
    except TypeError:
        return False
    arrays = (jax.Array, np.ndarray, jax.ShapeDtypeStruct)
    leaves = jax.tree_util.tree_leaves(value)
    return not any(isinstance(leaf, arrays) or is_reference(leaf) for leaf in leaves)


def _may_be_array(value: Any) -> bool:
    return all(is_array(leaf) for leaf in jax.tree_util.tree_leaves(value))


def is_reference(leaf: object) -> bool:
    """Whether it is a mutable array, as `jax.new_ref` makes them since 0.7."""
    return isinstance(leaf, getattr(jax, "Ref", ()))


def is_array(leaf: object) -> bool:
    """Whether JAX takes this as an array, or traces with it as with one."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        # JAX has no objects, text, dates or records. Its own dtypes are registered (isbuiltin 2); float0 is a record to
        # NumPy.
        return leaf.dtype.kind not in "OSUMmV" or leaf.dtype.isbuiltin == 2 or leaf.dtype == jax.dtypes.float0
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct, bool, int, float, complex))


def leaf_from(value: Any) -> Leaf:
    """A jax array, NumPy array or Python number as it is stored. Raises `GoldenError` for a dtype that cannot be."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return key_leaf(str(value.dtype), np.asarray(jax.random.key_data(value)))
    if isinstance(value, (bool, int, float, complex)):
        # By way of jax: NumPy would make it 64 bits wide, and jax 32 with x64 off.
        return leaf_of(np.asarray(jax.numpy.asarray(value)))
    return leaf_of(np.asarray(whole(value)))


def as_declared(leaf: Leaf, aval: Any) -> Leaf:
    """Jax narrows 64-bit NumPy input when x64 is off; the golden holds what the exported function really takes."""
    if leaf.dtype == str(aval.dtype) or leaf.dtype not in ("float64", "int64", "uint64", "complex128"):
        return leaf
    return leaf_of(leaf.data.astype(aval.dtype))


def whole(value: Any) -> Any:
    """The sum that an unreduced array stands for: jax gives its terms to nobody. Any other value is itself."""
    if not getattr(getattr(getattr(value, "sharding", None), "spec", None), "unreduced", None):
        return value
    return jax.sharding.reshard(value, NamedSharding(value.sharding.mesh, PartitionSpec()))


def placed_like(value: Any, array: Any) -> Any:
    """`array` on the devices, in the memory and in the layout of `value`."""
    if not isinstance(value, jax.Array) or _format(array) == _format(value):
        return array
    if whole(value) is not value:  # such an array can only be made of one that is whole on each device
        return jax.sharding.reshard(placed_like(whole(value), array), value.sharding)
    if array.sharding != value.sharding:
        array = jax.device_put(array, value.sharding)
    # Not in any case: until 0.10.1 this compiles what XLA cannot run on a CPU where the memory is that of the host.
    return array if _format(array) == _format(value) else jax.device_put(array, _format(value))


def _copy(array: jax.Array) -> Any:
    """The same values in a new array of the same format: `copy` gives one in the usual memory and layout."""
    # An uncommitted array (see jax.device_put) is in default memory with the default layout. Its copy must be
    # uncommitted too: jit refuses committed arguments that are on different devices.
    if not getattr(array, "committed", True):
        with contextlib.suppress(TypeError):  # a jax without `may_alias`
            # `copy` compiles a program for each shape and dtype: 12 ms each, this 0.4 ms.
            return jax.device_put(array, may_alias=False)
    copy = array.copy()
    if copy.sharding != array.sharding:
        copy = jax.device_put(array, array.sharding, may_alias=False)
    return placed_like(array, copy)


def _format(array: Any) -> Any:
    """Sharding, memory and layout of an array. Before 0.7 jax says the layout elsewhere, and few arrays have one."""
    return getattr(array, "format", None) or array.sharding


def _leaf_like(value: Any, leaf: Leaf) -> Any:
    """A stored value as an argument of the kind of `value`: a Python number, or an array in the same place."""
    if leaf.dtype in IMPLEMENTATIONS:
        return placed_like(value, jax.random.wrap_key_data(leaf.data, impl=IMPLEMENTATIONS[leaf.dtype]))
    if leaf.dtype == "float0":
        return np.zeros(leaf.shape, jax.dtypes.float0)
    if isinstance(value, (bool, int, float, complex)):
        return type(value)(leaf.numpy().item())
    return placed_like(value, jax.numpy.asarray(leaf.numpy()))
