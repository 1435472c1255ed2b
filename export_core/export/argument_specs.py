"""What the marker says of single arguments, by position or by name: their symbolic shapes, and how they are sharded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from jax.sharding import PartitionSpec

from export_core.base.phrases import few
from export_core.export import api
from export_core.export.arguments import Arguments
from export_core.export.case import Case
from export_core.export.errors import ExportError, value_and_type


def symbolic_arguments(case: Case, arguments: Arguments) -> Arguments | None:
    """The arguments with symbolic dimensions, as `jax.ShapeDtypeStruct`; None for a case without `symbolic_shapes`.

    Raises `ExportError` for shapes that jax cannot read, or that do not fit the arguments.
    """
    shapes = case.options.symbolic_shapes
    if shapes is None:
        return None
    try:
        specs = api.symbolic_args_specs(
            arguments.dynamic,
            shapes if isinstance(shapes, str) else _by_argument(case, "symbolic_shapes", arguments),
            case.options.constraints,
        )
    except (ValueError, TypeError) as error:
        raise ExportError(
            f"{case.test}: symbolic_shapes={shapes!r}: jax cannot read this for these arguments: {error}"
        ) from error
    return arguments.with_dynamic(*jax.tree_util.tree_map(_as_jax_takes_it, specs))


def _as_jax_takes_it(spec: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """With 32 bits where jax makes arrays so: since 0.11 it warns of a spec with more, though not of an array."""
    if jax.dtypes.issubdtype(spec.dtype, jax.dtypes.extended):
        return spec
    return jax.ShapeDtypeStruct(spec.shape, jax.dtypes.canonicalize_dtype(spec.dtype))


def partition_specs(case: Case, arguments: Arguments) -> list[PartitionSpec]:
    """The spec of each flat argument: that of `in_specs`, which may be one for a whole tree; else replicated.

    Raises `ExportError` for specs that do not fit the arguments.
    """
    given = _by_argument(case, "in_specs", arguments)
    try:
        specs = jax.tree_util.tree_map(_for_each_leaf, given, arguments.dynamic, is_leaf=_is_spec)
    except (ValueError, TypeError) as error:
        raise ExportError(
            f"{case.test}: in_specs={case.options.in_specs!r}: expected a PartitionSpec or None for each argument, or "
            f"for each part of its tree: {error}"
        ) from error
    return list(jax.tree_util.tree_leaves(specs, is_leaf=_is_spec))


def _by_argument(case: Case, option: str, arguments: Arguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What an option says of each argument that is not static, by position and by keyword; None where nothing."""
    given = getattr(case.options, option) or {}
    args, kwargs = arguments.dynamic
    if not isinstance(given, Mapping):
        if len(given) != len(args):
            raise ExportError(
                f"{case.test}: {option}: expected one for each of the {len(args)} positional arguments, found "
                f"{len(given)}."
            )
        return tuple(given), dict.fromkeys(kwargs)
    positions = [position for position in range(len(arguments.args)) if position not in arguments.static]
    keys = [*positions, *kwargs]
    for key in given:
        if key not in keys:
            raise ExportError(
                f"{case.test}: {option}: expected arguments as the call passes them, such as "
                f"{few([repr(key) for key in keys])}; found {key!r}."
            )
    return tuple(map(given.get, positions)), {name: given.get(name) for name in kwargs}


def _for_each_leaf(spec: Any, tree: Any) -> Any:
    if not _is_spec(spec):
        raise TypeError(f"found {value_and_type(spec)}")
    return jax.tree_util.tree_map(lambda _: PartitionSpec() if spec is None else spec, tree)


def _is_spec(value: object) -> bool:
    return value is None or isinstance(value, PartitionSpec)
