"""Is there a comparator of that name, and what does a user's own one say?"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from export_core.comparing.errors import CompareError
from export_core.goldens.arrays import Array
from export_core.tolerances import problem_of_name

OwnFunction = Callable[[list[Array], list[Array]], str | None]
"""A user's own: (expected, actual) as lists of arrays; None passes, text says what is wrong, and so does an AssertionError."""


def check_comparator(name: str, root: Path | None = None) -> None:
    """Raise `CompareError` unless outputs can be compared in this way. A user's function is imported: see `own_function`."""
    if problem := problem_of_name(name):
        raise CompareError(problem)
    if ":" in name:
        own_function(name, root)


def own_function(name: str, root: Path | None = None) -> OwnFunction:
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
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # a user's module may raise anything
        raise CompareError(
            f"{where}: cannot import {module_name}: {type(error).__name__}: {error}. "
            f"It must be installed, or be found from the folder {root or Path.cwd()}."
        ) from error
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            raise CompareError(
                f"{where}: {module_name} ({getattr(sys.modules[module_name], '__file__', '')}) has no {path}."
            )
        found = getattr(found, attribute)
    if not callable(found):
        raise CompareError(f"{where}: expected a function (expected, actual), found {type(found).__name__}.")
    function: OwnFunction = found
    return function


def own_verdict(name: str, expected: list[Array], actual: list[Array]) -> str | None:
    """What a user's function finds wrong, or None. Raises `CompareError` when it fails itself, or answers neither."""
    try:
        answer: object = own_function(name)(expected, actual)
    except AssertionError as error:
        return str(error) or "an assertion failed, without a message"
    except CompareError:
        raise
    except Exception as error:
        raise CompareError(f"compare={name!r} raised {type(error).__name__}: {error}. Nothing was compared.") from error
    if answer is None or (isinstance(answer, str) and answer.strip()):
        return answer
    raise CompareError(
        f"compare={name!r} returned {answer!r}: expected None when the outputs are right, or text that says what is wrong."
    )
