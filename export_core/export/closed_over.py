"""The integers that a function closes over and that jax cuts to 32 bits, which no message of jax says.

In the traced program they are narrow already, so they are looked for in the function itself: in its closure, in the
globals that its code names, and in the functions that are there. What an object or a method holds is not seen.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import jax
import numpy as np

from export_core.export.arguments import narrowed

_MOST_FUNCTIONS = 200  # A function that calls many others is not followed further, so that this takes no time.
_MOST_WRAPPERS = 20  # An object may answer with another wrapper each time.
_LIBRARIES = ("jax", "jaxlib", "numpy", "scipy")  # Their functions close over none of the user's numbers.


def lost_integers(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return a sentence for each constant of a function that loses its upper bits because `jax_enable_x64` is off."""
    sentences = {}
    for name, value in _constants(function):
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "iu" and (pair := narrowed(value)):
            given, taken = pair
            if (lost := given != taken).any():
                sentences[name] = (
                    f"{name}, which the function closes over, is {given.dtype} and holds {given[lost][0]}, which "
                    f"{taken.dtype} cannot hold: jax cuts it without a word. Enable jax_enable_x64, or close over "
                    f"numbers that {taken.dtype} can hold."
                )
    return tuple(sentences.values())


def _constants(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of all values that a function closes over or uses as globals, each after the variable's name."""
    seen: set[int] = set()
    todo = [function]
    while todo and len(seen) < _MOST_FUNCTIONS:
        plain = None
        with contextlib.suppress(Exception):  # An object may answer with any error when it is asked for an attribute.
            plain = _plain(todo.pop())
        if plain is None or id(plain) in seen or (plain.__module__ or "").partition(".")[0] in _LIBRARIES:
            continue
        seen.add(id(plain))
        for name, value in _variables(plain):
            if callable(value):
                todo.append(value)
            leaves = []
            with contextlib.suppress(Exception):  # The value's own type says how it is flattened, by any code.
                leaves = jax.tree_util.tree_leaves(value)
            yield from ((name, leaf) for leaf in leaves)


def _plain(function: Any) -> FunctionType | None:
    """Return the Python function inside any jits, partials and bound methods; None if there is no such function."""
    for _ in range(_MOST_WRAPPERS):
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif not isinstance(function, type) and hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            break
    return function if isinstance(function, FunctionType) else None


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a function's closure, and the globals that its code names, with their values."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a function's code, and in the functions that the code defines."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names}.union(*inner)
