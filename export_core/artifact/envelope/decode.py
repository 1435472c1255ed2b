"""The decoder of the envelope: from flatbuffer tables to typed fields, for formats 1 to 12 and later ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from export_core.artifact.envelope import fields as f
from export_core.artifact.envelope import schema as s
from export_core.artifact.envelope.flatbuffer_reader import MOST_SHARED, Buffer, Table
from export_core.artifact.errors import LIMIT, ArtifactError, guarded
from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeVar

    Made = TypeVar("Made")

MAX_DEPTH = 128  # nested pytree nodes, and nested VJPs
MAX_DIMENSION = 4096  # letters of a symbolic dimension
MAX_POWER = 1000  # the sum of the powers in one: jax multiplies each out, and needs a tenth of a second for these
DIMENSION = f"{LIMIT} jax itself would need unbounded time: export the function with a simpler dimension."
_POWER = r"\^ *([0-9]+)"
NEW = 12  # visits that making an object counts for: it takes far more memory than file


def decode(data: bytes | bytearray, name: str) -> f.Envelope:
    """Decode the envelope in the bytes of a file, with its nested VJPs; `name` is the file's name in messages.

    Raises `ArtifactError` if no jax.export can have written the bytes.
    """
    return guarded(lambda: _decode(data, name), name)


def begins_like_one(head: bytes | bytearray) -> bool:
    """Return whether a file's first kilobytes contain the root table of an Exported, which writers put at the start."""
    try:
        return _is_exported(Buffer(head, "").root())
    except ArtifactError:
        return False


def _is_exported(table: Table) -> bool:
    """Return whether a table has the fields that every Exported has, a module and a function name."""
    return s.MODULE in table and s.FUN_NAME in table


def _decode(data: bytes | bytearray, name: str) -> f.Envelope:
    tables = [Buffer(data, name).root()]
    while (table := tables[-1].table(s.VJP, "Exported")) is not None:
        if len(tables) == MAX_DEPTH:
            raise table.error(f"at most {MAX_DEPTH} nested VJPs", "more", advice=LIMIT)
        tables.append(table)
    for table in tables:
        if not _is_exported(table):
            raise table.error("a serialized jax.export.Exported", "a file that lacks a module or a function name")
    envelope: f.Envelope | None = None
    for table in reversed(tables):
        envelope = _Decoder(table).envelope(envelope)
    assert envelope is not None
    return envelope


class _Decoder:
    """The decoder of one Exported table. It also notes unknown fields, and the oldest format that has all fields."""

    def __init__(self, table: Table):
        self.table = table
        self.buffer = table.buffer
        self.unknown: list[f.UnknownField] = []
        self.oldest = 1
        self.seen: dict[type, dict[Hashable, Any]] = {f.Aval: {}, f.Tree: {}, f.HloSharding: {}, f.DisabledCheck: {}}

    def envelope(self, vjp: f.Envelope | None) -> f.Envelope:
        t = self.table
        self.look(t)
        meshes = [self.mesh(x) for x in t.tables(s.UNIQUE_MESHES, "AbstractMesh")]
        unique = [self.named_sharding(x, meshes) for x in t.tables(s.UNIQUE_SHARDINGS, "NamedSharding")]
        avals = [self.aval(x) for x in t.tables(s.UNIQUE_AVALS, "AbstractValue")]
        in_shardings = self.shardings(s.IN_SHARDINGS_IDXS, s.IN_SHARDINGS, unique, meshes)
        out_shardings = self.shardings(s.OUT_SHARDINGS_IDXS, s.OUT_SHARDINGS, unique, meshes)
        in_avals = self.avals(s.IN_AVALS_IDXS, s.IN_AVALS, avals)
        out_avals = self.avals(s.OUT_AVALS_IDXS, s.OUT_AVALS, avals)
        in_tree, out_tree = self.tree_at(s.IN_TREE), self.tree_at(s.OUT_TREE)
        start, length = self.buffer.span(t.at(s.MODULE), "mlir_module_serialized")
        version = t.number(s.VERSION, "H")
        jax_version = t.string(s.JAX_VERSION)
        return f.Envelope(
            fun_name=t.text(s.FUN_NAME, "the function's name"),
            in_tree=in_tree,
            in_avals=in_avals,
            out_tree=out_tree,
            out_avals=out_avals,
            platforms=t.strings(s.PLATFORMS),
            # Formats 5 and 6 write both until jax 0.9.1; those before have the 16-bit one alone, those after the other.
            nr_devices=t.number(s.NR_DEVICES, "I") or t.number(s.NR_DEVICES_SHORT, "h"),
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            ordered_effects=self.effects(s.ORDERED_EFFECTS),
            unordered_effects=self.effects(s.UNORDERED_EFFECTS),
            disabled_checks=tuple(self.check(x) for x in t.tables(s.DISABLED_CHECKS, "DisabledSafetyCheck")),
            calling_convention_version=t.number(s.CALLING_CONVENTION, "H"),
            module_kept_var_idx=t.numbers(s.KEPT_VARS, "H"),
            uses_global_constants=bool(t.number(s.GLOBAL_CONSTANTS, "B")),
            vjp=vjp,
            jax_version=jax_version,
            serialization_version=version,
            format_range=self.formats(version),
            slots=tuple(s.FIELDS["Exported"][i] for i in t.present() if i < len(s.FIELDS["Exported"])),
            unknown_fields=tuple(self.unknown),
            module_source=f.ByteSpan(self.buffer.data, start, length),
        )

    def formats(self, version: int) -> tuple[int, int]:
        """Return the oldest and the newest format that fit the version in the file and the fields that are present.

        The version in the file is the number of the format only from format 12 on.
        """
        t = self.table
        if version >= 12 or s.JAX_VERSION in t:
            return max(version, 12), max(version, 12)
        has_unique = s.UNIQUE_AVALS in t or s.UNIQUE_MESHES in t or s.IN_AVALS_IDXS in t
        first, last = (max(self.oldest, 10), 11) if has_unique else (self.oldest, 9)
        if s.NR_DEVICES in t:
            first = max(first, 5)
        elif s.NR_DEVICES_SHORT in t:
            last = min(last, 4)
        if s.NR_DEVICES_SHORT in t:
            last = min(last, 6)  # not written since 0.9.1, which writes 6
        if version in (1, 2):  # 1 until jax 0.4.23, 2 from 0.4.24 to 0.8.1, then a constant 3 until 0.11.0
            first, last = max(first, version), min(last, 1 if version == 1 else 4)
        elif version == 3:
            first = max(first, 5)
        return first, max(first, last)

    def look(self, table: Table) -> Table:
        """Return a table unchanged, and add its fields that the known schema lacks to `unknown`."""
        # New fields go to the end of a table, as flatbuffers demands: an index beyond the schema is a newer field.
        known = len(s.FIELDS[table.kind])
        if len(table.offsets) > known:
            more = [f.UnknownField(table.kind, i, table.at(i)) for i in table.present() if i >= known]
            self.buffer.spend(NEW * len(more), table.position)
            self.unknown += more
        return table

    def name_of(self, names: tuple[str | None, ...], value: int, what: str, table: Table) -> str:
        name = names[value] if 0 <= value < len(names) else None
        if name is None:
            self.buffer.spend(NEW, table.position)
            self.unknown.append(f.UnknownField(f"{table.kind}.{what}={value}", -1, table.position))
            return f"unknown({value})"
        return name

    def choose(self, index: int, among: Sequence[Made], what: str) -> Made:
        if index >= len(among):
            raise self.table.error(f"an index below {len(among)} in the list of {what}", str(index))
        return among[index]

    def shared(self, table: Table, kind: type[Made], key: Hashable, make: Callable[[], Made], cost: int = NEW) -> Made:
        """Return the object that was made from an equal table before; if there is none, make it by `make`.

        Args:
            table: the table that is decoded.
            kind: the type of the object.
            key: the content of the table, so that equal tables have equal keys.
            make: a function that makes the object.
            cost: the number of visits that making the object counts as.
        """
        seen = self.seen[kind]
        known: Made | None = seen.get(key)
        if known is None:
            self.buffer.spend(cost, table.position)
            known = make()
            if len(seen) < MOST_SHARED:
                seen[key] = known
        return known

    def avals(self, indices: int, full: int, unique: list[f.Aval]) -> tuple[f.Aval, ...]:
        # Since format 10 avals are written twice, in full for older readers too; a number is read faster than a table.
        if numbers := self.table.numbers(indices, "I"):
            return tuple(self.choose(i, unique, "unique avals") for i in numbers)
        return tuple(self.aval(x) for x in self.table.tables(full, "AbstractValue"))

    def aval(self, table: Table) -> f.Aval:
        self.look(table)
        shape = table.strings(1)
        kind, number, space = table.number(0, "b"), table.number(2, "b"), table.number(3, "b")

        def make() -> f.Aval:
            # 23 to 26 came in jax 0.4.36 to 0.5.3 without a new format, so that they say no more than 22 does.
            self.oldest = max(self.oldest, 5 if space else 4 if number >= 27 else 2 if number >= 22 else 1)
            if kind:  # 1 is a token; any other is from a newer schema, and `name_of` reports it
                dtype = "token" if kind == 1 else self.name_of((), kind, "kind", table)
            else:
                dtype = self.name_of(s.DTYPES, number, "dtype", table)
            memory = self.name_of(s.MEMORY_SPACES, space, "memory_space", table) if space else None
            return f.Aval(dtype, tuple(self.dim(text, table) for text in shape), memory)

        return self.shared(table, f.Aval, (kind, number, space, shape), make)

    def dim(self, text: str, table: Table) -> f.Dim:
        # No size has 20 digits (2**63 has 19), and int() refuses some thousands of digits with an error of its own.
        if text.isascii() and text.isdigit() and len(text) < 20:
            return int(text)
        if problem := _costly(text):
            raise table.error("a symbolic dimension that jax reads in a second", problem, advice=DIMENSION)
        return text

    def shardings(
        self, indices: int, full: int, unique: list[f.NamedSharding], meshes: list[f.AbstractMesh]
    ) -> tuple[f.Sharding, ...]:
        if numbers := self.table.numbers(indices, "I"):
            # Counted from 1, unlike the avals: 0 is unspecified.
            return tuple(None if i == 0 else self.choose(i - 1, unique, "unique shardings") for i in numbers)
        return tuple(self.sharding(x, meshes) for x in self.table.tables(full, "Sharding"))

    def sharding(self, table: Table, meshes: list[f.AbstractMesh]) -> f.Sharding:
        self.look(table)
        named = table.table(2, "NamedSharding")
        proto = table.blob(1)
        if named is not None:
            self.oldest = max(self.oldest, 6)  # formats 6 to 8 have both: the protobuf is for older readers
            sharding = self.named_sharding(named, meshes)
            return sharding if proto is None else sharding._replace(hlo_sharding_proto=proto)
        return None if proto is None else self.shared(table, f.HloSharding, proto, lambda: f.HloSharding(proto))

    def named_sharding(self, table: Table, meshes: list[f.AbstractMesh]) -> f.NamedSharding:
        self.look(table)
        if meshes:
            mesh = self.choose(table.number(3, "I"), meshes, "unique meshes")
        elif (own := table.table(0, "AbstractMesh")) is None:
            raise table.error("a mesh in a NamedSharding", "none")
        else:
            mesh = self.mesh(own)
        self.buffer.spend(NEW, table.position)
        spec = table.table(1, "PartitionSpec")
        return f.NamedSharding(mesh, f.PartitionSpec() if spec is None else self.spec(spec), table.string(2))

    def mesh(self, table: Table) -> f.AbstractMesh:
        self.look(table)
        device = table.table(3, "AbstractDevice")
        types = tuple(self.name_of(s.AXIS_TYPES, i, "axis_types", table) for i in table.numbers(2, "b"))
        made_for = None
        if device is not None:
            self.look(device)
            self.oldest = max(self.oldest, 11 if 2 in device else 8)
            cores = device.number(1, "I") if 1 in device else None  # 0 is a number of cores; only absence is None
            made_for = f.AbstractDevice(device.text(0, "the kind of an abstract device"), cores, device.string(2))
        return f.AbstractMesh(table.numbers(0, "I"), table.strings(1), types, made_for)

    def spec(self, table: Table) -> f.PartitionSpec:
        self.look(table)
        axes = (self.look(x).strings(0) for x in table.tables(0, "PartitionSpecOneAxis"))
        partitions = tuple(None if not names else names[0] if len(names) == 1 else names for names in axes)
        # Sets in jax, written in whatever order they had: sorted, so that equal specs are equal here.
        return f.PartitionSpec(partitions, tuple(sorted(table.strings(1))), tuple(sorted(table.strings(2))))

    def tree_at(self, index: int) -> f.Tree:
        if (table := self.table.table(index, "PyTreeDef")) is None:
            raise self.table.error(f"the pytree {s.FIELDS['Exported'][index]}", "none")
        return self.tree(table, 0)

    def tree(self, table: Table, depth: int) -> f.Tree:
        if depth > MAX_DEPTH:
            raise table.error(f"pytrees nested at most {MAX_DEPTH} deep", "deeper ones", advice=LIMIT)
        self.look(table)
        number = table.number(0, "b")
        # There are as many leaves as arguments: with nothing but a kind they are one object, and cost nothing more.
        if number == 0 and not any(table.offsets[1:]):
            return _LEAF
        kind = self.name_of(s.TREE_KINDS, number, "kind", table)
        names = table.strings(2)
        children = [self.tree(child, depth + 1) for child in table.tables(1, "PyTreeDef")]
        if kind == "leaf" and not children:
            return _LEAF
        if kind == "dict" and len(names) != len(children):
            raise table.error("a name for each child of a dict", f"{len(names)} names for {len(children)} children")
        self.oldest = max(self.oldest, 3 if kind == "custom" else 1)
        more = table.string(3), table.blob(4)
        if children or names:
            self.buffer.spend(NEW // 3, table.position)
            return f.Tree(kind, tuple(children), names, *more)
        return self.shared(table, f.Tree, (number, *more), lambda: f.Tree(kind, (), (), *more), NEW // 3)

    def effects(self, index: int) -> tuple[str, ...]:
        return tuple(self.look(x).text(0, "the type of an effect") for x in self.table.tables(index, "Effect"))

    def check(self, table: Table) -> f.DisabledCheck:
        self.look(table)
        kind, target = table.number(0, "b"), table.string(1)
        name = partial(self.name_of, s.CHECK_KINDS, kind, "kind", table)
        return self.shared(table, f.DisabledCheck, (kind, target), lambda: f.DisabledCheck(name(), target))


_LEAF = f.Tree("leaf")


def _costly(text: str) -> str:
    """Return why jax would take too long to read a symbolic dimension, such as "one of 5000 letters".

    The text is empty for any other dimension.
    """
    # https://github.com/jax-ml/jax/issues/38020
    if len(text) > MAX_DIMENSION:
        return f"one of {len(text)} letters"
    powers = sum(int(power[:6]) for power in re.findall(_POWER, text))
    return f"powers that add up to more than {MAX_POWER}" if powers > MAX_POWER else ""
