"""Meshes of a case: its arguments with or without devices, and which part of an output is on which device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from export_core.artifact import Artifact
from export_core.export.arguments import Arguments
from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.goldens.adopted_mesh import mesh_for


def concrete_mesh(test: str, axes: Mapping[str, int]) -> Mesh:
    """A mesh of the first devices of this process.

    `axes` maps names to sizes. Raises `ExportError` for too few devices.
    """
    count = math.prod(axes.values())
    devices = jax.devices()
    if len(devices) < count:
        raise ExportError(
            f"{test}: a mesh {dict(axes)} needs {count} devices; this process has {len(devices)}. Give it logical "
            f"devices before jax starts: export_devices = {count} in pytest's ini file, or "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={count}."
        )
    return Mesh(np.array(devices[:count]).reshape(tuple(axes.values())), tuple(axes))


def place_arguments(case: Case, arguments: Arguments) -> Arguments:
    """The arguments on the case's mesh, sharded as their specs say; unchanged for a case without a mesh.

    Raises `ExportError` for too few devices, or another number of specs than of positional arguments.
    """
    if not case.options.mesh:
        return arguments
    mesh = concrete_mesh(case.test, case.options.mesh)
    return _map_leaves(case, arguments, lambda leaf, spec: jax.device_put(leaf, NamedSharding(mesh, spec)))


def abstract_arguments(case: Case, arguments: Arguments) -> Arguments:
    """`jax.ShapeDtypeStruct` in place of the arguments: on a mesh without devices if jax has those, else on devices."""
    axes = case.options.mesh
    if not axes:
        return arguments
    # With GSPMD, jax makes no derivative of what it exported for a mesh without devices: it fails on an assertion of
    # its own.
    without_devices = None if case.options.vjp_order and not _uses_shardy() else _abstract_mesh(axes)
    mesh = without_devices or concrete_mesh(case.test, axes)
    return _map_leaves(
        case,
        arguments,
        lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec)),
    )


def mesh_of(case: Case, arguments: Arguments, artifact: Artifact, devices: int) -> dict[str, int]:
    """The mesh of an artifact for this number of devices: that of the case, of its arguments, or what it tells."""
    if devices == 1:
        return {}
    if case.options.mesh:
        return dict(case.options.mesh)
    for value in arguments.flat():
        mesh = getattr(getattr(value, "sharding", None), "mesh", None)
        if mesh is not None and math.prod(mesh.shape.values()) == devices:
            return {str(axis): int(size) for axis, size in mesh.shape.items()}
    return mesh_for(artifact, {})


def place_unplaced(case: Case, arguments: Arguments, exported: Any, axes: Mapping[str, int]) -> Arguments:
    """The arguments as an artifact wants them on its mesh, unless they are on several devices already.

    `jax.jit` places them by its in_shardings; a call of the artifact does not.
    """
    leaves = arguments.flat()
    if any(len(leaf.sharding.device_set) > 1 for leaf in leaves if isinstance(leaf, jax.Array)):
        return arguments
    mesh = concrete_mesh(case.test, axes)
    try:
        wanted = exported.in_shardings_jax(mesh)
    except (AttributeError, ValueError):  # until 0.4.28 it cannot say it; since 0.9.0 arguments may be on other meshes
        wanted = (None,) * len(leaves)
    whole = NamedSharding(mesh, PartitionSpec())
    return arguments.with_flat(
        [jax.device_put(leaf, sharding or whole) for leaf, sharding in zip(leaves, wanted, strict=True)]
    )


def shard_layout(value: jax.Array) -> str:
    """Which part of an array is on which device, by the device's place in the mesh: ``0:[0:8] 1:[8:16]``.

    The worker (worker/program.py) writes the same text of a reader's outputs, and the two are compared as text.
    """
    indices = value.sharding.devices_indices_map(value.shape)
    # The place in the mesh and not the id of the device: a reader may run it on other devices.
    return " ".join(
        f"{place}:[{','.join(_extent(part, size) for part, size in zip(index, value.shape, strict=True))}]"
        for place, index in enumerate(indices.values())
    )


def _extent(part: slice, size: int) -> str:
    start, stop, _ = part.indices(size)
    return f"{start}:{stop}"


def _uses_shardy() -> bool:
    """Whether jax partitions with Shardy, its default since 0.7, and not with GSPMD."""
    known: dict[str, Any] = jax.config.values
    return bool(known.get("jax_use_shardy_partitioner", jax.__version_info__ >= (0, 7)))


def _abstract_mesh(axes: Mapping[str, int]) -> Any:
    try:
        from jax.sharding import AbstractMesh
    except ImportError:
        return None
    # Since 0.5.1. Its default became Explicit, but a concrete mesh has Auto, and the two must be exported alike.
    axis_type = getattr(jax.sharding, "AxisType", None)
    options = {"axis_types": (axis_type.Auto,) * len(axes)} if axis_type is not None else {}
    try:
        return AbstractMesh(tuple(axes.values()), tuple(axes), **options)
    except (TypeError, ValueError):  # up to 0.4.38 it took pairs
        return AbstractMesh(tuple(axes.items()))


def _map_leaves(case: Case, arguments: Arguments, change: Callable[[jax.Array, PartitionSpec], Any]) -> Arguments:
    """The arguments with `change(leaf, spec)` in place of each array; arguments by keyword are replicated."""
    args, kwargs = arguments.dynamic
    specs: Sequence[Any] = case.options.in_specs or (None,) * len(args)
    if len(specs) != len(args):
        raise ExportError(
            f"{case.test}: in_specs: expected one for each of the {len(args)} positional arguments, found {len(specs)}."
        )
    replicated = PartitionSpec()

    def map_tree(tree: Any, spec: Any) -> Any:
        spec = replicated if spec is None else spec
        return jax.tree_util.tree_map(lambda leaf: change(jax.numpy.asarray(leaf), spec), tree)

    return arguments.with_dynamic(
        tuple(map_tree(tree, spec) for tree, spec in zip(args, specs, strict=True)), map_tree(kwargs, None)
    )
