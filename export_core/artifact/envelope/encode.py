"""The writer of flatbuffers. Tables come before what they point to: readers demand that offsets point forward."""

from __future__ import annotations

from struct import pack, pack_into
from typing import TYPE_CHECKING

from export_core.artifact.envelope import schema as s
from export_core.artifact.envelope.fields import HloSharding, NamedSharding
from export_core.artifact.errors import ArtifactError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from export_core.artifact.envelope.fields import (
        AbstractDevice,
        AbstractMesh,
        Aval,
        DisabledCheck,
        Envelope,
        PartitionSpec,
        Sharding,
        Tree,
    )


class Scalar:
    """A number in a table; `form` is its struct letter."""

    __slots__ = ("form", "value")

    def __init__(self, form: str, value: int):
        self.form = form
        self.value = value


class Blob:
    """Bytes behind an offset; text is UTF-8 with a final zero."""

    __slots__ = ("align", "data", "zero")

    def __init__(self, data: bytes | str, align: int = 4):
        self.zero = isinstance(data, str)
        self.data = data.encode() if isinstance(data, str) else data
        self.align = align


class Vector:
    """A vector of tables or of texts."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[NewTable | Blob]):
        self.items = items


class Numbers:
    """A vector of scalars; `form` is their struct letter."""

    __slots__ = ("form", "values")

    def __init__(self, form: str, values: tuple[int, ...]):
        self.form = form
        self.values = values


class NewTable:
    """A table to write: the index of each field by name, and the fields. A field that is None is not written."""

    __slots__ = ("fields", "order")

    def __init__(self, order: dict[str, int], /, **fields: Scalar | Blob | Vector | Numbers | NewTable | None):
        self.order = order
        self.fields = fields


_SIZE = {"b": 1, "B": 1, "h": 2, "H": 2, "I": 4}


def build(root: NewTable) -> bytes:
    """Return the bytes of a flatbuffer with this root table."""
    out = bytearray(4)
    # Places of offsets, and what each points to: the offset is known when its target is written, always further on.
    todo: list[tuple[int, Scalar | Blob | Vector | Numbers | NewTable]] = [(0, root)]
    while todo:
        place, node = todo.pop()
        if isinstance(node, NewTable):
            _pad(out, 4)
            start = _table(out, node, todo)
        elif isinstance(node, Blob):
            _pad(out, node.align, 4)  # what is aligned is the data, behind four bytes of length
            start = len(out)
            out += pack("<I", len(node.data)) + node.data + (b"\0" if node.zero else b"")
        elif isinstance(node, Numbers):
            _pad(out, max(4, _SIZE[node.form]))
            start = len(out)
            out += pack(f"<I{len(node.values)}{node.form}", len(node.values), *node.values)
        elif isinstance(node, Vector):
            _pad(out, 4)
            start = len(out)
            out += pack("<I", len(node.items)) + bytes(4 * len(node.items))
            todo += [(start + 4 + 4 * i, item) for i, item in reversed(list(enumerate(node.items)))]
        else:
            raise TypeError(f"a scalar has no offset: {node!r}")
        pack_into("<I", out, place, start - place)
    return bytes(out)


def _size(value: object) -> int:
    return _SIZE[value.form] if isinstance(value, Scalar) else 4


def _pad(out: bytearray, align: int, ahead: int = 0) -> None:
    out += bytes(-(len(out) + ahead) % align)


def _table(
    out: bytearray,
    table: NewTable,
    todo: list[tuple[int, Scalar | Blob | Vector | Numbers | NewTable]],
) -> int:
    """Write a vtable and its table; put what the table points to on the list."""
    fields: list[tuple[int, Scalar | Blob | Vector | Numbers | NewTable]] = []
    for name, value in table.fields.items():
        if value is not None:
            fields.append((table.order[name], value))
    slots = max((index for index, _ in fields), default=-1) + 1
    # Wide fields first: a table starts at a multiple of 4, so each is aligned to its own width without padding.
    sized = sorted(fields, key=lambda field: -_size(field[1]))
    offsets = [0] * slots
    inline = 4
    for index, value in sized:
        offsets[index] = inline
        inline += _size(value)
    vtable = len(out)
    out += pack(f"<HH{slots}H", 4 + 2 * slots, inline, *offsets)
    _pad(out, 4)
    start = len(out)
    out += pack("<i", start - vtable) + bytes(inline - 4)
    later = []
    for index, value in fields:
        if isinstance(value, Scalar):
            pack_into("<" + value.form, out, start + offsets[index], value.value)
        else:
            later.append((start + offsets[index], value))
    todo += reversed(later)  # the last is written first
    return start


_ORDER = {table: {name: index for index, name in enumerate(names)} for table, names in s.FIELDS.items()}


def encode(envelope: Envelope, slots: Iterable[str] | None = None) -> bytes:
    """Write an envelope and its nested VJPs.

    Args:
        envelope: what to write; made by `read`, or changed with `_replace`.
        slots: the fields of `Exported` to write; those that were read, by default. Conversion chooses its own.

    Raises:
        ArtifactError: there are fields that this schema does not know: they cannot be moved without knowing what they
            are.
    """
    return build(_Encoder().exported(envelope, None if slots is None else frozenset(slots)))


def _text(value: str | None) -> Blob | None:
    return None if value is None else Blob(value)


def _texts(values: Iterable[str]) -> Vector:
    return Vector([Blob(value) for value in values])


def _number(names: tuple[str | None, ...], name: str | None, what: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise ArtifactError(f"a known {what}", repr(name), advice="Read it with a newer pytest-jaxexport.") from None


class _Encoder:
    """Makes the tables."""

    def table(self, table_kind: str, /, **fields: Scalar | Blob | Vector | Numbers | NewTable | None) -> NewTable:
        return NewTable(_ORDER[table_kind], **fields)

    def exported(self, e: Envelope, slots: frozenset[str] | None) -> NewTable:
        if e.unknown_fields:
            found = ", ".join(f"{field.table}[{field.index}]" for field in e.unknown_fields)
            raise ArtifactError("only fields of a known schema", found, advice="Read it with a newer pytest-jaxexport.")
        present = (frozenset(e.slots) if slots is None else slots) | {"vjp"}
        # dict.fromkeys removes duplicates and keeps the order, so that the same envelope gives the same bytes.
        shardings = (*e.in_shardings, *e.out_shardings)
        avals = list(dict.fromkeys((*e.in_avals, *e.out_avals)))
        numbered = {aval: number for number, aval in enumerate(avals)}
        named = list(dict.fromkeys(x for x in shardings if isinstance(x, NamedSharding)))
        meshes = list(dict.fromkeys(x.mesh for x in named)) if "unique_abstract_meshes" in present else []
        fields: dict[str, Scalar | Blob | Vector | Numbers | NewTable | None] = {
            "serialization_version": Scalar("H", e.serialization_version),
            "function_name": Blob(e.fun_name),
            "in_tree": self.tree(e.in_tree),
            "in_avals": Vector([self.aval(x) for x in e.in_avals]),
            "out_tree": self.tree(e.out_tree),
            "out_avals": Vector([self.aval(x) for x in e.out_avals]),
            "nr_devices_short": Scalar("h", min(e.nr_devices, 0x7FFF)),  # int16 on the wire
            "in_shardings": Vector([self.sharding(x, meshes) for x in e.in_shardings]),
            "out_shardings": Vector([self.sharding(x, meshes) for x in e.out_shardings]),
            "platforms": _texts(e.platforms),
            "ordered_effects": Vector([self.table("Effect", type_name=Blob(x)) for x in e.ordered_effects]),
            "unordered_effects": Vector([self.table("Effect", type_name=Blob(x)) for x in e.unordered_effects]),
            "disabled_checks": Vector([self.check(x) for x in e.disabled_checks]),
            "mlir_module_serialized": Blob(e.mlir_module_serialized, 16),
            "calling_convention_version": Scalar("H", e.calling_convention_version),
            "module_kept_var_idx": Numbers("H", e.module_kept_var_idx),
            "uses_global_constants": Scalar("B", int(e.uses_global_constants)),
            "vjp": None if e.vjp is None else self.exported(e.vjp, slots),
            "nr_devices": Scalar("I", e.nr_devices),
            "unique_avals": Vector([self.aval(x) for x in avals]),
            "unique_abstract_meshes": Vector([self.mesh(x) for x in meshes]),
            "unique_named_shardings": Vector([self.named_sharding(x, meshes) for x in named]),
            "in_avals_idxs": Numbers("I", tuple(numbered[x] for x in e.in_avals)),
            "out_avals_idxs": Numbers("I", tuple(numbered[x] for x in e.out_avals)),
            "in_shardings_idxs": Numbers("I", _numbers(named, e.in_shardings)),
            "out_shardings_idxs": Numbers("I", _numbers(named, e.out_shardings)),
            "jax_version": _text(e.jax_version),
        }
        return self.table("Exported", **{name: value for name, value in fields.items() if name in present})

    def tree(self, tree: Tree) -> NewTable:
        children = [self.tree(child) for child in tree.children]
        return self.table(
            "PyTreeDef",
            kind=Scalar("b", _number(s.TREE_KINDS, tree.kind, "kind of pytree")),
            children=Vector(children) if children else None,
            children_names=_texts(tree.names) if tree.kind == "dict" else None,
            custom_name=_text(tree.custom_name),
            custom_auxdata=None if tree.custom_auxdata is None else Blob(tree.custom_auxdata),
        )

    def aval(self, aval: Aval) -> NewTable:
        token = aval.dtype == "token"
        return self.table(
            "AbstractValue",
            kind=Scalar("b", 1) if token else None,
            shape=_texts(map(str, aval.shape)),
            dtype=None if token else Scalar("b", _number(s.DTYPES, aval.dtype, "dtype")),
            memory_space=Scalar("b", _number(s.MEMORY_SPACES, aval.memory_space, "memory space")),
        )

    def sharding(self, sharding: Sharding, meshes: list[AbstractMesh]) -> NewTable:
        if sharding is None:
            return self.table("Sharding")
        if isinstance(sharding, HloSharding):
            return self.table("Sharding", kind=Scalar("b", 1), hlo_sharding_proto=Blob(sharding.proto))
        proto = sharding.hlo_sharding_proto
        return self.table(
            "Sharding",
            kind=Scalar("b", 1) if proto is not None else None,  # what formats 6 to 8 write for older readers
            hlo_sharding_proto=None if proto is None else Blob(proto),
            named_sharding=self.named_sharding(sharding, meshes),
        )

    def named_sharding(self, sharding: NamedSharding, meshes: list[AbstractMesh]) -> NewTable:
        return self.table(
            "NamedSharding",
            mesh=self.mesh(sharding.mesh),
            spec=self.spec(sharding.spec),
            memory_kind=_text(sharding.memory_kind),
            abstract_mesh_idx=Scalar("I", meshes.index(sharding.mesh)) if meshes else None,
        )

    def mesh(self, mesh: AbstractMesh) -> NewTable:
        types = tuple(_number(s.AXIS_TYPES, name, "type of a mesh axis") for name in mesh.axis_types)
        return self.table(
            "AbstractMesh",
            axis_sizes=Numbers("I", mesh.axis_sizes),
            axis_names=_texts(mesh.axis_names),
            axis_types=Numbers("b", types),
            abstract_device=None if mesh.abstract_device is None else self.device(mesh.abstract_device),
        )

    def device(self, device: AbstractDevice) -> NewTable:
        cores = None if device.num_cores is None else Scalar("I", device.num_cores)
        kind = Blob(device.device_kind)
        return self.table("AbstractDevice", device_kind=kind, num_cores=cores, platform=_text(device.platform))

    def spec(self, spec: PartitionSpec) -> NewTable:
        axes = [() if p is None else (p,) if isinstance(p, str) else p for p in spec.partitions]
        partitions = Vector([self.table("PartitionSpecOneAxis", axes=_texts(names)) for names in axes])
        return self.table(
            "PartitionSpec", partitions=partitions, reduced=_texts(spec.reduced), unreduced=_texts(spec.unreduced)
        )

    def check(self, check: DisabledCheck) -> NewTable:
        kind = _number(s.CHECK_KINDS, check.kind, "safety check")
        return self.table("DisabledSafetyCheck", kind=Scalar("b", kind), custom_call_target=_text(check.target))


def _numbers(named: list[NamedSharding], shardings: tuple[Sharding, ...]) -> tuple[int, ...]:
    """Return the number of each sharding among the unique ones, counted from 1; 0 is unspecified."""
    numbers: dict[Sharding, int] = {sharding: number + 1 for number, sharding in enumerate(named)}
    return tuple(numbers.get(sharding, 0) for sharding in shardings)
