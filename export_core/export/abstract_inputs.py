"""Arrays in place of `jax.ShapeDtypeStruct` arguments: the user's `inputs=`, or made by a rule that never changes."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from export_core.artifact import Aval
from export_core.artifact.main_check import dimension_names
from export_core.base.text import plural
from export_core.export import api
from export_core.export.arguments import Arguments, array_from, require_kept
from export_core.export.errors import ExportError
from export_core.export.meshes import concrete_mesh
from export_core.goldens.made_inputs import SEED, made_leaf, size_of
from export_core.goldens.manifest import InputsRule

_TRIED = 200  # The most choices of sizes for symbolic dimensions that are tried, against their constraints.


def take_inputs(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...] | None, dict[str, Any]]:
    """Return the leaves of the keyword argument `inputs` of a call, and its other keyword arguments.

    The leaves are the values for arguments that are `jax.ShapeDtypeStruct`. If no argument is a `ShapeDtypeStruct`, or
    if `inputs` contains one, `inputs` is an argument of the function itself, and None is returned in place of the
    leaves.
    """
    others = {name: value for name, value in kwargs.items() if name != "inputs"}
    if len(others) == len(kwargs) or has_structs(kwargs["inputs"]) or not has_structs((args, others)):
        return None, dict(kwargs)
    return tuple(jax.tree_util.tree_leaves(kwargs["inputs"])), others


def has_structs(tree: Any) -> bool:
    """Return whether a leaf of a tree is a `jax.ShapeDtypeStruct`."""
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree_util.tree_leaves(tree))


def with_values(
    test: str, arguments: Arguments, inputs: Sequence[Any] | None = None, rule: InputsRule = ""
) -> Arguments:
    """Return the arguments of a call with an array in place of each `jax.ShapeDtypeStruct`.

    The arrays are `inputs`, or are made by the rule if that is None. Each is on the devices of its struct's sharding.
    Raises `ExportError` for too many or too few arrays, for wrong shapes or dtypes, and if an array cannot be made.
    """
    leaves = arguments.flat()
    structs = [leaf for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct)]
    if not structs:
        return arguments
    for struct in structs:
        if getattr(struct, "weak_type", False):
            raise ExportError(
                f"{test}: {struct} has a weak type, but arguments of an artifact have none: "
                "pass a Python number, or jax.ShapeDtypeStruct(shape, dtype)."
            )
    values = iter(_made(test, structs, rule) if inputs is None else _given(test, structs, inputs))
    return arguments.with_flat([next(values) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf for leaf in leaves])


def _given(test: str, structs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    if len(inputs) != len(structs):
        raise ExportError(
            f"{test}: inputs= has {plural(len(inputs), 'value')}: expected {len(structs)}, one for each "
            "jax.ShapeDtypeStruct among the arguments, in their order."
        )
    values = []
    for number, (struct, value) in enumerate(zip(structs, inputs, strict=True)):
        require_kept(f"{test}: inputs=: value [{number}]", value)
        array = value if isinstance(value, jax.Array) else jax.numpy.asarray(value)
        # Without x64, jax takes float32 for float64.
        dtype = jax.eval_shape(lambda x: x, jax.ShapeDtypeStruct((), struct.dtype)).dtype
        fits = len(array.shape) == len(struct.shape) and all(
            size == actual for size, actual in zip(struct.shape, array.shape, strict=True) if isinstance(size, int)
        )
        if array.dtype != dtype or not fits:
            raise ExportError(f"{test}: inputs=: expected {struct}, found {array.dtype}{list(array.shape)}.")
        values.append(_placed(test, array, struct))
    return values


def _made(test: str, structs: Sequence[Any], rule: InputsRule) -> Iterator[Any]:
    random = np.random.RandomState(SEED)
    for struct, shape in zip(structs, _concrete_shapes(test, structs), strict=True):
        dtype = "float0" if struct.dtype == jax.dtypes.float0 else str(struct.dtype)
        yield _placed(test, array_from(made_leaf(random, dtype, shape, rule)), struct)


def _placed(test: str, value: Any, struct: Any) -> Any:
    sharding = struct.sharding
    if isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh):  # an AbstractMesh
        mesh = concrete_mesh(test, sharding.mesh.shape)
        if hasattr(jax.sharding, "AxisType"):  # a function may need explicit axes
            mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=sharding.mesh.axis_types)
        sharding = NamedSharding(mesh, sharding.spec)
    return value if sharding is None else jax.device_put(value, sharding)


def _concrete_shapes(test: str, structs: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of arguments; symbolic dimensions get the first sizes that satisfy their constraints.

    Sizes are tried from 2 on, small sizes first, and different sizes for different dimensions before equal sizes.
    """
    texts = [tuple(map(str, struct.shape)) for struct in structs]
    names = sorted(dimension_names(Aval("", text) for text in texts))
    if not names:
        return [struct.shape for struct in structs]
    plain = [jax.ShapeDtypeStruct(struct.shape, np.float32) for struct in structs]
    # jax decides which sizes fit: the constraints have no public name.
    call = api.call_of(api.export_module().export(jax.jit(lambda *_: 0))(*plain))
    largest = max(int(_TRIED ** (1 / len(names))), 2)
    choices = itertools.islice(itertools.product(range(2, 2 + largest), repeat=len(names)), _TRIED)
    ordered = sorted(choices, key=lambda sizes: (len(set(sizes)) < len(sizes), max(sizes), sizes))
    for sizes in (tuple(range(2, 2 + len(names))), *ordered):
        known = dict(zip(names, sizes, strict=True))
        values = {size: size_of(size, known) or 0 for text in texts for size in text}
        if any(value < 1 and not size.isdigit() for size, value in values.items()):
            continue
        shapes = [tuple(values[size] for size in text) for text in texts]
        try:
            jax.eval_shape(call, *(jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes))
        except ValueError:
            continue
        return shapes
    raise ExportError(
        f"{test}: found no sizes for {', '.join(names)} up to {1 + largest} that fit "
        f"{', '.join(map(str, structs))}: pass inputs=(array, ...), one array for each jax.ShapeDtypeStruct."
    )
