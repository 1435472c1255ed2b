"""Trees of arguments and results: dicts, None, namedtuples, nodes of our own, keywords."""

import jax
import pytest
from compat_nodes import Point, Tagged

registered = pytest.mark.export_compat(register=("compat_nodes",))


@pytest.mark.export_compat(constant=["args[0]['a'][1]", "args[1][0]"])
def test_dicts_lists_and_none(export_golden, numbers):
    def regrouped(tree, pair):
        return {"b": [tree["a"][0] * 2, None], "a": (pair[1], {}), "none": tree["none"]}

    export_golden(jax.jit(regrouped), {"a": [numbers(2), numbers(3)], "none": None}, (numbers(1), numbers(2, 2)))


@pytest.mark.export_compat
def test_keyword_arguments(export_golden, numbers):
    def scaled(x, *, factor, shift=None):
        return x * factor["by"] + (0 if shift is None else shift)

    export_golden(jax.jit(scaled), numbers(3), factor={"by": numbers(1)}, shift=numbers(3, offset=2))


@registered
def test_namedtuple(export_golden, numbers):
    export_golden(jax.jit(lambda point: Point(point.y, point.x + 1)), Point(numbers(2), numbers(3)))


@registered
def test_custom_node_with_data(export_golden, numbers):
    export_golden(
        jax.jit(lambda node: Tagged(node.left @ node.right, node.left, (*node.tags, "after"))),
        Tagged(numbers(2, 3), numbers(3, 2), ("before",)),
    )


@registered
def test_nested(export_golden, numbers):
    def inner_out(tree):
        node = tree["nodes"][0]
        return Point(node.left.x, {"rest": [Tagged(node.right, None, ())]})

    export_golden(jax.jit(inner_out), {"nodes": [Tagged(Point(numbers(2), None), (numbers(1),), ("a", "b"))]})


@pytest.mark.export_compat(register=("compat_nodes",), vjp_order=1)
def test_derivative_of_trees(export_golden, numbers):
    export_golden(jax.jit(lambda point: {"product": point.x * point.y}), Point(numbers(2), numbers(2, offset=2)))
