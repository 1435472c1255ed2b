"""Symbolic dimensions as an artifact declares them: the names in them, and their sizes. Text that is not trusted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from export_core.artifact import Aval
from export_core.goldens.errors import GoldenError

_NAME = re.compile(r"[a-zA-Z_]\w*(?![\w(])")


def symbols_of(avals: Iterable[Aval]) -> list[str]:
    """The names of all symbolic dimensions, sorted."""
    return sorted({name for aval in avals for dim in aval.shape if isinstance(dim, str) for name in _NAME.findall(dim)})


def parse_sizes(text: str, problem: str) -> dict[str, int]:
    """``b=4,h=8`` as sizes by name. Raises `GoldenError` with this text for anything else."""
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    names = [name.strip() for name, _ in pairs]
    if not all(names) or len(set(names)) < len(names) or not all(size.isdecimal() and int(size) for _, size in pairs):
        raise GoldenError(problem)
    return {name: int(size) for name, (_, size) in zip(names, pairs, strict=True)}


def size_of(dim: int | str, sizes: Mapping[str, int]) -> int | None:
    """The size of a dimension, by the sizes of symbols; None where it depends on one that has none."""
    if isinstance(dim, int):
        return dim
    try:
        # jax prints powers with ^, which binds less than + in Python.
        return _value(ast.parse(dim.replace("^", "**"), mode="eval").body, sizes)
    except (SyntaxError, KeyError, ZeroDivisionError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.AST, sizes: Mapping[str, int]) -> int:
    """The value of a dimension's expression as jax prints it: names, integers, + - * ^, floordiv, mod, max, min.

    Walks the tree instead of calling eval: the text comes from a file that is not trusted. Raises `ValueError` for
    anything else.
    """
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.BinOp(left=left, op=operator, right=right):
            first, second = _value(left, sizes), _value(right, sizes)
            match operator:
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
                case ast.Mult():
                    return first * second
                case ast.Pow() if 0 <= second < 16:  # a shape never needs more, and a large one would take forever
                    return int(first**second)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            values = [_value(argument, sizes) for argument in arguments]
            match name, values:
                case "floordiv", [first, second]:
                    return first // second
                case "mod", [first, second]:
                    return first % second
                case "max", [_, *_]:
                    return max(values)
                case "min", [_, *_]:
                    return min(values)
    raise ValueError(ast.dump(node))
