"""Trees that jax.export cannot serialize: in an artifact, each such node is a tuple of its leaves."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import jax

from export_core.export import api
from export_core.export.arguments import Arguments
from export_core.goldens.manifest import Flattened

_OWN = (tuple, list, dict, type(None))
_DICTS = (dict, OrderedDict)
"""Types that can be serialized if all their keys are strings. jax.export registers OrderedDict itself, since 0.4.35."""


def plain(value: Any) -> Any:
    """The same tree, with a tuple of its leaves in place of each outermost node that jax.export cannot serialize."""
    return jax.tree_util.tree_map(
        lambda node: tuple(jax.tree_util.tree_leaves(node)) if _is_foreign(node) else node, value, is_leaf=_is_foreign
    )


def with_plain_trees(exported: Any, arguments: Arguments) -> tuple[Any, Flattened | None]:
    """An `Exported` whose trees can be serialized, and what was done to them.

    Nothing is done, and the second result is None, if jax.export can serialize them: tuples, lists, dicts whose keys
    are strings, None, and nodes registered with `jax.export.register_pytree_node_serialization` or
    `register_namedtuple_serialization`. Only the trees differ; the module takes flat arrays in any case.

    Args:
        exported: jax's `Exported`.
        arguments: those that it was exported for, for the paths of the leaves.
    """
    nodes = {*_foreign_nodes(exported.in_tree), *_foreign_nodes(exported.out_tree)}
    if not nodes:
        return exported, None
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
    inputs = (*_paths("args", args), *_paths("kwargs", kwargs))
    return flat, Flattened(inputs, _paths("result", result), tuple(sorted(nodes)))


def _paths(name: str, tree: Any) -> tuple[str, ...]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return tuple(name + jax.tree_util.keystr(path) for path, _ in leaves)


def _is_foreign(value: Any) -> bool:
    """Whether the root of this tree is a node that jax.export cannot serialize."""
    if type(value) in _DICTS and not all(isinstance(key, str) for key in value):
        return True
    if type(value) in _OWN:
        return False
    if jax.tree_util.all_leaves([value]):
        return False
    return type(value) not in api.serializable_nodes()


def _foreign_nodes(tree: Any) -> Iterator[str]:
    """The types of all nodes of a `PyTreeDef` that jax.export cannot serialize."""
    node = tree.node_data()
    if node is None:
        return
    kind, data = node
    keys = {type(key).__name__ for key in data if not isinstance(key, str)} if kind in _DICTS else set()
    if keys:
        yield f"{kind.__name__} with keys of type {', '.join(sorted(keys))}"
    elif kind not in _OWN and kind not in api.serializable_nodes():
        yield f"{kind.__module__}.{kind.__qualname__}"
    for child in tree.children():
        yield from _foreign_nodes(child)
