"""The program that rewrites modules: runs in a process of its own, in the environment of the newest release.

``program.py FOLDER`` reads job.json in the folder and the modules beside it (0.bc, 1.bc, …), and writes each again
(0.out, 1.out, …), then result.json:

    {"modules": 2, "stablehlo": "1.13.3", "shardy": true, "replace": ["lapack_spotrf_ffi"], "platform": "tpu"}
    {"rewrites": ["…", …], "by": "0.12.0.1"}   or   {"refused": "why"}

Nothing is compiled and nothing is run. It imports nothing of this project; what it cannot rewrite, it refuses.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from jaxlib import _jax, version
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

LONGEST_REASON = 400
RULE, SHARDING, XLA_SHARDING = "sdy.sharding_rule", "sdy.sharding", "mhlo.sharding"


class RefusedError(Exception):
    """What is in the module, and why it cannot be rewritten."""


def main(folder: Path) -> None:
    """Do the job in a folder."""
    job = json.loads((folder / "job.json").read_text())
    try:
        rewrites = Rewriting(job).run(folder)
        result = {"rewrites": rewrites, "by": version.__version__}
    except RefusedError as refused:
        result = {"refused": str(refused)[:LONGEST_REASON]}
    (folder / "result.json").write_text(json.dumps(result))


class Rewriting:
    """One job: its modules, and what was rewritten in all of them."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.done: Counter[str] = Counter()

    def run(self, folder: Path) -> list[str]:
        """Rewrite all modules. Returns what was rewritten, in words."""
        for number in range(self.job["modules"]):
            code = self.rewritten((folder / f"{number}.bc").read_bytes())
            (folder / f"{number}.out").write_bytes(code)
        target = f"modules written for StableHLO {self.job['stablehlo']}"
        return [target, *(f"{what}: {count}" for what, count in self.done.items())]

    def rewritten(self, code: bytes) -> bytes:
        """One module again."""
        with ir.Context() as context, ir.Location.unknown():
            for dialect in (stablehlo, chlo, sdy):
                dialect.register_dialect(context)
            read = stablehlo.deserialize_portable_artifact
            module = attempt("the newest jaxlib does not read it", read, context, code)
            if self.job["replace"]:
                self.replace_calls(module)
            if not self.job["shardy"]:
                self.done.update(shardings_as_xlas(module))
            attempt("what was rewritten is no valid module", module.operation.verify)
            # Mixed: dialects other than VHLO stay as they are, for readers that parse them.
            mixed = any(name.startswith("sdy.") for name in dialect_names(module))
            target, write = self.job["stablehlo"], _jax.mlir.serialize_portable_artifact
            written: bytes = attempt(f"it cannot be written for StableHLO {target}", write, module, target, mixed)
            return written

    def replace_calls(self, module: Any) -> None:
        """Replace the custom calls that the job names. Only this needs jax."""
        import lapack  # type: ignore[import-not-found]  # beside this file

        try:
            done = lapack.replace_calls(module, operations(module), self.job["replace"], self.job["platform"])
        except lapack.NoReplacementError as error:
            raise RefusedError(str(error)) from None
        self.done.update(done)


def attempt(what: str, function: Any, *args: Any) -> Any:
    """Call a function of jaxlib. Raises `RefusedError` for what it raises."""
    try:
        return function(*args)
    except Exception as error:  # what it raises differs by release
        raise RefusedError(f"{what}: {' '.join(str(error).split())}") from error


def operations(module: Any) -> list[Any]:
    """All operations of a module, those in regions too."""
    found: list[Any] = []

    def walk(operation: Any) -> None:
        for region in operation.regions:
            for block in region:
                for inner in block:
                    found.append(inner.operation)
                    walk(inner.operation)

    walk(module.operation)
    return found


def attributes(operation: Any) -> dict[str, Any]:
    """The attributes of an operation by name."""
    return {named.name: named.attr for named in map(operation.attributes.__getitem__, range(len(operation.attributes)))}


def dialect_names(module: Any) -> set[str]:
    """The names of all operations, and of all attributes of operations and of functions' arguments and results."""
    names: set[str] = set()
    for operation in operations(module):
        own = attributes(operation)
        names |= {operation.name, *own}
        for field in ("arg_attrs", "res_attrs"):
            if field in own:
                names |= {named.name for one in ir.ArrayAttr(own[field]) for named in ir.DictAttr(one)}
    return names


# --- Shardy's shardings as XLA's, for readers that do not parse its dialect -------------------------------------------

Mesh = dict[str, int]


def shardings_as_xlas(module: Any) -> Counter[str]:
    """Rewrite every sharding of Shardy in place; return how many of which kind."""
    done: Counter[str] = Counter()
    meshes = take_meshes(module)
    for operation in operations(module):
        own = attributes(operation)
        if operation.name == "sdy.sharding_constraint":
            constraint_as_xlas(operation, own["sharding"], meshes)
            done["constraints of Shardy written as XLA's"] += 1
            continue
        if operation.name.startswith("sdy."):
            raise RefusedError(f"{operation.name} has no form in XLA's shardings")
        if RULE in own:
            del operation.attributes[RULE]  # a hint for the propagation of shardings, which has another algorithm there
            done["sharding rules of Shardy left out, which are hints"] += 1
        if others := [name for name in own if name.startswith("sdy.") and name != RULE]:
            raise RefusedError(f"{operation.name} has {others[0]}, which has no form in XLA's shardings")
        if operation.name == "func.func":
            done["shardings of arguments and results written as XLA's"] += function_as_xlas(operation, own, meshes)
    return +done


def take_meshes(module: Any) -> dict[str, Mesh]:
    """The meshes of a module by name; they are removed from it."""
    meshes: dict[str, Mesh] = {}
    for operation in [inner.operation for inner in module.body.operations]:
        if operation.name == "sdy.mesh":
            mesh = sdy.MeshAttr(operation.attributes["mesh"])
            if list(mesh.device_ids):
                raise RefusedError("a mesh of Shardy with devices in an order of its own")
            axes = map(sdy.MeshAxisAttr, mesh.axes)
            meshes[ir.StringAttr(operation.attributes["sym_name"]).value] = {axis.name: axis.size for axis in axes}
            operation.erase()
    return meshes


def constraint_as_xlas(operation: Any, sharding: Any, meshes: dict[str, Mesh]) -> None:
    """Replace a sharding constraint by the custom call that means the same, or by nothing where it says nothing."""
    value, (text, opened) = operation.operands[0], xla_sharding(sharding, meshes)
    if text is not None:
        with ir.InsertionPoint(operation), operation.location:
            call = stablehlo.CustomCallOp([operation.results[0].type], [value], "Sharding").operation
        call.attributes[XLA_SHARDING] = ir.StringAttr.get(text)
        if opened:
            call.attributes["backend_config"] = ir.StringAttr.get(f"unspecified_dims=[{listed(opened)}]")
        value = call.results[0]
    operation.results[0].replace_all_uses_with(value)
    operation.erase()


def function_as_xlas(operation: Any, own: dict[str, Any], meshes: dict[str, Mesh]) -> int:
    """Rewrite the shardings of a function's arguments and results; return how many."""
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
                    raise RefusedError("an argument or result of which Shardy splits only some dimensions")
                named |= {} if text is None else {XLA_SHARDING: ir.StringAttr.get(text)}
            rewritten.append(ir.DictAttr.get(named))
        operation.attributes[field] = ir.ArrayAttr.get(rewritten)
    return count


def xla_sharding(attribute: Any, meshes: dict[str, Mesh]) -> tuple[str | None, list[int]]:
    """A sharding of Shardy as XLA's text, and the dimensions that it leaves open.

    The text is such as ``{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}``, and None where nothing is said.
    """
    sharding = sdy.TensorShardingAttr(attribute)
    if list(sharding.unreduced_axes):
        raise RefusedError("an unreduced sharding of Shardy has no form in XLA's shardings")
    try:
        mesh = meshes[ir.FlatSymbolRefAttr(sharding.mesh_or_ref).value]
    except (ValueError, KeyError):
        raise RefusedError("a sharding of Shardy without a named mesh") from None
    parts = list(map(sdy.DimensionShardingAttr, sharding.dimension_shardings))
    opened = [number for number, part in enumerate(parts) if not part.is_closed]
    if math.prod(mesh.values()) == 1 or (opened and len(opened) == len(parts) and not any(list(x.axes) for x in parts)):
        return None, []
    dimensions = []
    for number, part in enumerate(parts):
        axes = list(map(sdy.AxisRefAttr, part.axes))
        if axes and number in opened:
            raise RefusedError("a sharding of Shardy that may split a dimension further")
        if any(axis.sub_axis_info is not None for axis in axes):
            raise RefusedError("a sharding of Shardy over a part of an axis")
        dimensions.append([axis.name for axis in axes])
    return tiles_text(mesh, dimensions), opened


def tiles_text(mesh: Mesh, dimensions: list[list[str]]) -> str:
    """XLA's text of an array whose dimensions are split over these axes."""
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
    """``2,1,2``."""
    return ",".join(map(str, numbers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
