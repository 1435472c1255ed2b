"""The arguments of a call: which are arrays and which are static, the call with other values, and their trees.

Trees that jax.export cannot serialize are flattened: in an artifact, each such node is a tuple of its leaves.
"""

import contextlib
import dataclasses
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from export_core.export import api
from export_core.export.errors import ExportError
from export_core.goldens import Leaf
from export_core.goldens.arrays import key_leaf, leaf_of
from export_core.goldens.manifest import Flattened

IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
"""The implementation of random keys in jax, by their dtype."""

PASS_LEAVES = (
    "Pass its leaves: leaves, tree = jax.tree.flatten(x), and export jax.jit(lambda leaves: f(jax.tree.unflatten(tree, "
    "leaves)))."
)
"""The advice for a tree node that accepts only arrays as leaves, or decides by their types what its leaves are."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    static: frozenset[int | str] = frozenset()
    """The positions and names that are static (`static_argnums` of `jax.jit`)."""

    @property
    def dynamic(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that are not static: a tuple of the positional ones, and a dict of the keyword arguments."""
        args = tuple(value for position, value in enumerate(self.args) if position not in self.static)
        return args, {name: value for name, value in self.kwargs.items() if name not in self.static}

    def flat(self) -> list[Any]:
        """Return the leaves of `dynamic`, in order."""
        return list(jax.tree_util.tree_leaves(self.dynamic))

    def with_dynamic(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Self:
        """Return the arguments of the call with these in place of all that are not static."""
        rest = iter(args)
        merged = tuple(value if position in self.static else next(rest) for position, value in enumerate(self.args))
        return replace(self, args=merged, kwargs={**self.kwargs, **kwargs})

    def with_flat(self, values: Sequence[Any]) -> Self:
        """Return the arguments of the call with these leaves in place of `flat()`."""
        tree = jax.tree_util.tree_structure(self.dynamic)
        return self.with_dynamic(*jax.tree_util.tree_unflatten(tree, list(values)))

    def mapped(self, function: Callable[..., Any], *others: Sequence[Any]) -> Self:
        """Return the arguments of the call with `function(leaf, *values)` in place of each leaf.

        Each sequence in `others` has a value for each leaf.
        """
        return self.with_flat(list(itertools.starmap(function, zip(self.flat(), *others, strict=True))))

    def with_leaves(self, leaves: Sequence[Leaf]) -> Self:
        """Return the arguments of the call with values that a golden stores.

        A Python number remains a Python number, and an array remains on its devices.
        """

        def like(value: Any, leaf: Leaf) -> Any:
            is_number = isinstance(value, (bool, int, float, complex))
            return type(value)(leaf.numpy().item()) if is_number else placed_like(value, array_from(leaf))

        return self.mapped(like, leaves)

    def named(self) -> Iterator[tuple[str, str, Any]]:
        """Yield, for each leaf of `dynamic`, its argument such as `argument [0]`, its path inside, and the leaf."""
        positions = [position for position in range(len(self.args)) if position not in self.static]
        for (part, argument, *inside), leaf in jax.tree_util.tree_flatten_with_path(self.dynamic)[0]:
            first = f"[{positions[argument.idx]}]" if part.idx == 0 else f"keyword {jax.tree_util.keystr((argument,))}"
            yield f"argument {first}", jax.tree_util.keystr(tuple(inside)), leaf

    def copy(self) -> Self:
        """Return the arguments with copies of arrays, since a function may consume its arguments (`donate_argnums`)."""
        return self.mapped(lambda value: _copy(value) if isinstance(value, jax.Array) else value)


def find_static_arguments(test: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_tree: Any) -> Arguments:
    """Return the arguments of a jitted function, with a mark on each static argument.

    A jitted function does not tell which of its arguments are static. So every choice is tried: the right choice leaves
    arguments with exactly the tree `dynamic_tree`, which `api.dynamic_tree` found by tracing the function.

    Raises:
        ExportError: No choice fits, or several choices fit.
    """
    named: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    hashable = {key: value for key, value in named if _may_be_static(value)}
    optional = [key for key, value in hashable.items() if all(map(is_array, jax.tree_util.tree_leaves(value)))]
    # Text or a function can only be static. A number can be either, and is tried both ways.
    certain = hashable.keys() - set(optional)
    taken = sum(len(part.children()) for part in dynamic_tree.children())  # of the arguments, positional and by name
    chosen = itertools.combinations(optional, max(len(named) - taken - len(certain), 0))
    choices = (Arguments(args, dict(kwargs), frozenset({*certain, *keys})) for keys in chosen)
    matching = [choice for choice in choices if jax.tree_util.tree_structure(choice.dynamic) == dynamic_tree]
    # ArgInfo is what jax puts in place of arrays: here a node took it for no array, and into its structure.
    if not matching and "ArgInfo(" in str(dynamic_tree):
        raise ExportError(
            f"{test}: a pytree node in an argument decides by type which leaves are static: jax.export cannot export "
            f"such nodes (Too many leaves for PyTreeDef). {PASS_LEAVES} The arguments of the function are "
            f"{tree_text(dynamic_tree)}."
        )
    if len(matching) != 1:
        raise ExportError(
            f"{test}: cannot tell which arguments are static: the function takes {tree_text(dynamic_tree)} as arrays, "
            f"and {'several choices' if matching else 'no choice'} of static arguments would explain that. "
            "Bind the static ones with functools.partial before jax.jit."
        )
    return matching[0]


def tree_text(tree: Any) -> str:
    """Return a `PyTreeDef` as text for messages, cut after 300 characters, since a model's tree is long."""
    text = " ".join(str(tree).split())
    return text if len(text) <= 300 else f"{text[:300]}… ({tree.num_leaves} leaves)"


def _may_be_static(value: Any) -> bool:
    """Return whether jit accepts a value as static: it must be hashable, without arrays or references inside."""
    arrays = (jax.Array, np.ndarray, jax.ShapeDtypeStruct)
    leaves = jax.tree_util.tree_leaves(value)
    return has_hash(value) and not any(isinstance(leaf, arrays) or is_reference(leaf) for leaf in leaves)


def has_hash(value: object) -> bool:
    """Return whether a value can be hashed. Arrays cannot, nor can most objects with arrays as fields."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_reference(leaf: object) -> bool:
    """Return whether a leaf is a mutable array, such as `jax.new_ref` returns since 0.7."""
    return isinstance(leaf, getattr(jax, "Ref", ()))


def is_array(leaf: object) -> bool:
    """Return whether JAX treats a leaf as an array: an array, a Python number, or a `ShapeDtypeStruct`."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        # JAX has no objects, text, dates or records. Its own dtypes are registered (isbuiltin 2); float0 is a record to
        # NumPy.
        return leaf.dtype.kind not in "OSUMmV" or leaf.dtype.isbuiltin == 2 or leaf.dtype == jax.dtypes.float0
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct, bool, int, float, complex))


def leaf_from(value: Any) -> Leaf:
    """Return a jax array, NumPy array or Python number in the form in which a golden stores it.

    Raises `GoldenError` for a dtype that cannot be stored.
    """
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return key_leaf(str(value.dtype), np.asarray(jax.random.key_data(value)))
    if isinstance(value, (bool, int, float, complex)):
        # By way of jax: NumPy would make it 64 bits wide, and jax 32 with x64 off.
        return leaf_of(np.asarray(jax.numpy.asarray(value)))
    return leaf_of(np.asarray(whole(value)))


def array_from(leaf: Leaf) -> Any:
    """Return an array that a golden stores as an array that jax accepts."""
    if leaf.dtype in IMPLEMENTATIONS:
        return jax.random.wrap_key_data(leaf.data, impl=IMPLEMENTATIONS[leaf.dtype])
    return np.zeros(leaf.shape, jax.dtypes.float0) if leaf.dtype == "float0" else jax.numpy.asarray(leaf.numpy())


def whole(value: Any) -> Any:
    """Return the sum that an unreduced array represents, since jax gives no access to the terms of the sum.

    A value that is not an unreduced array is returned unchanged.
    """
    if not getattr(getattr(getattr(value, "sharding", None), "spec", None), "unreduced", None):
        return value
    return jax.sharding.reshard(value, NamedSharding(value.sharding.mesh, PartitionSpec()))


def placed_like(value: Any, array: Any) -> Any:
    """Return `array` moved to the devices, the memory and the layout of `value`."""
    if not isinstance(value, jax.Array) or _format(array) == _format(value):
        return array
    if whole(value) is not value:  # such an array is made only from one that is whole on each device
        return jax.sharding.reshard(placed_like(whole(value), array), value.sharding)
    if array.sharding != value.sharding:
        array = jax.device_put(array, value.sharding)
    # Not always: until 0.10.1, host memory here makes a program that XLA cannot run on a CPU.
    return array if _format(array) == _format(value) else jax.device_put(array, _format(value))


def _copy(array: jax.Array) -> Any:
    """Return a copy of an array on the same devices, in the same memory and layout.

    The method `copy` of jax would put the copy into the default memory and layout.
    """
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
    """Return an array's format: sharding, memory kind and layout.

    Before jax 0.7 there is no `format`; the sharding is returned, without layout.
    """
    return getattr(array, "format", None) or array.sharding


_WIDE = ("float64", "int64", "uint64", "complex128")
"""The dtypes that jax narrows to 32 bits (complex128 to 64) unless `jax_enable_x64` is on."""


def narrowed(value: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a NumPy array or Python number before and after jax narrows its dtype; None if jax does not narrow it."""
    if not isinstance(value, (np.ndarray, np.generic, float, complex)) or str(np.asarray(value).dtype) not in _WIDE:
        return None
    given = np.asarray(value)
    dtype = jax.dtypes.canonicalize_dtype(given.dtype)
    with np.errstate(over="ignore"):
        return None if dtype == given.dtype else (given, given.astype(dtype))


def require_kept(where: str, value: Any) -> None:
    """Raise `ExportError` for a number that jax, without `jax_enable_x64`, silently changes by more than rounding.

    An integer may lose its upper bits, and a float may become infinite. `where` names the value in the message.
    """
    if (pair := narrowed(value)) is None:
        return
    given, taken = pair
    lost = given != taken if given.dtype.kind in "iu" else np.isfinite(given) & ~np.isfinite(taken)
    if lost.any():
        raise ExportError(
            f"{where} is {given.dtype} and holds {given[lost][0]}. Without jax_enable_x64, jax makes it {taken.dtype}, "
            "which cannot hold this number. Enable jax_enable_x64 (jax.config.update('jax_enable_x64', True)), or pass "
            f"numbers that {taken.dtype} can hold."
        )


def rounded_dtypes(values: Iterable[Any]) -> frozenset[str]:
    """Return the dtypes of the NumPy arrays whose numbers jax rounds because `jax_enable_x64` is off."""
    arrays = [value for value in values if isinstance(value, (np.ndarray, np.generic))]
    return frozenset(
        str(given.dtype)
        for given, taken in filter(None, map(narrowed, arrays))
        if ((given != taken) & (given == given)).any()
    )


def stored(values: Sequence[Any], avals: Sequence[Any]) -> tuple[Leaf, ...]:
    """Return values in the form in which goldens store them, with the dtypes that an artifact declares.

    Raises `GoldenError` for a dtype that cannot be stored.
    """

    def as_declared(leaf: Leaf, aval: Any) -> Leaf:
        # jax narrows 64-bit NumPy input when x64 is off; the golden holds what the exported function really takes.
        if leaf.dtype == str(aval.dtype) or leaf.dtype not in _WIDE:
            return leaf
        return leaf_of(leaf.data.astype(aval.dtype))

    return tuple(map(as_declared, map(leaf_from, values), avals))


_OWN = (tuple, list, dict, type(None))
_DICTS = (dict, OrderedDict)
"""Types that jax.export can serialize if all their keys are strings. It registers OrderedDict itself, since 0.4.35."""


def plain(value: Any) -> Any:
    """Return a tree in which a tuple of leaves replaces each outermost node that jax.export cannot serialize."""
    return jax.tree_util.tree_map(
        lambda node: tuple(jax.tree_util.tree_leaves(node)) if _is_foreign(node) else node, value, is_leaf=_is_foreign
    )


def with_plain_trees(exported: Any, arguments: Arguments) -> tuple[Any, Flattened | None]:
    """Return an `Exported` whose trees can be serialized, and how they were flattened; None if that was not necessary.

    jax.export can serialize tuples, lists, dicts whose keys are strings, None, and nodes registered with
    `jax.export.register_pytree_node_serialization` or `register_namedtuple_serialization`. Only the trees change, since
    the StableHLO module takes flat arrays in any case. `arguments` are the arguments of the export, from which the
    paths of the leaves are taken.
    """
    nodes = {*_foreign_nodes(exported.in_tree), *_foreign_nodes(exported.out_tree)}
    if not nodes:
        return exported, None

    def paths(name: str, tree: Any) -> tuple[str, ...]:
        leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
        return tuple(name + jax.tree_util.keystr(path) for path, _ in leaves)

    args, kwargs = arguments.dynamic
    # jax requires that a node can be made of any values.
    result = jax.tree_util.tree_unflatten(exported.out_tree, range(exported.out_tree.num_leaves))
    # The next VJP is one of the function, and calls it with its own trees. Its own arguments and results are flat.
    derivative = {"_get_vjp": lambda _: exported.vjp()} if exported.has_vjp() else {}
    flat = dataclasses.replace(
        exported,
        in_tree=jax.tree_util.tree_structure(plain((args, kwargs))),
        out_tree=jax.tree_util.tree_structure(plain(result)),
        **derivative,
    )
    inputs = (*paths("args", args), *paths("kwargs", kwargs))
    return flat, Flattened(inputs, paths("result", result), tuple(sorted(nodes)))


def _is_foreign(value: Any) -> bool:
    """Return whether the root of the tree `value` is a node that jax.export cannot serialize."""
    if type(value) in _DICTS and not all(isinstance(key, str) for key in value):
        return True
    if type(value) in _OWN or jax.tree_util.all_leaves([value]):
        return False
    return type(value) not in api.serializable_nodes()


def _foreign_nodes(tree: Any) -> Iterator[str]:
    """Yield, as text, the type of each node in a `PyTreeDef` that jax.export cannot serialize."""
    if (node := tree.node_data()) is None:
        return
    kind, data = node
    keys = {type(key).__name__ for key in data if not isinstance(key, str)} if kind in _DICTS else set()
    if keys:
        yield f"{kind.__name__} with keys of type {', '.join(sorted(keys))}"
    elif kind not in _OWN and kind not in api.serializable_nodes():
        yield f"{kind.__module__}.{kind.__qualname__}"
    for child in tree.children():
        yield from _foreign_nodes(child)
