"""Shardings of Shardy rewritten as XLA's, for readers without Shardy's dialect; those without effect are removed."""

import math
from collections import Counter
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo
from parts import NotRewritableError, attributes, operations  # type: ignore[import-not-found]  # beside this file

RULE, SHARDING, XLA_SHARDING = "sdy.sharding_rule", "sdy.sharding", "mhlo.sharding"
MANUAL = "{manual}"
WRITTEN, TAKEN_OUT = "written as XLA's", "taken out, which say nothing"

Mesh = dict[str, int]


def rewrite_shardings(module: Any) -> Counter[str]:
    """Rewrite Shardy's shardings in a module as XLA's, in place; return the number of rewrites by their description."""
    done: Counter[str] = Counter()
    meshes = remove_meshes(module)
    while manual := next((x for x in operations(module) if x.name == "sdy.manual_computation"), None):
        replace_manual_computation(manual, meshes)
        done["manual computations (shard_map) of Shardy written as XLA's"] += 1
    for operation in operations(module):
        own = attributes(operation)
        if operation.name == "sdy.sharding_constraint":
            written = replace_constraint(operation, own["sharding"], meshes)
            done[f"constraints of Shardy {WRITTEN if written else TAKEN_OUT}"] += 1
            continue
        if operation.name.startswith("sdy."):
            raise NotRewritableError(f"{operation.name} cannot be expressed as an XLA sharding")
        if RULE in own:
            del operation.attributes[RULE]  # a hint for the propagation of shardings, which has another algorithm there
            done["sharding rules of Shardy left out, which are hints"] += 1
        if others := [name for name in own if name.startswith("sdy.") and name != RULE]:
            raise NotRewritableError(f"{operation.name} has {others[0]}, which cannot be expressed as an XLA sharding")
        if operation.name == "func.func":
            done["shardings of arguments and results written as XLA's"] += rewrite_function_shardings(
                operation, own, meshes
            )
    return +done


def remove_sharding_calls(module: Any) -> Counter[str]:
    """Remove XLA's custom call `Sharding` from a module for one device; return how many were removed."""
    done: Counter[str] = Counter()
    for operation in operations(module):
        own = attributes(operation)
        if operation.name == "stablehlo.custom_call" and ir.StringAttr(own["call_target_name"]).value == "Sharding":
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
            done[f"shardings of XLA {TAKEN_OUT}"] += 1
    return done


def remove_meshes(module: Any) -> dict[str, Mesh]:
    """Remove the meshes from a module, and return them by name."""
    meshes: dict[str, Mesh] = {}
    for operation in [inner.operation for inner in module.body.operations]:
        if operation.name == "sdy.mesh":
            mesh = sdy.MeshAttr(operation.attributes["mesh"])
            if list(mesh.device_ids):
                raise NotRewritableError(
                    "the module has a mesh whose devices are not in ascending order, which cannot be rewritten"
                )
            axes = map(sdy.MeshAxisAttr, mesh.axes)
            meshes[ir.StringAttr(operation.attributes["sym_name"]).value] = {axis.name: axis.size for axis in axes}
            operation.erase()
    return meshes


def replace_constraint(operation: Any, sharding: Any, meshes: dict[str, Mesh]) -> bool:
    """Replace a sharding constraint by the equivalent custom call, or remove it if it has no effect.

    Returns whether a custom call was written, which is never so on one device.
    """
    value, (text, opened) = operation.operands[0], xla_sharding(sharding, meshes)
    if text is not None:
        with ir.InsertionPoint(operation), operation.location:
            call = new_sharding_call("Sharding", value, operation.results[0].type, text)
        if opened:
            call.attributes["backend_config"] = ir.StringAttr.get(f"unspecified_dims=[{listed(opened)}]")
        value = call.results[0]
    operation.results[0].replace_all_uses_with(value)
    operation.erase()
    return text is not None


def new_sharding_call(target: str, value: Any, kind: Any, text: str) -> Any:
    """Return a new call to `target`, a custom call of XLA's partitioner.

    Its operand is `value`, its result has the type `kind`, and `text` is its sharding in XLA's form.
    """
    call = stablehlo.CustomCallOp([kind], [value], target).operation
    call.attributes[XLA_SHARDING] = ir.StringAttr.get(text)
    return call


def replace_manual_computation(manual: Any, meshes: dict[str, Mesh]) -> None:
    """Replace a manual computation (`shard_map`) by its body, between custom calls that split and join its arrays."""
    own, block = attributes(manual), manual.regions[0].blocks[0]
    into, out = ([*sdy.TensorShardingPerValueAttr(own[name]).shardings] for name in ("in_shardings", "out_shardings"))
    names = {mesh_name(sharding) for sharding in (*into, *out)}
    axes = {*sdy.ManualAxesAttr(own["manual_axes"])}
    if len(names) != 1 or axes != set(meshes[names.pop()]):
        raise NotRewritableError(
            "the module has a manual computation (shard_map) over only some axes of its mesh, which XLA's shardings "
            "cannot express"
        )
    *body, terminator = [inner.operation for inner in block]
    if any(inner.name == "sdy.sharding_constraint" for inner in body):
        raise NotRewritableError(
            "the module has a sharding constraint inside a manual computation (shard_map), which cannot be rewritten"
        )
    with ir.InsertionPoint(manual), manual.location:
        for value, argument, sharding in zip(manual.operands, block.arguments, into, strict=True):
            whole = new_sharding_call("Sharding", value, value.type, whole_sharding(sharding, meshes))
            part = new_sharding_call("SPMDFullToShardShape", whole.results[0], argument.type, MANUAL)
            argument.replace_all_uses_with(part.results[0])
    for inner in body:
        inner.move_before(manual)
    with ir.InsertionPoint(manual), manual.location:
        for value, result, sharding in zip(terminator.operands, manual.results, out, strict=True):
            part = new_sharding_call("Sharding", value, value.type, MANUAL)
            whole = new_sharding_call(
                "SPMDShardToFullShape", part.results[0], result.type, whole_sharding(sharding, meshes)
            )
            result.replace_all_uses_with(whole.results[0])
    manual.erase()


def whole_sharding(sharding: Any, meshes: dict[str, Mesh]) -> str:
    """Return XLA's text for the sharding of a manual computation's operand or result, as a whole array."""
    text, opened = xla_sharding(sharding, meshes)
    if opened:
        raise NotRewritableError(
            "the module has a manual computation (shard_map) that leaves the sharding of some dimensions to the "
            "partitioner, which cannot be rewritten"
        )
    return text or "{replicated}"


def mesh_name(sharding: Any) -> str:
    """Return the name of the mesh that a sharding of Shardy refers to."""
    try:
        name: str = ir.FlatSymbolRefAttr(sdy.TensorShardingAttr(sharding).mesh_or_ref).value
        return name
    except ValueError:
        raise NotRewritableError("the module has a sharding without a named mesh, which cannot be rewritten") from None


def rewrite_function_shardings(operation: Any, own: dict[str, Any], meshes: dict[str, Mesh]) -> int:
    """Rewrite the shardings of a function's arguments and results as XLA's; return the number of rewritten shardings.

    `own` has the function's attributes by name.
    """
    count = 0
    for field in ("arg_attrs", "res_attrs"):
        if field not in own:
            continue
        rewritten = []
        for one in ir.ArrayAttr(own[field]):
            named = {entry.name: entry.attr for entry in ir.DictAttr(one)}
            if SHARDING in named:
                count += 1
                text, opened = xla_sharding(named.pop(SHARDING), meshes)
                if opened:
                    raise NotRewritableError(
                        "the module has an argument or result that leaves the sharding of some dimensions to the "
                        "partitioner, which cannot be rewritten"
                    )
                named |= {} if text is None else {XLA_SHARDING: ir.StringAttr.get(text)}
            rewritten.append(ir.DictAttr.get(named))
        operation.attributes[field] = ir.ArrayAttr.get(rewritten)
    return count


def xla_sharding(attribute: Any, meshes: dict[str, Mesh]) -> tuple[str | None, list[int]]:
    """Return a Shardy sharding as XLA's text, and the dimensions that it leaves to the partitioner.

    The text is such as ``{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}``. It is None if the sharding has no
    effect.
    """
    sharding = sdy.TensorShardingAttr(attribute)
    if list(sharding.unreduced_axes):
        raise NotRewritableError("the module has an unreduced sharding, which cannot be expressed as an XLA sharding")
    mesh = meshes[mesh_name(attribute)]
    parts = list(map(sdy.DimensionShardingAttr, sharding.dimension_shardings))
    opened = [number for number, part in enumerate(parts) if not part.is_closed]
    if math.prod(mesh.values()) == 1 or (opened and len(opened) == len(parts) and not any(list(x.axes) for x in parts)):
        return None, []
    dimensions = []
    for number, part in enumerate(parts):
        axes = list(map(sdy.AxisRefAttr, part.axes))
        if axes and number in opened:
            raise NotRewritableError(
                "the module has a sharding that lets the partitioner split a dimension further, which cannot be "
                "rewritten"
            )
        if any(axis.sub_axis_info is not None for axis in axes):
            raise NotRewritableError(
                "the module has a sharding over a part of a mesh axis, which cannot be expressed as an XLA sharding"
            )
        dimensions.append([axis.name for axis in axes])
    return tiles_text(mesh, dimensions), opened


def tiles_text(mesh: Mesh, dimensions: list[list[str]]) -> str:
    """Return XLA's text for an array's sharding; `dimensions` lists the mesh axes that split each dimension."""
    split = [axis for axes in dimensions for axis in axes]
    tiles = [math.prod(mesh[axis] for axis in axes) for axes in dimensions]
    if math.prod(tiles) == 1:
        return "{replicated}"
    places = list(mesh)
    order = [places.index(axis) for axis in (*split, *(axis for axis in mesh if axis not in split))]
    replicas = math.prod(mesh.values()) // math.prod(tiles)
    devices = math.prod(mesh.values()) if order == sorted(order) else None
    shape = [devices] if devices else list(mesh.values())
    permutation = "" if devices else f"T({listed(order)})"
    tiles += [replicas] if replicas > 1 else []
    last = " last_tile_dim_replicate" if replicas > 1 else ""
    return f"{{devices=[{listed(tiles)}]<=[{listed(shape)}]{permutation}{last}}}"


def listed(numbers: list[int]) -> str:
    """Return numbers joined by commas, such as ``2,1,2``."""
    return ",".join(map(str, numbers))
