"""Example inputs that a seeded rule makes: the same values on every machine and with every NumPy release.

Below them are symbolic dimensions as an artifact declares them: their names and sizes. Their text comes from the
artifact and is not trusted.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from export_core.artifact import Aval
from export_core.artifact.main_check import KEY_WORDS, dimension_names
from export_core.goldens.arrays import GoldenError, Leaf, leaf_of, numpy_dtype
from export_core.goldens.manifest import InputsRule

SEED = 20261122  # never to be changed, like the rest of the rule: goldens hold the arrays that it gives
FIRST_SIZE = 2  # The size of the first symbolic dimension without a given one, by name; the next one gets 3, and so on.
MOST_TRIED = 1 << 12  # Combinations of sizes for which constraints are checked.
MOST_ELEMENTS = 1 << 29  # The most elements of all made inputs together: a damaged artifact may declare any shape.
RULES: tuple[InputsRule, ...] = ("", "positive", "positive definite")
"""The rules for inputs in the order in which they are tried, until a function returns no NaN and no infinity."""


def made_leaf(random: np.random.RandomState, dtype: str, shape: Sequence[int], rule: InputsRule = "") -> Leaf:
    """Return the next array that a rule makes, of this dtype of JAX and this shape; `random` is advanced.

    By the rule "", floating-point and complex numbers are normally distributed, integers are from 0 to 7, booleans
    alternate, and PRNG keys have random data. The numbers of `RandomState` are the same in every NumPy; those of
    `default_rng` need not be.

    By the rules "positive" and "positive definite", floating-point numbers are from 0.25 to 0.75, where nearly every
    function is defined, and integers are from 1 to 7. By the latter, square matrices are also Hermitian, with their
    size added to the diagonal: then they are positive definite. Raises `GoldenError` for a dtype that is not installed.
    """
    shape = tuple(shape)
    if dtype in KEY_WORDS:
        return Leaf(dtype, random.randint(0, 2**32, (*shape, KEY_WORDS[dtype]), dtype=np.uint32))
    if dtype == "float0":
        return Leaf(dtype, np.zeros(shape, np.bool_))
    meant = numpy_dtype(dtype)
    if meant is None:
        raise GoldenError(f"expected a dtype that the installed ml_dtypes has, found {dtype}. Give inputs.")
    if dtype == "bool":
        return leaf_of(np.arange(math.prod(shape)).reshape(shape) % 2 == 0)
    if dtype.startswith(("int", "uint")):
        return leaf_of(random.randint(1 if rule else 0, 8, shape, dtype=np.int32).astype(meant))

    def draw() -> Any:
        return np.asarray(random.random_sample(shape) / 2 + 0.25 if rule else random.standard_normal(shape))

    values = draw() + 1j * draw() if dtype.startswith("complex") else draw()
    if rule == "positive definite" and len(shape) > 1 and shape[-1] == shape[-2] > 1:
        # Sums of two numbers, and no products: they are the same on every machine.
        values = (values + values.conj().swapaxes(-1, -2)) / 2 + shape[-1] * np.eye(shape[-1])
    return leaf_of(values.astype(meant))


def made_inputs(
    avals: Sequence[Aval],
    given_sizes: Mapping[str, int],
    rule: InputsRule = "",
    *,
    constraints: Sequence[str] = (),
    most_elements: int = MOST_ELEMENTS,
) -> tuple[list[Leaf], dict[str, int]]:
    """Return inputs that a rule makes for flat arguments of these types, and the sizes of all symbolic dimensions.

    Dimensions without a given size get 2, 3, 4 and so on, sorted by name. If `constraints`, as jax prints them, do not
    hold for these sizes, the first sizes are used for which they hold.

    Raises:
        GoldenError: The artifact has no dimension of a given name, a size is not positive, no sizes are found, or all
            inputs together would have more than `most_elements`.
    """
    symbols = sorted(dimension_names(avals))
    if unknown := sorted(given_sizes.keys() - set(symbols)):
        raise GoldenError(
            f"expected sizes of its symbolic dimensions ({', '.join(symbols) or 'it has none'}), "
            f"found a size of {', '.join(unknown)}."
        )
    sizes = _sizes_for(symbols, given_sizes, constraints)
    shapes = []
    for aval in avals:
        shape = [size_of(dim, sizes) or 0 for dim in aval.shape]
        # For jax, what a symbol gives is at least 1.
        if any(size < 1 and not isinstance(dim, int) for dim, size in zip(aval.shape, shape, strict=True)):
            raise GoldenError(
                f"expected sizes of symbolic dimensions that give {aval} a shape, found {sizes_in_words(sizes)}. "
                "Give other sizes, or inputs."
            )
        shapes.append(shape)
    count = sum(math.prod(max(size, 1) for size in shape) for shape in shapes)  # NumPy limits also shapes with a 0
    if count > most_elements:
        raise GoldenError(
            f"expected at most {most_elements:,} elements in all inputs, found {count:,}, too many to make. "
            "Give inputs."
        )
    random = np.random.RandomState(SEED)
    return [made_leaf(random, aval.dtype, shape, rule) for aval, shape in zip(avals, shapes, strict=True)], sizes


def _sizes_for(symbols: Sequence[str], given: Mapping[str, int], constraints: Sequence[str]) -> dict[str, int]:
    """Return sizes of all symbols for which all constraints hold.

    Raises `GoldenError` if none are found among the small sizes that are tried.
    """
    others = [symbol for symbol in symbols if symbol not in given]
    most = int(MOST_TRIED ** (1 / max(len(others), 1)))
    usual = tuple(range(FIRST_SIZE, FIRST_SIZE + len(others)))
    # Different sizes first: they show where one is taken for another.
    every = sorted(product((*range(FIRST_SIZE, most), 1), repeat=len(others)), key=lambda sizes: -len({*sizes}))
    for sizes in chain([usual], every if constraints else []):
        chosen = {**given, **dict(zip(others, sizes, strict=True))}
        if all(_holds(constraint, chosen) for constraint in constraints):
            return chosen
    raise GoldenError(
        "expected sizes of the symbolic dimensions for which the artifact's constraints hold "
        f"({', '.join(constraints)}), found none among the small sizes that were tried"
        f"{f' with {sizes_in_words(given)}' if given else ''}. Give sizes (--dims), or inputs."
    )


def _holds(constraint: str, sizes: Mapping[str, int]) -> bool:
    """Return whether a constraint such as ``b >= 2``, as an artifact has it, holds for these sizes.

    It is True, too, for a constraint that cannot be evaluated here: another form, or a symbol without a size.
    """
    for comparison, holds in _COMPARISONS.items():
        left, found, right = constraint.partition(comparison)  # as its writer spaced it: `m<=n` too
        first, second = size_of(left.strip(), sizes), size_of(right.strip(), sizes)
        if found and first is not None and second is not None:
            return holds(first, second)
    return True


def sizes_in_words(sizes: Mapping[str, int]) -> str:
    """Return sizes in words, such as ``b = 2, h = 3``; "" if there are no symbolic dimensions."""
    return ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))


def parse_sizes(text: str, problem: str) -> dict[str, int]:
    """Return the sizes by name in a text such as ``b=4,h=8``.

    Raises `GoldenError` with the message `problem` for any other text.
    """
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    names = [name.strip() for name, _ in pairs]
    if not all(names) or len(set(names)) < len(names) or not all(size.isdecimal() and int(size) for _, size in pairs):
        raise GoldenError(problem)
    return {name: int(size) for name, (_, size) in zip(names, pairs, strict=True)}


def size_of(dim: int | str, sizes: Mapping[str, int]) -> int | None:
    """Return the size of a dimension, given the sizes of symbols; None if it cannot be computed.

    `dim` is a size, or an expression of symbols as jax prints it. It cannot be computed if a symbol has no size.
    """
    if isinstance(dim, int):
        return dim
    try:
        # jax prints powers with ^, which binds less than + in Python.
        return _value(ast.parse(dim.replace("^", "**"), mode="eval").body, sizes)
    except (SyntaxError, KeyError, ZeroDivisionError, TypeError, ValueError, RecursionError, MemoryError):
        return None


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {">=": operator.ge, "<=": operator.le, "==": operator.eq}

_OPERATIONS: dict[type[ast.operator] | str, Callable[..., int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}


def _value(node: ast.AST, sizes: Mapping[str, int]) -> int:
    """Return the value of a dimension's expression as jax prints it: names, integers, + - * ^, floordiv, mod, max, min.

    It walks the tree instead of calling `eval`, since the text comes from a file that is not trusted. Raises
    `ValueError`, `KeyError` or `TypeError` for any other expression.
    """
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            exponent = _value(right, sizes)
            if 0 <= exponent < 16:  # a shape never needs more, and a large one would take forever
                return int(_value(left, sizes) ** exponent)
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATIONS[type(operation)](_value(left, sizes), _value(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _OPERATIONS[name](*(_value(argument, sizes) for argument in arguments))
    raise ValueError(ast.dump(node))
