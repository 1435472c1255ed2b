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
    """A number in a table; `form` is its struct letter."""

    form: str
    value: int


class Blob(NamedTuple):
    """A vector of numbers, bytes or letters: how many, their bytes, and at a multiple of what the first one is."""

    length: int
    data: bytes
    align: int = 4


class Vector(NamedTuple):
    """A vector of tables or of texts."""

    items: "list[NewTable] | list[Blob]"


class NewTable(NamedTuple):
    """A table to write: its fields, with the index of each."""

    fields: "list[tuple[int, Node]]"


Node = Scalar | Blob | Vector | NewTable
_SIZE = {"b": 1, "B": 1, "h": 2, "H": 2, "I": 4}
_ORDER = {table: {name: index for index, name in enumerate(names)} for table, names in s.FIELDS.items()}


def encode(envelope: f.Envelope, slots: Iterable[str] | None = None) -> bytes:
    """Write an envelope and its nested VJPs.

    Raises `ArtifactError` where there are fields that this schema does not know: they cannot be moved without knowing
    what they are.

    Args:
        envelope: what to write; made by `read`, or changed with `_replace`.
        slots: the fields of `Exported` to write; those that were read, by default. Conversion chooses its own.
    """
    out = bytearray(4)
    # Places of offsets, and what each points to: the offset is known when its target is written, always further on.
    todo: list[tuple[int, Node]] = [(0, _exported(envelope, None if slots is None else frozenset(slots)))]
    while todo:
        place, node = todo.pop()
        match node:
            case NewTable():
                out += bytes(-len(out) % 4)
                start = _write_table(out, node, todo)
            case Blob(length, data, align):
                out += bytes(-(len(out) + 4) % align)  # what is aligned is the data, behind four bytes of length
                start = len(out)
                out += pack("<I", length) + data
            case Vector(items):
                out += bytes(-len(out) % 4)
                start = len(out)
                out += pack("<I", len(items)) + bytes(4 * len(items))
                todo += [(start + 4 + 4 * i, item) for i, item in reversed(list(enumerate(items)))]
            case _:
                raise TypeError(f"a scalar has no offset: {node!r}")
        pack_into("<I", out, place, start - place)
    return bytes(out)


def _write_table(out: bytearray, table: NewTable, todo: list[tuple[int, Node]]) -> int:
    """Write a vtable and its table; put what the table points to on the list."""
    slots = max((index for index, _ in table.fields), default=-1) + 1
    sizes = {index: _SIZE[value.form] if isinstance(value, Scalar) else 4 for index, value in table.fields}
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
    for index, value in reversed(table.fields):  # the last on the list is written first
        if isinstance(value, Scalar):
            pack_into("<" + value.form, out, start + offsets[index], value.value)
        else:
            todo.append((start + offsets[index], value))
    return start


def _table(kind: str, /, **fields: Node | None) -> NewTable:
    """A table of the schema. A field that is None is not written."""
    return NewTable([(_ORDER[kind][name], value) for name, value in fields.items() if value is not None])


def _text(value: str | None) -> Blob | None:
    if value is None:
        return None
    data = value.encode()
    return Blob(len(data), data + b"\0")


def _texts(values: Iterable[str]) -> Vector:
    return Vector([text for value in values if (text := _text(value)) is not None])


def _bytes(value: bytes | None) -> Blob | None:
    return None if value is None else Blob(len(value), value)


def _numbers(form: str, values: Sequence[int]) -> Blob:
    return Blob(len(values), pack(f"<{len(values)}{form}", *values))


def _number(names: tuple[str | None, ...], name: str | None, what: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise ArtifactError(f"a known {what}", repr(name), advice="Read it with a newer pytest-jaxexport.") from None


def _exported(e: f.Envelope, slots: frozenset[str] | None) -> NewTable:
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
    checks = [
        _table(
            "DisabledSafetyCheck",
            kind=Scalar("b", _number(s.CHECK_KINDS, check.kind, "safety check")),
            custom_call_target=_text(check.target),
        )
        for check in e.disabled_checks
    ]
    fields: dict[str, Node | None] = {
        "serialization_version": Scalar("H", e.serialization_version),
        "function_name": _text(e.fun_name),
        "in_tree": _tree(e.in_tree),
        "in_avals": Vector(list(map(_aval, e.in_avals))),
        "out_tree": _tree(e.out_tree),
        "out_avals": Vector(list(map(_aval, e.out_avals))),
        "nr_devices_short": Scalar("h", min(e.nr_devices, 0x7FFF)),  # int16 on the wire
        "in_shardings": Vector([_sharding(x, meshes) for x in e.in_shardings]),
        "out_shardings": Vector([_sharding(x, meshes) for x in e.out_shardings]),
        "platforms": _texts(e.platforms),
        "ordered_effects": Vector([_table("Effect", type_name=_text(x)) for x in e.ordered_effects]),
        "unordered_effects": Vector([_table("Effect", type_name=_text(x)) for x in e.unordered_effects]),
        "disabled_checks": Vector(checks),
        "mlir_module_serialized": Blob(e.module_source.length, e.mlir_module_serialized, 16),
        "calling_convention_version": Scalar("H", e.calling_convention_version),
        "module_kept_var_idx": _numbers("H", e.module_kept_var_idx),
        "uses_global_constants": Scalar("B", int(e.uses_global_constants)),
        "vjp": None if e.vjp is None else _exported(e.vjp, slots),
        "nr_devices": Scalar("I", e.nr_devices),
        "unique_avals": Vector(list(map(_aval, avals))),
        "unique_abstract_meshes": Vector(list(map(_mesh, meshes))),
        "unique_named_shardings": Vector([_named_sharding(x, meshes) for x in named]),
        "in_avals_idxs": _numbers("I", tuple(numbered[x] for x in e.in_avals)),
        "out_avals_idxs": _numbers("I", tuple(numbered[x] for x in e.out_avals)),
        "in_shardings_idxs": _numbers("I", tuple(places.get(x, 0) for x in e.in_shardings)),
        "out_shardings_idxs": _numbers("I", tuple(places.get(x, 0) for x in e.out_shardings)),
        "jax_version": _text(e.jax_version),
    }
    return _table("Exported", **{name: value for name, value in fields.items() if name in present})


def _tree(tree: f.Tree) -> NewTable:
    return _table(
        "PyTreeDef",
        kind=Scalar("b", _number(s.TREE_KINDS, tree.kind, "kind of pytree")),
        children=Vector(list(map(_tree, tree.children))) if tree.children else None,
        children_names=_texts(tree.names) if tree.kind == "dict" else None,
        custom_name=_text(tree.custom_name),
        custom_auxdata=_bytes(tree.custom_auxdata),
    )


def _aval(aval: f.Aval) -> NewTable:
    token = aval.dtype == "token"
    return _table(
        "AbstractValue",
        kind=Scalar("b", 1) if token else None,
        shape=_texts(map(str, aval.shape)),
        dtype=None if token else Scalar("b", _number(s.DTYPES, aval.dtype, "dtype")),
        memory_space=Scalar("b", _number(s.MEMORY_SPACES, aval.memory_space, "memory space")),
    )


def _sharding(sharding: f.Sharding, meshes: list[f.AbstractMesh]) -> NewTable:
    if sharding is None:
        return _table("Sharding")
    if isinstance(sharding, f.HloSharding):
        return _table("Sharding", kind=Scalar("b", 1), hlo_sharding_proto=_bytes(sharding.proto))
    proto = sharding.hlo_sharding_proto
    return _table(
        "Sharding",
        kind=Scalar("b", 1) if proto is not None else None,  # what formats 6 to 8 write for older readers
        hlo_sharding_proto=_bytes(proto),
        named_sharding=_named_sharding(sharding, meshes),
    )


def _named_sharding(sharding: f.NamedSharding, meshes: list[f.AbstractMesh]) -> NewTable:
    spec = sharding.spec
    axes = [() if p is None else (p,) if isinstance(p, str) else p for p in spec.partitions]
    return _table(
        "NamedSharding",
        mesh=_mesh(sharding.mesh),
        spec=_table(
            "PartitionSpec",
            partitions=Vector([_table("PartitionSpecOneAxis", axes=_texts(names)) for names in axes]),
            reduced=_texts(spec.reduced),
            unreduced=_texts(spec.unreduced),
        ),
        memory_kind=_text(sharding.memory_kind),
        abstract_mesh_idx=Scalar("I", meshes.index(sharding.mesh)) if meshes else None,
    )


def _mesh(mesh: f.AbstractMesh) -> NewTable:
    device = mesh.abstract_device
    return _table(
        "AbstractMesh",
        axis_sizes=_numbers("I", mesh.axis_sizes),
        axis_names=_texts(mesh.axis_names),
        axis_types=_numbers("b", [_number(s.AXIS_TYPES, name, "type of a mesh axis") for name in mesh.axis_types]),
        abstract_device=device
        and _table(
            "AbstractDevice",
            device_kind=_text(device.device_kind),
            num_cores=None if device.num_cores is None else Scalar("I", device.num_cores),
            platform=_text(device.platform),
        ),
    )
