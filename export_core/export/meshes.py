"""The meshes of a case: its arguments on meshes with or without devices, and which part of an output is where."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from export_core.artifact import Artifact
from export_core.base.text import plural
from export_core.export import api
from export_core.export.arguments import Arguments, plain, whole
from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.export.refusals import call_text, equations
from export_core.goldens.adopted_mesh import mesh_for


def concrete_mesh(test: str, axes: Mapping[str, int]) -> Mesh:
    """Return a mesh of these axes over the first devices of this process.

    Raises `ExportError` if there are too few devices.
    """
    count, devices = math.prod(axes.values()), jax.devices()
    if len(devices) < count:
        raise ExportError(
            f"{test}: a mesh {dict(axes)} needs {plural(count, 'device')}; this process has "
            f"{len(devices)}. Give it logical "
            f"devices before jax starts: export_devices = {count} in pytest's ini file, or "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={count}."
        )
    return Mesh(np.array(devices[:count]).reshape(tuple(axes.values())), tuple(axes))


def place_arguments(case: Case, arguments: Arguments) -> Arguments:
    """Return the arguments on the case's mesh, sharded as their specs say; unchanged for a case without a mesh.

    Raises `ExportError` for too few devices, and for specs that do not fit the arguments.
    """
    axes = case.options.mesh
    if not axes:
        return arguments
    mesh = _context_mesh(case, axes) or concrete_mesh(case.test, axes)
    specs = case.partition_specs(arguments)
    return arguments.mapped(
        lambda leaf, spec: jax.device_put(jax.numpy.asarray(leaf), NamedSharding(mesh, spec)), specs
    )


def abstract_arguments(case: Case, arguments: Arguments, symbolic: Arguments | None) -> Arguments:
    """Return the arguments with which a function is exported: `jax.ShapeDtypeStruct` if they are symbolic or on a mesh.

    If this jax can export for a mesh without devices, their mesh is such an `AbstractMesh`.

    Args:
        case: the case, with the axes of its mesh.
        arguments: the arguments, on their mesh.
        symbolic: the arguments with symbolic shapes, without a mesh; None for a case without them.
    """
    axes = case.options.mesh
    if not axes:
        shardings = [leaf.sharding if _is_spread(leaf) else None for leaf in arguments.flat()]
        if symbolic is None or not any(shardings):
            return symbolic or arguments
    else:
        # Shardy is the default since 0.7. With GSPMD, jax makes no derivative of what it exported for a mesh without
        # devices: it fails on an assertion of its own.
        known: dict[str, Any] = jax.config.values
        with_shardy = known.get("jax_use_shardy_partitioner", jax.__version_info__ >= (0, 7))
        without_devices = _abstract_mesh(axes) if with_shardy or not case.options.vjp_order else None
        mesh = _context_mesh(case, axes) or without_devices or concrete_mesh(case.test, axes)
        shardings = [NamedSharding(mesh, spec) for spec in case.partition_specs(arguments)]
    return arguments.mapped(
        lambda _, leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        (symbolic or arguments).flat(),
        shardings,
    )


def mesh_of(case: Case, arguments: Arguments, artifact: Artifact, devices: int) -> dict[str, int]:
    """Return the axes of the mesh of an artifact, taken from the case, from its arguments, or from the artifact.

    The result is empty for an artifact for one device. If the arguments are on several meshes, the mesh with the most
    axes is taken, since arguments of the other meshes can be on this mesh too.
    """
    if devices == 1:
        return {}
    if case.options.mesh:
        return dict(case.options.mesh)
    meshes = [mesh for mesh in _meshes(arguments) if mesh.size == devices]
    return _axes_of(max(meshes, key=lambda mesh: len(mesh.shape))) if meshes else mesh_for(artifact, {})


def place_unplaced(case: Case, arguments: Arguments, exported: Any, axes: Mapping[str, int]) -> Arguments:
    """Return the arguments placed on the mesh of an artifact, unless an argument is on a mesh already.

    They are sharded as the artifact declares: `jax.jit` would do this by its in_shardings, but a call of an artifact
    does not. Arguments on several meshes are placed, too: jax would put the results on the mesh of the first argument,
    and since 0.9.1 fail if that has too few axes.
    """
    leaves = arguments.flat()
    if any(map(_is_spread, leaves)) and len(_meshes(arguments)) < 2:
        return arguments
    mesh = concrete_mesh(case.test, axes)
    return place_on(arguments, mesh, wanted_shardings(exported, mesh, len(leaves)))


def wanted_shardings(exported: Any, mesh: Mesh, count: int) -> tuple[Any, ...]:
    """Return the sharding on a mesh that an artifact declares for each of its `count` arguments; None if left open."""
    try:
        return tuple(exported.in_shardings_jax(mesh))
    except (AttributeError, ValueError):  # no such attribute until 0.4.28; since 0.9.0 arguments may be on other meshes
        return (None,) * count


def place_on(arguments: Arguments, mesh: Mesh, shardings: Sequence[Any]) -> Arguments:
    """Return the arguments on a mesh with these shardings.

    An argument whose sharding is None is copied to each device.
    """
    on_each = NamedSharding(mesh, PartitionSpec())

    def place(leaf: Any, sharding: Any) -> Any:
        no_data = getattr(leaf, "dtype", None) == jax.dtypes.float0
        return leaf if no_data else jax.device_put(whole(leaf), sharding or on_each)

    return arguments.mapped(place, shardings)


def specs_given(arguments: Arguments, exported: Any, axes: Mapping[str, int]) -> tuple[str | None, ...]:
    """Return the partition spec of each argument as text for a golden, or () if readers need no specs.

    The spec of an argument that is not on a mesh is None. Without specs, readers shard arguments as the artifact
    declares if the mesh has its axes, `axes`, and replicate them on any other mesh. Specs are returned only if devices
    would then get other parts of arrays than in this process.
    """
    leaves = arguments.flat()
    on_meshes = _meshes(arguments)
    if len(on_meshes) != 1:
        return ()
    (mesh,) = on_meshes
    is_own = _axes_of(mesh) == dict(axes)
    wanted = wanted_shardings(exported, mesh, len(leaves)) if is_own else (None,) * len(leaves)
    on_each = NamedSharding(mesh, PartitionSpec())
    specs = [spec_text(leaf.sharding) if _is_spread(leaf) else None for leaf in leaves]
    differs = any(
        spec and parts_of(leaf.sharding, leaf.shape) != parts_of(sharding or on_each, leaf.shape)
        for leaf, spec, sharding in zip(leaves, specs, wanted, strict=True)
    )
    return tuple(specs) if differs else ()


def spec_text(sharding: Any) -> str | None:
    """Return the partition spec of a sharding as text for golden.yaml, such as ``P('x', None)``.

    None if the spec cannot be written as such a text, for example because the array is unreduced.
    """
    spec: Any = getattr(sharding, "spec", None)
    axes = None if spec is None else tuple(getattr(spec, "partitions", spec))
    plain = axes is not None and all(
        part is None or isinstance(part, str) or (isinstance(part, tuple) and all(isinstance(x, str) for x in part))
        for part in axes
    )
    return f"P({', '.join(map(repr, axes))})" if plain and axes and not getattr(spec, "unreduced", None) else None


def require_devices(case: Case, closed_jaxpr: Any) -> None:
    """Raise `ExportError` if a function that was exported for one device uses a mesh of several devices.

    jax exports such a function for one device, since no argument is on the mesh. If the function has a shard_map, its
    artifact cannot run anywhere; if it has a sharding constraint, the artifact runs on one device only.
    """

    def devices(equation: Any) -> int:
        params = equation.params
        mesh = params.get("mesh") or getattr(params.get("sharding"), "mesh", None)
        return getattr(mesh, "size", 1)

    for call in equations(closed_jaxpr, lambda equation: devices(equation) > 1):
        raise ExportError(
            f"{case.test}: expected arguments on the mesh of this {call[0]}, since the function was exported for one "
            f"device: {call_text(*call)}\nName the mesh and how each argument is sharded, such as mesh={{'x': 4}}, "
            "in_specs=(PartitionSpec('x'),)."
        )


def on_devices(case: Case, arguments: Arguments, exported: Any, axes: Mapping[str, int]) -> Case:
    """Return the case; if jax cannot run the case's function, it is replaced by a call of the artifact.

    jax cannot run a function if its in_shardings or a shard_map have a mesh without devices (`AbstractMesh`), but it
    can call the artifact on devices. `exported` is jax's `Exported`, and `axes` are the axes of its mesh.
    """
    try:
        with api.in_mesh(case.context_mesh):
            case.function.lower(*arguments.args, **arguments.kwargs)  # type: ignore[attr-defined]  # it is jitted
    except ValueError:
        return as_artifact(case, arguments, exported, axes)
    return case


def as_artifact(case: Case, arguments: Arguments, exported: Any, axes: Mapping[str, int]) -> Case:
    """Return the case with a call of its artifact as its function.

    The call places arguments that are not on a mesh yet.
    """
    called = jax.jit(api.call_of(exported))

    def run(*args: Any, **kwargs: Any) -> Any:
        placed = place_unplaced(case, Arguments(args, kwargs, arguments.static), exported, axes)
        args, kwargs = plain(placed.dynamic)
        return called(*args, **kwargs)

    return replace(case, function=run)


def other_mesh(arguments: Arguments, axes: Mapping[str, int]) -> dict[str, int]:
    """Return the axes of the first mesh of an argument that differ from `axes`; empty if there is no such mesh."""
    return next((own for own in map(_axes_of, _meshes(arguments)) if own != dict(axes)), {})


def shard_layout(value: jax.Array) -> str:
    """Return which part of an array is on each device, by the device's index in the mesh: ``0:[0:8] 1:[8:16]``.

    For an unreduced array, the text ends with the axes over which to sum it: ``0:[0:8] 1:[0:8] unreduced over data``.
    The worker (worker/jaxlib_worker.py) writes this text, too, for a reader's outputs, and the two are compared as
    text.
    """
    unreduced = getattr(getattr(value.sharding, "spec", None), "unreduced", None)
    layout = parts_of(value.sharding, value.shape)
    return f"{layout} unreduced over {', '.join(sorted(unreduced))}" if unreduced else layout


def parts_of(sharding: Any, shape: tuple[int, ...]) -> str:
    """Return which part of an array of this shape is on each device, by the device's index in the mesh."""
    spec: Any = getattr(sharding, "spec", None)
    if getattr(spec, "unreduced", None):  # jax gives no indices of such an array
        sharding = NamedSharding(sharding.mesh, PartitionSpec(*getattr(spec, "partitions", spec)))
    indices = sharding.devices_indices_map(shape)
    parts = []
    # The place in the mesh and not the id of the device: a reader may run it on other devices.
    for place, index in enumerate(indices.values()):
        extents = [part.indices(size)[:2] for part, size in zip(index, shape, strict=True)]
        parts.append(f"{place}:[{','.join(f'{start}:{stop}' for start, stop in extents)}]")
    return " ".join(parts)


def _abstract_mesh(axes: Mapping[str, int]) -> Any:
    if (abstract_mesh := getattr(jax.sharding, "AbstractMesh", None)) is None:
        return None
    # Since 0.5.1. Its default became Explicit, but a concrete mesh has Auto, and the two must be exported alike.
    axis_type = getattr(jax.sharding, "AxisType", None)
    options = {"axis_types": (axis_type.Auto,) * len(axes)} if axis_type is not None else {}
    try:
        return abstract_mesh(tuple(axes.values()), tuple(axes), **options)
    except (TypeError, ValueError):  # up to 0.4.38 it took pairs
        return abstract_mesh(tuple(axes.items()))


def _meshes(arguments: Arguments) -> list[Mesh]:
    """Return the different meshes on which arguments are."""
    meshes = [getattr(leaf.sharding, "mesh", None) for leaf in arguments.flat() if _is_spread(leaf)]
    return list(dict.fromkeys(mesh for mesh in meshes if mesh is not None))


def _axes_of(mesh: Mesh) -> dict[str, int]:
    return {str(axis): int(size) for axis, size in mesh.shape.items()}


def _context_mesh(case: Case, axes: Mapping[str, int]) -> Mesh | None:
    """Return the mesh of the `jax.set_mesh` around the call of `export_golden` if it has these axes, else None."""
    # Its axes may be explicit, and then a function inside accepts only explicit ones.
    mesh = case.context_mesh
    return mesh if mesh is not None and list(mesh.shape.items()) == list(axes.items()) else None


def _is_spread(value: object) -> bool:
    # A derivative passes tracers, which are arrays without a place.
    if isinstance(value, jax.core.Tracer):
        return False
    return isinstance(value, jax.Array) and len(value.sharding.device_set) > 1
