"""Tree nodes of our own, as a reader must know them to read an artifact that has them: the golden keeps a copy of this file."""

from __future__ import annotations

import collections
import json

import jax

try:
    from jax import export
except ImportError:  # up to 0.4.29, which could not serialize them either
    export = None

Point = collections.namedtuple("Point", ["x", "y"])


class Tagged:
    """Two children, and data beside them that is no array."""

    def __init__(self, left, right, tags):
        self.left = left
        self.right = right
        self.tags = tags


jax.tree_util.register_pytree_node(
    Tagged, lambda node: ((node.left, node.right), node.tags), lambda tags, children: Tagged(*children, tags)
)
if hasattr(export, "register_pytree_node_serialization"):
    export.register_namedtuple_serialization(Point, serialized_name="pytest_jaxexport.Point")
    export.register_pytree_node_serialization(
        Tagged,
        serialized_name="pytest_jaxexport.Tagged",
        serialize_auxdata=lambda tags: json.dumps(tags).encode(),
        deserialize_auxdata=lambda data: tuple(json.loads(bytes(data))),
    )
