"""The operators that mutate a module: some of Cosmic Ray, and three for conditions that Cosmic Ray does not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

_COSMIC_RAY = (
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop"),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub"),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "BitAnd_BitOr")),
)
"""The operators of Cosmic Ray that are used. None changes ``|``, which is nearly always part of an annotation."""
_SWAPPED = {"any": "all", "all": "any", "min": "max", "max": "min"}


class _OfChildren(Operator):  # type: ignore[misc]  # Cosmic Ray has no types
    """An operator that replaces some children of a node in the syntax tree."""

    def chosen(self, node: Any) -> Iterator[tuple[int, str]]:
        """Yield the positions, among a node's children, of those that are replaced, each with the new code."""
        raise NotImplementedError

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        for position, _ in self.chosen(node):
            yield node.children[position].start_pos, node.children[position].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        position, text = list(self.chosen(node))[index]
        node.children[position] = parso.parse(text)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class _InvertCondition(_OfChildren):
    """An operator that inverts conditions of ``elif`` and of comprehensions, and tests with ``in`` and ``not in``."""

    def chosen(self, node: Any) -> Iterator[tuple[int, str]]:
        for position, child in enumerate(getattr(node, "children", ())):
            before = node.children[position - 1] if position else None
            is_test = before is not None and (before == "elif" or (node.type == "comp_if" and before == "if"))
            if is_test or (child.type == "comparison" and "in" in child.children[1].get_code().split()):
                yield position, f"{child.get_first_leaf().prefix}(not ({child.get_code(include_prefix=False)}))"


class _SwapQuantifier(_OfChildren):
    """An operator that swaps ``any`` with ``all``, and ``min`` with ``max``, where they are called."""

    def chosen(self, node: Any) -> Iterator[tuple[int, str]]:
        if node.type == "atom_expr" and (other := _SWAPPED.get(getattr(node.children[0], "value", ""))):
            yield 0, node.children[0].prefix + other


class _InvertReturn(_OfChildren):
    """An operator that inverts what a function with the annotation ``-> bool`` returns."""

    def chosen(self, node: Any) -> Iterator[tuple[int, str]]:
        if node.type == "return_stmt":
            function = parso.python.tree.search_ancestor(node, "funcdef")
            if function is not None and function.annotation is not None and function.annotation.get_code() == " bool":
                yield 1, f" not ({node.children[1].get_code(include_prefix=False)})"


OPERATORS: dict[str, Any] = {
    **{name: get_operator(f"core/{name}")() for name in _COSMIC_RAY},
    **{type(own).__name__[1:]: own for own in (_InvertCondition(), _SwapQuantifier(), _InvertReturn())},
}
