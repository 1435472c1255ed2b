"""The encoder of the envelope: a flatbuffer that jax reads, with the same fields in a layout of our own.

Tables come before what they point to: readers demand that offsets point forward.
"""

from collections.abc import Iterable, Sequence
from struct import pack, pack_into
from typing import NamedTuple

from export_core.artifact.envelope import fields as f
from export_core.artifact.envelope import schema as s
from export_core.artifact.errors import ArtifactError


class Scalar(NamedTuple):
    """A number in a table that will be written to an artifact."""

    form: str  # The letter of its type in the module `struct`, such as I for 32 bits without sign.
    value: int


class Blob(NamedTuple):
    """A vector of numbers or bytes that will be written to an artifact."""

    length: int  # The number of its elements.
    data: bytes  # The bytes of all elements.
    align: int = 4  # The alignment of the data in bytes.


Table = dict[int, "Scalar | Node"]  # The fields of a table to write, by index.
Node = Table | Blob | str | bytes | list["Node"]  # Whatever is written at an offset; a list is a vector of such.
_SIZE = {"b": 1, "B": 1, "h": 2, "H": 2, "I": 4}
_ORDER = {table: {name: index for index, name in enumerate(names)} for table, names in s.FIELDS.items()}


def encode(envelope: f.Envelope, slots: Iterable[str] | None = None) -> bytes:
    """Return the bytes of an artifact with this envelope and its nested VJPs.

    Args:
        envelope: the envelope to write, as `read` returns it, or changed with `_replace`.
        slots: the names of the fields of `Exported` to write; by default, those that were read.

    Raises:
        ArtifactError: The envelope has fields that the known schema lacks, which cannot be copied without knowing
            their types.
    """
    out = bytearray(4)
    # Places of offsets, and what each points to: the offset is known when its target is written, always further on.
    todo: list[tuple[int, Node]] = [(0, _exported(envelope, None if slots is None else frozenset(slots)))]
    while todo:
        place, node = todo.pop()
        if isinstance(node, str):
            node = Blob(len(node.encode()), node.encode() + b"\0")
        elif isinstance(node, bytes):
            node = Blob(len(node), node)
        # What is aligned of a blob is the data, behind four bytes of length.
        out += bytes(-(len(out) + 4) % node.align if isinstance(node, Blob) else -len(out) % 4)
        start = len(out)
        if isinstance(node, dict):
            start = _write_table(out, node, todo)
        elif isinstance(node, Blob):
            out += pack("<I", node.length) + node.data
        else:
            out += pack("<I", len(node)) + bytes(4 * len(node))
            todo += [(start + 4 + 4 * i, item) for i, item in reversed(list(enumerate(node)))]
        pack_into("<I", out, place, start - place)
    return bytes(out)


def _write_table(out: bytearray, table: Table, todo: list[tuple[int, Node]]) -> int:
    """Write a vtable and its table to `out`, and return the position of the table.

    The objects to which the table points are added to `todo`, each after the position of the offset that points to it.
    """
    slots = max(table, default=-1) + 1
    sizes = {index: _SIZE[value.form] if isinstance(value, Scalar) else 4 for index, value in table.items()}
    # Wide fields first: a table starts at a multiple of 4, so each is aligned to its own width without padding.
    offsets = [0] * slots
    inline = 4
    for index in sorted(sizes, key=lambda index: -sizes[index]):
        offsets[index] = inline
        inline += sizes[index]
    vtable = len(out)
    out += pack(f"<HH{slots}H", 4 + 2 * slots, inline, *offsets)
    out += bytes(-len(out) % 4)
    start = len(out)
    out += pack("<i", start - vtable) + bytes(inline - 4)
    for index, value in reversed(table.items()):  # the last on the list is written first
        if isinstance(value, Scalar):
            pack_into("<" + value.form, out, start + offsets[index], value.value)
        else:
            todo.append((start + offsets[index], value))
    return start


def _table(kind: str, /, **fields: "Scalar | Node | None") -> Table:
    """Return a table for `_write_table`, of the type `kind` in the schema. Fields that are None are left out."""
    return {_ORDER[kind][name]: value for name, value in fields.items() if value is not None}


def _numbers(form: str, values: Sequence[int]) -> Blob:
    return Blob(len(values), pack(f"<{len(values)}{form}", *values))


def _enum(names: tuple[str | None, ...], name: str | None, what: str) -> Scalar:
    try:
        return Scalar("b", names.index(name))
    except ValueError:
        raise ArtifactError(f"a known {what}", repr(name), advice="Read it with a newer pytest-jaxexport.") from None


def _exported(e: f.Envelope, slots: frozenset[str] | None) -> Table:
    if e.unknown_fields:
        found = ", ".join(f"{field.table}[{field.index}]" for field in e.unknown_fields)
        raise ArtifactError("only fields of a known schema", found, advice="Read it with a newer pytest-jaxexport.")
    present = (frozenset(e.slots) if slots is None else slots) | {"vjp"}
    # dict.fromkeys removes duplicates and keeps the order, so that the same envelope gives the same bytes.
    avals = list(dict.fromkeys((*e.in_avals, *e.out_avals)))
    numbered = {aval: number for number, aval in enumerate(avals)}
    named = list(dict.fromkeys(x for x in (*e.in_shardings, *e.out_shardings) if isinstance(x, f.NamedSharding)))
    places: dict[f.Sharding, int] = {x: number for number, x in enumerate(named, 1)}  # 0 is unspecified
    meshes = list(dict.fromkeys(x.mesh for x in named)) if "unique_abstract_meshes" in present else []
    checks = [(_enum(s.CHECK_KINDS, check.kind, "safety check"), check.target) for check in e.disabled_checks]
    fields: dict[str, Scalar | Node | None] = {
        "serialization_version": Scalar("H", e.serialization_version),
        "function_name": e.fun_name,
        "in_tree": _tree(e.in_tree),
        "in_avals": [*map(_aval, e.in_avals)],
        "out_tree": _tree(e.out_tree),
        "out_avals": [*map(_aval, e.out_avals)],
        "nr_devices_short": Scalar("h", min(e.nr_devices, 0x7FFF)),  # int16 on the wire
        "in_shardings": [_sharding(x, meshes) for x in e.in_shardings],
        "out_shardings": [_sharding(x, meshes) for x in e.out_shardings],
        "platforms": [*e.platforms],
        "ordered_effects": [_table("Effect", type_name=x) for x in e.ordered_effects],
        "unordered_effects": [_table("Effect", type_name=x) for x in e.unordered_effects],
        "disabled_checks": [_table("DisabledSafetyCheck", kind=k, custom_call_target=to) for k, to in checks],
        "mlir_module_serialized": Blob(e.module_source.length, e.mlir_module_serialized, 16),
        "calling_convention_version": Scalar("H", e.calling_convention_version),
        "module_kept_var_idx": _numbers("H", e.module_kept_var_idx),
        "uses_global_constants": Scalar("B", int(e.uses_global_constants)),
        "vjp": None if e.vjp is None else _exported(e.vjp, slots),
        "nr_devices": Scalar("I", e.nr_devices),
        "unique_avals": [*map(_aval, avals)],
        "unique_abstract_meshes": [*map(_mesh, meshes)],
        "unique_named_shardings": [_named_sharding(x, meshes) for x in named],
        "in_avals_idxs": _numbers("I", tuple(numbered[x] for x in e.in_avals)),
        "out_avals_idxs": _numbers("I", tuple(numbered[x] for x in e.out_avals)),
        "in_shardings_idxs": _numbers("I", tuple(places.get(x, 0) for x in e.in_shardings)),
        "out_shardings_idxs": _numbers("I", tuple(places.get(x, 0) for x in e.out_shardings)),
        "jax_version": e.jax_version,
    }
    return _table("Exported", **{name: value for name, value in fields.items() if name in present})


def _tree(tree: f.Tree) -> Table:
    return _table(
        "PyTreeDef",
        kind=_enum(s.TREE_KINDS, tree.kind, "kind of pytree"),
        children=[*map(_tree, tree.children)] if tree.children else None,
        children_names=[*tree.names] if tree.kind == "dict" else None,
        custom_name=tree.custom_name,
        custom_auxdata=tree.custom_auxdata,
    )


def _aval(aval: f.Aval) -> Table:
    token = aval.dtype == "token"
    return _table(
        "AbstractValue",
        kind=Scalar("b", 1) if token else None,
        shape=[*map(str, aval.shape)],
        dtype=None if token else _enum(s.DTYPES, aval.dtype, "dtype"),
        memory_space=_enum(s.MEMORY_SPACES, aval.memory_space, "memory space"),
    )


def _sharding(sharding: f.Sharding, meshes: list[f.AbstractMesh]) -> Table:
    named = sharding if isinstance(sharding, f.NamedSharding) else None
    proto = sharding.proto if isinstance(sharding, f.HloSharding) else named and named.hlo_sharding_proto
    return _table(
        "Sharding",
        kind=None if proto is None else Scalar("b", 1),  # formats 6 to 8 write it beside named ones, for older readers
        hlo_sharding_proto=proto,
        named_sharding=named and _named_sharding(named, meshes),
    )


def _named_sharding(sharding: f.NamedSharding, meshes: list[f.AbstractMesh]) -> Table:
    spec = sharding.spec
    axes = [() if p is None else (p,) if isinstance(p, str) else p for p in spec.partitions]
    return _table(
        "NamedSharding",
        mesh=_mesh(sharding.mesh),
        spec=_table(
            "PartitionSpec",
            partitions=[_table("PartitionSpecOneAxis", axes=[*names]) for names in axes],
            reduced=[*spec.reduced],
            unreduced=[*spec.unreduced],
        ),
        memory_kind=sharding.memory_kind,
        abstract_mesh_idx=Scalar("I", meshes.index(sharding.mesh)) if meshes else None,
    )


def _mesh(mesh: f.AbstractMesh) -> Table:
    device = mesh.abstract_device
    return _table(
        "AbstractMesh",
        axis_sizes=_numbers("I", mesh.axis_sizes),
        axis_names=[*mesh.axis_names],
        axis_types=_numbers("b", [_enum(s.AXIS_TYPES, name, "type of a mesh axis").value for name in mesh.axis_types]),
        abstract_device=device
        and _table(
            "AbstractDevice",
            device_kind=device.device_kind,
            num_cores=None if device.num_cores is None else Scalar("I", device.num_cores),
            platform=device.platform,
        ),
    )
