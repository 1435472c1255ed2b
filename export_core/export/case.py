"""A case: the function, arguments and options that a marked test exports, and checks that jax.export can take them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from export_core.export import api
from export_core.export.arguments import Arguments, is_array, is_reference
from export_core.export.errors import ExportError, value_and_type
from export_core.goldens import Comparison

_LONGEST_ID = 120  # characters of an id before its digest: file systems take 255 bytes of a name, and paths are longer


@dataclass(frozen=True)
class ExportOptions:
    """How a function is exported. Every field is a keyword of the marker, which explains it.

    `in_specs` says how each argument is sharded: a `PartitionSpec` or a tree of them, None for one that is replicated.
    `symbolic_shapes` says its shape, as `jax.export.symbolic_args_specs` takes it; one text is for all arguments. Both
    are for the positional arguments, or by position and name (`{0: …, "mask": …}`).
    """

    platforms: tuple[str, ...] | None = None
    allow: Mapping[str, str] = field(default_factory=dict)
    disabled_checks: Mapping[str, str] = field(default_factory=dict)
    vjp_order: int = 0
    symbolic_shapes: Any = None
    constraints: tuple[str, ...] = ()
    mesh: Mapping[str, int] = field(default_factory=dict)
    in_specs: tuple[Any, ...] | Mapping[int | str, Any] = ()
    spread_over: int = 0
    calling_convention_version: int | None = None
    ignore_forward_compatibility: bool = False
    register: tuple[str, ...] = ()
    refused_on: tuple[str, ...] = ()
    without_outputs: str = ""


@dataclass(frozen=True)
class Case:
    """One function with its example arguments.

    `test` is the pytest node id. `name` distinguishes several calls in one test. `context_mesh` is the mesh of
    `jax.set_mesh` around the call, None without one.
    """

    id: str
    test: str
    name: str | None
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: ExportOptions = field(default_factory=ExportOptions)
    comparison: Comparison = field(default_factory=Comparison)
    context_mesh: Any = field(default_factory=api.context_mesh)

    def check(self) -> None:
        """Raise `ExportError` for a check that this jax cannot leave out."""
        removed = jax.__version_info__ >= api.FIRST_WITHOUT_THE_CHECK
        if removed and api.SHAPE_ASSERTIONS in self.options.disabled_checks:
            raise ExportError(
                f"{self.test}: disabled_checks: jax {jax.__version__} cannot leave out the {api.SHAPE_ASSERTIONS}, as "
                "only jax before 0.4.29 can. Name the check in tests for such a writer alone."
            )


def check_arguments(test: str, arguments: Arguments) -> None:
    """Raise `ExportError` for a leaf that is not an array."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(arguments.dynamic)[0]:
        if is_reference(leaf):
            raise ExportError(
                f"{test}: argument {_path_text(path)} is a mutable reference, and jax.export takes none. "
                "Pass the array, and make the reference inside the function: ref = jax.new_ref(x)."
            )
        if not is_array(leaf):
            raise ExportError(
                f"{test}: argument {_path_text(path)} is {value_and_type(leaf)}; expected an array (jax.Array, "
                "numpy.ndarray) or a Python number, since the golden stores its value. Close over it, make it static "
                "(static_argnums of jax.jit), or bind it with functools.partial before jax.jit."
            )


def case_id(path: str, names: tuple[str, ...], call: str | None) -> str:
    """The id of a case: a folder name that people recognise and that no other test has.

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
    # What was replaced or cut is in the digest, so that two tests never share a folder.
    whole = "\0".join((path, *names, call or ""))
    return f"{safe[:_LONGEST_ID].lstrip('.')}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _path_text(path: tuple[Any, ...]) -> str:
    """Where a leaf is in the pair (args, kwargs), without the index of the pair."""
    in_kwargs = getattr(path[0], "idx", 0) == 1
    return f"{'keyword ' if in_kwargs else ''}{jax.tree_util.keystr(path[1:])}"
