"""What does a marked test export? A function, example arguments, options; and is that something jax.export can take?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from export_core.export.errors import ExportError
from export_core.goldens import Comparison

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""What jax.export calls its platforms."""

_LONGEST_ID = 120


@dataclass(frozen=True)
class Case:
    """One function with its example arguments.

    `allow` maps custom-call targets outside JAX's stable list to the reason why they are used all the same.
    """

    id: str
    test: str
    name: str | None
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    platforms: tuple[str, ...] | None = None
    allow: Mapping[str, str] = field(default_factory=dict)
    comparison: Comparison = field(default_factory=Comparison)

    def check(self) -> None:
        """Raise `ExportError` for a function that is not jitted or an argument that is no array."""
        if not (callable(self.function) and hasattr(self.function, "lower")):
            raise ExportError(
                f"{self.test}: export_golden expected a jitted function first, such as jax.jit(f), "
                f"found {_described(self.function)}. Wrap it: export_golden(jax.jit({_name(self.function)}), ...)."
            )
        leaves, _ = jax.tree_util.tree_flatten_with_path((self.args, dict(self.kwargs)))
        for path, leaf in leaves:
            if not _is_array(leaf):
                raise ExportError(
                    f"{self.test}: argument {_where(path)} is {_described(leaf)}; expected an array (jax.Array, numpy.ndarray) "
                    "or a Python number, since the golden keeps its value. Close over it, or bind it with functools.partial before jax.jit."
                )


def case_id(path: str, names: tuple[str, ...], call: str | None) -> str:
    """The id of a case: a folder name that people recognise and no other test has.

    Args:
        path: the test file relative to the root of the test run, with forward slashes: ``tests/test_a.py``.
        names: class and function, the parameters in brackets on the last: ``("TestA", "test_f[x-2]")``.
        call: the ``name=`` of `export_golden`, or None.
    """
    parts = (path.removesuffix(".py").replace("/", "."), *names, *([call] if call else []))
    full = ".".join(parts)
    safe = re.sub(r"[^A-Za-z0-9_.+=\[\],-]+", "-", full)
    # A dot in a folder's name or in name=, or a bracket in name=, could be read as another test's.
    clear = "." not in path.removesuffix(".py") and not re.search(r"[.\[\]]", call or "")
    if safe == full and clear and len(safe) <= _LONGEST_ID:
        return safe
    # What was lost is kept as a digest, so that two tests never share a folder.
    whole = "\0".join((path, *names, call or ""))
    return f"{safe[:_LONGEST_ID].lstrip('.')}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _is_array(leaf: object) -> bool:
    if isinstance(leaf, (np.ndarray, np.generic)):
        # Objects, texts, dates and records are NumPy's, not JAX's; float0 is a record to NumPy, and JAX's.
        return leaf.dtype.kind not in "OSUMmV" or leaf.dtype.isbuiltin == 2 or leaf.dtype == jax.dtypes.float0
    return isinstance(leaf, (jax.Array, bool, int, float, complex))


def _where(path: tuple[Any, ...]) -> str:
    in_kwargs = getattr(path[0], "idx", 0) == 1
    return f"{'keyword ' if in_kwargs else ''}{jax.tree_util.keystr(path[1:])}"


def _described(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}"


def _name(function: object) -> str:
    return getattr(function, "__name__", "f")
