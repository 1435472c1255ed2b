"""Comparators by name: checking that there is one, and importing and calling a user's own function."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from export_core.comparing.errors import CompareError
from export_core.goldens.arrays import Array
from export_core.tolerances import problem_of_name

UserComparator = Callable[[list[Array], list[Array]], str | None]
"""A user's own function of (expected, actual), both lists of NumPy arrays in order: None passes, text says what is
wrong, and so does an AssertionError."""


def check_comparator(name: str, root: Path | None = None) -> None:
    """Raise `CompareError` unless outputs can be compared in this way.

    A user's function is imported: `load_user_comparator`.
    """
    if problem := problem_of_name(name):
        raise CompareError(problem)
    if ":" in name:
        load_user_comparator(name, root)


def load_user_comparator(name: str, root: Path | None = None) -> UserComparator:
    """Import ``module:function``. `root` is put first on `sys.path`: a project's own checks are seldom installed.

    Raises `CompareError` when the module cannot be imported or has no such function.
    """
    where = f"compare={name!r}"
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise CompareError(f"{where}: expected 'module:function', such as 'my_package.checks:close_enough'.")
    if root and str(root.resolve()) not in sys.path:
        sys.path.insert(0, str(root.resolve()))
    try:
        value: Any = importlib.import_module(module_name)
    except Exception as error:  # a user's module may raise anything
        raise CompareError(
            f"{where}: cannot import {module_name}: {type(error).__name__}: {error}. "
            f"It must be installed, or be found from the folder {root or Path.cwd()}."
        ) from error
    for attribute in path.split("."):
        if not hasattr(value, attribute):
            raise CompareError(
                f"{where}: {module_name} ({getattr(sys.modules[module_name], '__file__', '')}) has no {path}."
            )
        value = getattr(value, attribute)
    if not callable(value):
        raise CompareError(f"{where}: expected a function (expected, actual), found {type(value).__name__}.")
    function: UserComparator = value
    return function


def call_user_comparator(name: str, expected: list[Array], actual: list[Array]) -> str | None:
    """What a user's function says is wrong, or None.

    Raises `CompareError` when it fails itself, or returns something else.

    An AssertionError is a result, since numpy.testing and plain assert raise it; any other error means that nothing was
    compared.
    """
    try:
        result: object = load_user_comparator(name)(expected, actual)
    except AssertionError as error:
        return str(error) or "an assertion failed, without a message"
    except CompareError:
        raise
    except Exception as error:
        raise CompareError(f"compare={name!r} raised {type(error).__name__}: {error}. Nothing was compared.") from error
    if result is None or (isinstance(result, str) and result.strip()):
        return result
    raise CompareError(
        f"compare={name!r} returned {result!r}: expected None when the outputs are right, "
        "or text that says what is wrong."
    )
