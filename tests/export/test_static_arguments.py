"""Static arguments are found by comparing the arguments with the tree that the function takes."""

import jax
import numpy as np
import pytest

from export_core.export.api import dynamic_tree
from export_core.export.arguments import find_static_arguments
from export_core.export.errors import ExportError

X = np.ones(3, np.float32)


def static_of(function, *args, **kwargs):
    return find_static_arguments("t", args, kwargs, dynamic_tree(function, args, kwargs)).static


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "static"),
    [
        (jax.jit(lambda x, y, n=1: x * n + y["a"]), (X, {"a": 2.0}), {"n": 3}, set()),
        (jax.jit(lambda x, n: x * n, static_argnums=1), (X, 3), {}, {1}),
        (jax.jit(lambda x, n: x * n), (X, 3), {}, set()),
        (jax.jit(lambda x, how, f: f(x) if how == "f" else x, static_argnums=(1, 2)), (X, "f", abs), {}, {1, 2}),
        (jax.jit(lambda x, n, m="a": x * n, static_argnames=("n", "m")), (X,), {"n": 3, "m": "b"}, {"n", "m"}),
        (jax.jit(lambda x, shape, pair: x.reshape(shape) + pair[0], static_argnums=1), (X, (3, 1), (X, 2)), {}, {1}),
    ],
    ids=["none", "a number", "no number", "text and a function", "keywords", "a tuple beside a tree"],
)
def test_static_arguments_are_distinguished_from_arrays(function, args, kwargs, static):
    assert static_of(function, *args, **kwargs) == static


def test_an_ambiguous_choice_of_static_numbers_is_an_error():
    with pytest.raises(ExportError, match=r"several choices of static arguments .* functools.partial"):
        static_of(jax.jit(lambda x, n, m: x * n * m, static_argnums=1), X, 3, 4)


class NodeByType:
    """A node whose leaves are those of its values that are arrays, as for distributions of distrax."""

    def __init__(self, *values):
        self.values = values


def is_array(value):
    return isinstance(value, (np.ndarray, jax.Array, jax.core.Tracer))


def _flatten(node):
    return [*filter(is_array, node.values)], tuple(None if is_array(value) else value for value in node.values)


def _unflatten(others, arrays):
    rest = iter(arrays)
    return NodeByType(*(next(rest) if other is None else other for other in others))


jax.tree_util.register_pytree_node(NodeByType, _flatten, _unflatten)


def test_a_pytree_node_that_chooses_leaves_by_type_is_refused():
    with pytest.raises(ExportError, match=r"decides by type .* leaves, tree = jax\.tree\.flatten\(x\)"):
        static_of(jax.jit(lambda node: node.values[0]), NodeByType(X, 3))


class Converting:
    """A node that converts its leaves to arrays, as distributions of TensorFlow Probability do."""

    def __init__(self, value):
        self.value = value if isinstance(value, jax.core.Tracer) else np.asarray(value, np.float32)


jax.tree_util.register_pytree_node(
    Converting, lambda node: ((node.value,), None), lambda _, values: Converting(*values)
)


def test_a_pytree_node_that_takes_only_arrays_is_refused(exported):
    with pytest.raises(ExportError, match=r"accepts only arrays as its leaves.* leaves, tree = jax\.tree\.flatten\("):
        exported(jax.jit(lambda node: node.value + 1), Converting(X[0]))


def test_replacing_the_arrays_leaves_static_arguments_unchanged():
    function = jax.jit(lambda x, mode, y: x + y, static_argnums=1)
    found = find_static_arguments("t", (X, "m", 2.0), {}, dynamic_tree(function, (X, "m", 2.0), {}))
    assert found.dynamic == ((X, 2.0), {})
    assert found.with_flat([5, 6]).args == (5, "m", 6)
