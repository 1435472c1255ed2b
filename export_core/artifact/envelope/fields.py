"""The typed fields of a serialized `jax.export.Exported`, named as jax names them."""

from typing import NamedTuple

Dim = int | str  # a symbolic dimension is its expression, as jax prints it


class Aval(NamedTuple):
    """The abstract value of one argument or result."""

    dtype: str  # The dtype, as jax prints it.
    shape: tuple[Dim, ...]  # A number for each dimension, or the expression of a symbolic one, as jax prints it.
    memory_space: str | None = None  # The memory that it is in; None in formats before 5.

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


LONGEST_PATH = 400  # letters: a damaged file may have one long name at every depth of a tree, and many leaves below it


class Tree(NamedTuple):
    """A pytree."""

    kind: str  # leaf, none, tuple, list, dict or custom.
    children: "tuple[Tree, ...]" = ()  # The trees below.
    names: tuple[str, ...] = ()  # A dict's keys, one for each child.
    custom_name: str | None = None  # The name under which a custom node was registered.
    custom_auxdata: bytes | None = None  # The bytes that the node serialized beside its children.

    def __str__(self) -> str:
        return f"PyTreeDef({self._inside()})"

    def _inside(self) -> str:
        children = [child._inside() for child in self.children]
        inside = ", ".join(children)
        match self.kind:
            case "leaf" | "none":
                return "*" if self.kind == "leaf" else "None"
            case "tuple":
                return f"({inside}{',' if len(children) == 1 else ''})"
            case "list":
                return f"[{inside}]"
            case "dict":
                return f"{{{', '.join(f'{name!r}: {text}' for name, text in zip(self.names, children, strict=True))}}}"
        return f"CustomNode({self.custom_name}, [{inside}])"

    @property
    def num_leaves(self) -> int:
        """Number of leaves below this node."""
        return 1 if self.kind == "leaf" else sum(child.num_leaves for child in self.children)

    def paths(self, root: str) -> list[str]:
        """Return the path of each leaf, such as ``root['loss']``; the children of a custom node have numbers.

        Cut after `LONGEST_PATH` letters.
        """
        if self.kind == "leaf":
            return [root]
        keys = self.names if self.kind == "dict" else range(len(self.children))
        children = zip(keys, self.children, strict=True)
        return [path for key, child in children for path in child.paths(f"{root}[{key!r}]"[:LONGEST_PATH])]


class AbstractDevice(NamedTuple):
    """The device that a mesh was made for. Formats 8 and later."""

    device_kind: str  # Its kind.
    num_cores: int | None = None  # Its cores.
    platform: str | None = None  # Its platform; None before format 11.


class AbstractMesh(NamedTuple):
    """A mesh without devices."""

    axis_sizes: tuple[int, ...]  # The size of each axis.
    axis_names: tuple[str, ...]  # The name of each axis.
    axis_types: tuple[str, ...] = ()  # Auto, Explicit or Manual, for each axis.
    abstract_device: AbstractDevice | None = None  # The device that it was made for.

    def __str__(self) -> str:
        return f"Mesh({', '.join(f'{n}={s}' for n, s in zip(self.axis_names, self.axis_sizes, strict=False))})"


class PartitionSpec(NamedTuple):
    """How the dimensions of an array are split."""

    partitions: tuple[str | tuple[str, ...] | None, ...] = ()  # For each dimension None, an axis or several axes.
    reduced: tuple[str, ...] = ()  # Axes over which it is reduced.
    unreduced: tuple[str, ...] = ()  # Axes over which it is not reduced yet.

    def __str__(self) -> str:
        named = (("reduced", self.reduced), ("unreduced", self.unreduced))
        sets = [f"{word}={{{', '.join(map(repr, axes))}}}" for word, axes in named if axes]
        return f"PartitionSpec({', '.join([*map(repr, self.partitions), *sets])})"


class NamedSharding(NamedTuple):
    """A sharding by mesh axes. Formats 6 and later."""

    mesh: AbstractMesh  # The mesh.
    spec: PartitionSpec  # How the dimensions are split.
    memory_kind: str | None = None  # The memory.
    hlo_sharding_proto: bytes | None = None  # XLA's protobuf of the same, which formats 6 to 8 write for older readers.

    def __str__(self) -> str:
        return f"NamedSharding({self.mesh}, {self.spec})"


class HloSharding(NamedTuple):
    """A sharding as XLA's OpSharding protobuf. Formats before 9; jax 0.12 refuses it."""

    proto: bytes  # The protobuf, not decoded further.

    def __str__(self) -> str:
        return f"HloSharding({len(self.proto)} bytes)"


Sharding = NamedSharding | HloSharding | None  # None: unspecified


class DisabledCheck(NamedTuple):
    """A safety check that the exporter switched off."""

    kind: str  # platform, custom_call or shape_assertions.
    target: str | None = None  # The target of a custom_call.

    def __str__(self) -> str:
        return f"{self.kind}({self.target})" if self.target is not None else self.kind


class UnknownField(NamedTuple):
    """A field, or a value of an enum, that no known schema has: reported, not interpreted."""

    table: str  # The table that it is in.
    index: int  # type: ignore[assignment]  # hides tuple.index, which nothing calls
    """Its place in the vtable, -1 for a value."""
    at: int  # Its byte in the file.


class ByteSpan:
    """The place of the module in the bytes that were read, so that nothing is copied before it is needed.

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
    """The fields of a serialized `jax.export.Exported`, named as jax names them."""

    fun_name: str  # The name of the function.
    in_tree: Tree  # The tree of the arguments.
    in_avals: tuple[Aval, ...]  # The types of the flat arguments.
    out_tree: Tree  # The tree of the results.
    out_avals: tuple[Aval, ...]  # The types of the flat results.
    platforms: tuple[str, ...]  # The platforms that it was exported for.
    nr_devices: int
    """The number of devices: the newer 32-bit field, or the older short one where only that was written."""
    in_shardings: tuple[Sharding, ...]  # The sharding of each flat argument, None where it is not specified.
    out_shardings: tuple[Sharding, ...]  # The sharding of each flat result, None where it is not specified.
    ordered_effects: tuple[str, ...]  # The names of ordered effects.
    unordered_effects: tuple[str, ...]  # The names of unordered effects.
    disabled_checks: tuple[DisabledCheck, ...]  # Safety checks that the exporter switched off.
    calling_convention_version: int  # How `main` is called.
    module_kept_var_idx: tuple[int, ...]  # The flat arguments that the module uses, by number.
    uses_global_constants: bool
    """Whether it has symbolic dimensions or several platforms, so that it is refined before XLA compiles it."""
    vjp: "Envelope | None"  # The envelope of its derivative.
    jax_version: str | None  # The jax that wrote it; None where it does not say.
    serialization_version: int  # The version that the file states, which is wrong before jax 0.11.1.
    format_range: tuple[int, int]  # The first and the last format that can have written the slots that are present.
    slots: tuple[str, ...]  # The names of the fields that are present.
    unknown_fields: tuple[UnknownField, ...]  # Fields that no known schema has.
    module_source: ByteSpan  # Where the module is in the file.

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
        return len(self.levels) - 1

    @property
    def levels(self) -> "tuple[Envelope, ...]":
        """This envelope and those of its nested derivatives, by order."""
        return (self,) if self.vjp is None else (self, *self.vjp.levels)

    def shown(self) -> tuple[str, ...]:
        """Return the names of the fields that `as_dict` writes: all but the module's bytes."""
        return ("format", *(name for name in self._fields if name != "module_source"))
