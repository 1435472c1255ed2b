"""A module: its tables are read at once, its operations only when something needs them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from export_core.artifact.bytecode.contents import ModuleContents
from export_core.artifact.bytecode.sections import Tables
from export_core.artifact.errors import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from export_core.artifact.bytecode.contents import Constant, CustomCall, Function
    from export_core.artifact.bytecode.values import Values


class Module:
    """A StableHLO portable artifact: MLIR bytecode with versioned operations (VHLO).

    Every property may raise `ArtifactError`: the operations are read when first asked for.
    """

    name: str
    """What messages call it: the file that it is in."""
    nbytes: int
    """Its size in bytes."""
    vjp_order: int
    """0 for the function itself, 1 for its first derivative."""

    def __init__(self, data: bytes | bytearray, start: int, length: int, name: str, vjp_order: int = 0):
        self.name = name
        self.nbytes = length
        self.vjp_order = vjp_order
        self._span = (data, start, length)

    @cached_property
    def tables(self) -> Tables:
        """Header and tables, for questions that need no walk."""
        data, start, length = self._span
        return guarded(lambda: Tables(data, start, length, self.name), self.name)

    def serialized(self) -> bytes:
        """Return a copy of the module's bytes."""
        data, start, length = self._span
        return bytes(data[start : start + length])

    @property
    def data(self) -> bytes | bytearray:
        """The bytes of the file that the module is in."""
        return self._span[0]

    @property
    def producer(self) -> str:
        """The producer's name in the header, e.g. StableHLO_v1.18.0: the version that it was written for."""
        return self.tables.producer

    @property
    def bytecode_version(self) -> int:
        """The version of MLIR's bytecode, 0 to 6."""
        return self.tables.version

    @property
    def stablehlo_version(self) -> str | None:
        """The StableHLO version that the producer's name gives, e.g. 1.18.0."""
        word, _, version = self.producer.partition("_v")
        return version if word == "StableHLO" and version else None

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of the dialects."""
        return tuple(self.tables.dialects)

    @property
    def op_names(self) -> tuple[str, ...]:
        """Names of all kinds of operations, e.g. vhlo.add_v1."""
        return tuple(self.tables.op_names)

    # A third of the time of reading (0.5 of 1.35 ms for 6.7 kB), which versions, dialects and names do not need.
    @cached_property
    def _contents(self) -> ModuleContents:
        return guarded(lambda: ModuleContents(self.tables, self.nbytes, self.vjp_order), self.name)

    @property
    def op_counts(self) -> dict[str, int]:
        """How many operations there are of each kind."""
        return {name: n for name, n in zip(self.tables.op_names, self._contents.counts, strict=True) if n}

    @property
    def num_operations(self) -> int:
        """How many operations there are."""
        return sum(self._contents.counts)

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions, in order."""
        return tuple(self._contents.functions)

    @property
    def main(self) -> Function | None:
        """The function that is called from outside, None if the module has none."""
        return next((function for function in self.functions if function.name == "main"), None)

    @property
    def custom_calls(self) -> tuple[CustomCall, ...]:
        """The custom calls, in order; equal ones are counted."""
        return self._contents.calls

    @property
    def attributes_of(self) -> dict[int, int]:
        """The dictionaries of attributes that operations have: the number of each, and of the name of one operation."""
        return self._contents.attributes_of

    @property
    def has_typed_ffi(self) -> bool:
        """Whether a custom call has StableHLO's typed arguments: a dictionary, or API version 4."""
        return self._contents.typed_ffi

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The different constants that take 256 bytes or more, in order."""
        return tuple(self._contents.constants)

    def constants_in_order(self) -> Iterator[Constant]:
        """Walk once more: the constant of every operation that has one, also short and repeated ones."""
        return self._contents.constants_in_order()

    @property
    def types(self) -> tuple[str, ...]:
        """All types in the module, as StableHLO prints them. May raise `ArtifactError`."""
        values = self._contents.values
        return tuple(values.type(index) for index in range(len(self.tables.types)))

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the module itself, e.g. jax.uses_shape_polymorphism. May raise `ArtifactError`."""
        return self._contents.attributes

    @property
    def meshes(self) -> tuple[dict[str, int], ...]:
        """The meshes that Shardy has in it: sizes of axes by name. May raise `ArtifactError`."""
        from export_core.artifact.bytecode.module import shardy_meshes  # of no use to `jaxexport inspect`

        return tuple(shardy_meshes(self._contents.values, self.attributes))


# Codes of attributes in the sdy dialect: an axis is a name and a size, a mesh a list of axes, then the order of its
# devices. Measured with the artifacts of jax 0.7.2 to 0.12.0.1.
_AXIS, _MESH = 1, 2
_AXIS_AS_TEXT = re.compile(r'"([^"\\]+)\\?"=(\d+)')
_MESH_AS_TEXT = re.compile(r"#sdy\.mesh<\[([^\]]*)\]")


def shardy_meshes(values: Values, attributes: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    """Sizes of the axes by name, of each mesh in a module with these attributes.

    Until jaxlib 0.6.2 a portable artifact could not have the sdy dialect: jax wrote its meshes as text, into an
    attribute of the module.
    """
    frontend = attributes.get("mhlo.frontend_attributes")
    text = str(frontend.get("xla.sdy.meshes", "")) if isinstance(frontend, dict) else ""
    for axes in _MESH_AS_TEXT.findall(text):
        yield {name: int(size) for name, size in _AXIS_AS_TEXT.findall(axes)}
    tables = values.tables
    for index in range(len(tables.attributes)) if "sdy" in tables.dialects else ():
        dialect, code, cursor = values.attribute_entry(index)
        if (dialect, code) == ("sdy", _MESH):
            count = cursor.count("axes")
            yield dict(_axis(values, cursor.index(len(tables.attributes), "attribute")) for _ in range(count))


def _axis(values: Values, index: int) -> tuple[str, int]:
    dialect, code, cursor = values.attribute_entry(index)
    if (dialect, code) != ("sdy", _AXIS):
        raise cursor.error("an axis of a mesh", f"{dialect} attribute {code}")
    name = values.tables.string(cursor.index(len(values.tables.string_ends), "string"), "the name of an axis")
    return name, cursor.signed("the size of an axis")
