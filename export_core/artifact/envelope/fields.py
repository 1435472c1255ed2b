"""The typed fields of a serialized `jax.export.Exported`, named as jax names them."""

from __future__ import annotations

from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple

Dim = int | str  # the size of a dimension, or the expression of a symbolic one as jax prints it


class Aval(NamedTuple):
    """The abstract value of one argument or result."""

    dtype: str  # The dtype, as jax prints it.
    shape: tuple[Dim, ...]  # A number for each dimension, or the expression of a symbolic one, as jax prints it.
    memory_space: str | None = None  # The memory that it is in; None in formats before 5.

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


LONGEST_PATH = 400  # letters: a damaged file may have one long name at every depth of a tree, and many leaves below it


class Tree(NamedTuple):
    """The structure of a pytree."""

    kind: str  # leaf, none, tuple, list, dict or custom.
    children: tuple[Tree, ...] = ()  # The trees directly below.
    names: tuple[str, ...] = ()  # The keys of a dict, in the order of children.
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
        """The number of leaves in this tree."""
        return 1 if self.kind == "leaf" else sum(child.num_leaves for child in self.children)

    def paths(self, root: str) -> list[str]:
        """Return the path of each leaf, such as ``root['loss']``, cut after `LONGEST_PATH` letters.

        Children without keys have numbers.
        """
        if self.kind == "leaf":
            return [root]
        keys = self.names if self.kind == "dict" else range(len(self.children))
        children = zip(keys, self.children, strict=True)
        return [path for key, child in children for path in child.paths(f"{root}[{key!r}]"[:LONGEST_PATH])]


class AbstractDevice(NamedTuple):
    """The device that a mesh was made for. Only format 8 and newer formats have it."""

    device_kind: str  # The kind of the device, as jax names it.
    num_cores: int | None = None  # The number of cores of the device; None if not stated.
    platform: str | None = None  # The platform of the device; None before format 11.


class AbstractMesh(NamedTuple):
    """A mesh without its devices."""

    axis_sizes: tuple[int, ...]  # The size of each axis.
    axis_names: tuple[str, ...]  # The name of each axis.
    axis_types: tuple[str, ...] = ()  # Auto, Explicit or Manual, for each axis.
    abstract_device: AbstractDevice | None = None  # The device that it was made for.

    def __str__(self) -> str:
        return f"Mesh({', '.join(f'{n}={s}' for n, s in zip(self.axis_names, self.axis_sizes, strict=False))})"


class PartitionSpec(NamedTuple):
    """The mesh axes that split each dimension of an array."""

    partitions: tuple[str | tuple[str, ...] | None, ...] = ()  # For each dimension, its axis or axes, or None.
    reduced: tuple[str, ...] = ()  # Axes over which the array is reduced.
    unreduced: tuple[str, ...] = ()  # Axes over which the array is not reduced yet.

    def __str__(self) -> str:
        named = (("reduced", self.reduced), ("unreduced", self.unreduced))
        sets = [f"{word}={{{', '.join(map(repr, axes))}}}" for word, axes in named if axes]
        return f"PartitionSpec({', '.join([*map(repr, self.partitions), *sets])})"


class NamedSharding(NamedTuple):
    """A sharding by mesh axes. Only format 6 and newer formats have it."""

    mesh: AbstractMesh  # The mesh.
    spec: PartitionSpec  # How the dimensions are split.
    memory_kind: str | None = None  # The kind of memory that holds the array; None if not specified.
    hlo_sharding_proto: bytes | None = None  # XLA's protobuf of this sharding, which formats 6 to 8 add.

    def __str__(self) -> str:
        return f"NamedSharding({self.mesh}, {self.spec})"


class HloSharding(NamedTuple):
    """A sharding as XLA's OpSharding protobuf. Only formats before 9 have it, and jax 0.12 refuses it."""

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
    """A field or an enum value that no known schema has. It is reported and not interpreted."""

    table: str  # The type of the table that has it; for a value, with the field and the value.
    index: int  # type: ignore[assignment]  # hides tuple.index, which nothing calls
    """The index of the field in the vtable, -1 for a value."""
    at: int  # The place in the file, in bytes: of the field, or of the table that has the value.


class ByteSpan:
    """The position of the module in the bytes of the file, so that the module is copied only if needed.

    Two spans are equal if their bytes are equal. This is not a named tuple, since a subclass with its own `__eq__`
    would inherit `!=` from tuples.
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
        """Return a copy of the bytes of the span."""
        return bytes(self.data[self.start : self.start + self.length])


if TYPE_CHECKING:
    from typing import TypeAlias

    _Derivative: TypeAlias = "Envelope | None"
else:  # a string would be compiled, and the first one takes 3 ms in a process that compiles nothing else
    _Derivative = object


class Envelope(NamedTuple):
    """The fields of a serialized `jax.export.Exported`, named as jax names them."""

    fun_name: str  # The name of the function.
    in_tree: Tree  # The pytree of the arguments.
    in_avals: tuple[Aval, ...]  # The types of the flat arguments.
    out_tree: Tree  # The pytree of the results.
    out_avals: tuple[Aval, ...]  # The types of the flat results.
    platforms: tuple[str, ...]  # The platforms that it was exported for.
    nr_devices: int
    """The number of devices: from the newer 32-bit field, or from the older 16-bit field if only that was written."""
    in_shardings: tuple[Sharding, ...]  # The sharding of each flat argument, None if it is not specified.
    out_shardings: tuple[Sharding, ...]  # The sharding of each flat result, None if it is not specified.
    ordered_effects: tuple[str, ...]  # The names of ordered effects.
    unordered_effects: tuple[str, ...]  # The names of unordered effects.
    disabled_checks: tuple[DisabledCheck, ...]  # Safety checks that the exporter switched off.
    calling_convention_version: int  # The version of the convention by which `main` is called.
    module_kept_var_idx: tuple[int, ...]  # The flat arguments that the module uses, by number.
    uses_global_constants: bool
    """Whether the module has symbolic dimensions or several platforms, and is refined before XLA compiles it."""
    vjp: _Derivative  # The envelope of the function's VJP; None if no VJP was serialized.
    jax_version: str | None  # The jax that wrote the envelope; None before format 12, which does not say.
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
        """The number of nested derivatives in the envelope."""
        return len(self.levels) - 1

    @property
    def levels(self) -> tuple[Envelope, ...]:
        """This envelope, then the envelopes of its nested derivatives: of the first, the second, and so on."""
        return (self,) if self.vjp is None else (self, *self.vjp.levels)

    @property
    def argument_paths(self) -> list[str]:
        """The path of each flat argument, such as ``args[0]['w']``."""
        trees = zip(("args", "kwargs"), self.in_tree.children, strict=False)  # a damaged file has any tree
        return [path for root, tree in trees for path in tree.paths(root)]

    @property
    def result_paths(self) -> list[str]:
        """The path of each flat result, such as ``result['loss']``."""
        return self.out_tree.paths("result")

    def shown(self) -> tuple[str, ...]:
        """Return the names of the fields that `as_dict` writes: all but the module's bytes."""
        return ("format", *(name for name in self._fields if name != "module_source"))
