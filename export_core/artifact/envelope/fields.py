"""The typed fields of a serialized `jax.export.Exported`, named as jax names them."""

from __future__ import annotations

from typing import NamedTuple

Dim = int | str  # a symbolic dimension is its expression, as jax prints it


class Aval(NamedTuple):
    """The abstract value of one argument or result. `memory_space` is None in formats before 5."""

    dtype: str
    shape: tuple[Dim, ...]
    memory_space: str | None = None

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Tree(NamedTuple):
    """A pytree: `kind` is leaf, none, tuple, list, dict or custom; `names` are a dict's keys, one a child."""

    kind: str
    children: tuple[Tree, ...] = ()
    names: tuple[str, ...] = ()
    custom_name: str | None = None
    custom_auxdata: bytes | None = None

    def __str__(self) -> str:
        return f"PyTreeDef({self._inside()})"

    def _inside(self) -> str:
        inside = [child._inside() for child in self.children]
        if self.kind == "leaf":
            return "*"
        if self.kind == "none":
            return "None"
        if self.kind == "tuple":
            return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
        if self.kind == "list":
            return f"[{', '.join(inside)}]"
        if self.kind == "dict":
            return "{" + ", ".join(f"{name!r}: {text}" for name, text in zip(self.names, inside, strict=True)) + "}"
        return f"CustomNode({self.custom_name}, [{', '.join(inside)}])"

    @property
    def num_leaves(self) -> int:
        """Number of leaves below this node."""
        return 1 if self.kind == "leaf" else sum(child.num_leaves for child in self.children)


class AbstractDevice(NamedTuple):
    """The device a mesh was made for. Formats 8 and later; `platform` since 11."""

    device_kind: str
    num_cores: int | None = None
    platform: str | None = None


class AbstractMesh(NamedTuple):
    """A mesh without devices: sizes, names and types (Auto, Explicit, Manual) of its axes."""

    axis_sizes: tuple[int, ...]
    axis_names: tuple[str, ...]
    axis_types: tuple[str, ...] = ()
    abstract_device: AbstractDevice | None = None

    def __str__(self) -> str:
        return f"Mesh({', '.join(f'{n}={s}' for n, s in zip(self.axis_names, self.axis_sizes, strict=False))})"


class PartitionSpec(NamedTuple):
    """How the dimensions are split: None, an axis or several axes for each dimension."""

    partitions: tuple[str | tuple[str, ...] | None, ...] = ()
    reduced: tuple[str, ...] = ()
    unreduced: tuple[str, ...] = ()

    def __str__(self) -> str:
        sets = [f"{word}={{{', '.join(map(repr, axes))}}}" for word, axes in self._sets() if axes]
        return f"PartitionSpec({', '.join([*map(repr, self.partitions), *sets])})"

    def _sets(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("reduced", self.reduced), ("unreduced", self.unreduced)


class NamedSharding(NamedTuple):
    """A sharding by mesh axes. Formats 6 and later; 6 to 8 write XLA's protobuf beside it, for older readers."""

    mesh: AbstractMesh
    spec: PartitionSpec
    memory_kind: str | None = None
    hlo_sharding_proto: bytes | None = None

    def __str__(self) -> str:
        return f"NamedSharding({self.mesh}, {self.spec})"


class HloSharding(NamedTuple):
    """A sharding as XLA's OpSharding protobuf, not decoded further. Formats before 9; jax 0.12 refuses it."""

    proto: bytes

    def __str__(self) -> str:
        return f"HloSharding({len(self.proto)} bytes)"


Sharding = NamedSharding | HloSharding | None  # None: unspecified


class DisabledCheck(NamedTuple):
    """A safety check that the exporter switched off.

    `kind` is platform, custom_call (with its target) or shape_assertions.
    """

    kind: str
    target: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}({self.target})" if self.target is not None else self.kind


class UnknownField(NamedTuple):
    """A field, or a value of an enum, that no known schema has: reported, not interpreted.

    `index` is its place in the vtable (-1 for a value), `at` its byte in the file.
    """

    table: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nothing calls
    at: int


class ByteSpan:
    """Where the module is in the bytes that were read, so that nothing is copied before it is needed.

    Equal if the bytes are equal. Not a named tuple: a subclass with its own `__eq__` would keep the `!=` of tuples.
    """

    __slots__ = ("data", "length", "start")

    def __init__(self, data: bytes | bytearray, start: int, length: int):
        self.data = data
        self.start = start
        self.length = length

    def __repr__(self) -> str:
        return f"ByteSpan({self.length} bytes at {self.start})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByteSpan) and self.copy() == other.copy()

    def __hash__(self) -> int:
        return hash(self.copy())

    def copy(self) -> bytes:
        """Return a copy of the bytes."""
        return bytes(self.data[self.start : self.start + self.length])


class Envelope(NamedTuple):
    """The fields of a serialized `jax.export.Exported`.

    `serialization_version` is what the wire says, wrong before jax 0.11.1; `format_range` is the first and the last
    format that can have written the slots that are present. `nr_devices` is the newer 32-bit field, or the older short
    one where only that was written.
    """

    fun_name: str
    in_tree: Tree
    in_avals: tuple[Aval, ...]
    out_tree: Tree
    out_avals: tuple[Aval, ...]
    platforms: tuple[str, ...]
    nr_devices: int
    in_shardings: tuple[Sharding, ...]
    out_shardings: tuple[Sharding, ...]
    ordered_effects: tuple[str, ...]
    unordered_effects: tuple[str, ...]
    disabled_checks: tuple[DisabledCheck, ...]
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    vjp: Envelope | None
    jax_version: str | None
    serialization_version: int
    format_range: tuple[int, int]
    slots: tuple[str, ...]
    unknown_fields: tuple[UnknownField, ...]
    module_source: ByteSpan

    @property
    def format(self) -> int:
        """The oldest serialization format that has every field present."""
        return self.format_range[0]

    @property
    def mlir_module_serialized(self) -> bytes:
        """The StableHLO portable artifact. Each use makes a new copy."""
        return self.module_source.copy()

    @property
    def vjp_order(self) -> int:
        """How many nested derivatives are inside."""
        return 0 if self.vjp is None else 1 + self.vjp.vjp_order

    def shown(self) -> tuple[str, ...]:
        """Return the names of what `as_dict` gives: all but the module's bytes."""
        return ("format", *(name for name in self._fields if name != "module_source"))
