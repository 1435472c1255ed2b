"""On which devices does a case live, and which part of an output ends up where?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from export_core.export.arguments import Arguments
from export_core.export.case import Case
from export_core.export.errors import ExportError


def concrete_mesh(test: str, axes: Mapping[str, int]) -> Mesh:
    """A mesh of the first devices of this process. Raises `ExportError` when it has too few."""
    count = math.prod(axes.values())
    devices = jax.devices()
    if len(devices) < count:
        raise ExportError(
            f"{test}: a mesh {dict(axes)} needs {count} devices; this process has {len(devices)}. Give it logical ones before jax "
            f"starts: export_devices = {count} in pytest's ini file, or XLA_FLAGS=--xla_force_host_platform_device_count={count}."
        )
    return Mesh(np.array(devices[:count]).reshape(tuple(axes.values())), tuple(axes))


def placed(case: Case, arguments: Arguments) -> Arguments:
    """The arguments on the case's mesh, each in the parts that its spec says; as they are where the case names no mesh."""
    if not case.asked.mesh:
        return arguments
    mesh = concrete_mesh(case.test, case.asked.mesh)
    return _mapped(case, arguments, lambda leaf, spec: jax.device_put(leaf, NamedSharding(mesh, spec)))


def abstract(case: Case, arguments: Arguments) -> Arguments:
    """`jax.ShapeDtypeStruct` on a mesh without devices in place of the arguments, where jax has such meshes; else on devices."""
    axes = case.asked.mesh
    if not axes:
        return arguments
    # With GSPMD, jax makes no derivative of what it exported for a mesh without devices: it fails on an assertion of its own.
    without_devices = None if case.asked.vjp_order and not _uses_shardy() else _abstract_mesh(axes)
    mesh = without_devices or concrete_mesh(case.test, axes)
    return _mapped(
        case,
        arguments,
        lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec)),
    )


def mesh_of(case: Case, arguments: Arguments, devices: int) -> dict[str, int]:
    """The mesh that an artifact for so many devices was exported for: the case's, its arguments', or one axis of all."""
    if devices == 1:
        return {}
    if case.asked.mesh:
        return dict(case.asked.mesh)
    for value in arguments.flat():
        mesh = getattr(getattr(value, "sharding", None), "mesh", None)
        if mesh is not None and math.prod(mesh.shape.values()) == devices:
            return {str(axis): int(size) for axis, size in mesh.shape.items()}
    return {"devices": devices}


def parts(value: jax.Array) -> str:
    """Which part of an array lies on which device, by the device's place in the mesh: ``0:[0:8] 1:[8:16]``.

    `matrix/worker.py` says it in the same words.
    """
    placed = value.sharding.devices_indices_map(value.shape)
    return " ".join(
        f"{place}:[{','.join(_extent(each, size) for each, size in zip(index, value.shape, strict=True))}]"
        for place, index in enumerate(placed.values())
    )


def _extent(part: slice, size: int) -> str:
    start, stop, _ = part.indices(size)
    return f"{start}:{stop}"


def _uses_shardy() -> bool:
    known: dict[str, Any] = jax.config.values
    return bool(known.get("jax_use_shardy_partitioner", jax.__version_info__ >= (0, 7)))


def _abstract_mesh(axes: Mapping[str, int]) -> Any:
    try:
        from jax.sharding import AbstractMesh
    except ImportError:
        return None
    kind = getattr(
        jax.sharding, "AxisType", None
    )  # since 0.5.1; the default became Explicit, which concrete meshes are not
    kinds = {"axis_types": (kind.Auto,) * len(axes)} if kind is not None else {}
    try:
        return AbstractMesh(tuple(axes.values()), tuple(axes), **kinds)
    except (TypeError, ValueError):  # up to 0.4.38 it took pairs
        return AbstractMesh(tuple(axes.items()))


def _mapped(case: Case, arguments: Arguments, change: Any) -> Arguments:
    args, kwargs = arguments.dynamic
    specs: Sequence[Any] = case.asked.in_specs or (None,) * len(args)
    if len(specs) != len(args):
        raise ExportError(
            f"{case.test}: in_specs: expected one for each of the {len(args)} positional arguments, found {len(specs)}."
        )
    whole = PartitionSpec()

    def one(tree: Any, spec: Any) -> Any:
        return jax.tree_util.tree_map(
            lambda leaf: change(jax.numpy.asarray(leaf), whole if spec is None else spec), tree
        )

    return arguments.with_dynamic(
        tuple(one(tree, spec) for tree, spec in zip(args, specs, strict=True)), one(kwargs, None)
    )
