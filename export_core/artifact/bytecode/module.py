"""A StableHLO module: its tables are read at once, its operations by one walk, which is made only when needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cached_property, lru_cache

from export_core.artifact.bytecode.sections import Tables
from export_core.artifact.bytecode.values import Opaque, Values
from export_core.artifact.bytecode.walk import Operation, Uses, walk
from export_core.artifact.errors import LIMIT, guarded
from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any


# The properties of the operations that are decoded, in the order of the bytes. It is alphabetical in every file seen,
# which no document promises: `properties` checks their number, so that a new one is an error, not a wrong answer.
_CUSTOM_CALL = (
    *("api_version", "backend_config", "call_target_name", "called_computations", "has_side_effect"),
    *("operand_layouts", "output_operand_aliases", "result_layouts"),
)
PROPERTIES = {
    "vhlo.func_v1": ("arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"),
    "vhlo.constant_v1": ("value",),
    "vhlo.custom_call_v1": _CUSTOM_CALL,
    "vhlo.custom_call_v2": (*_CUSTOM_CALL, "result_tilings"),
    "vhlo.dot_general_v2": (
        "accumulation_type", "allow_imprecise_accumulation", "lhs_batching_dimensions", "lhs_component_count",
        "lhs_contracting_dimensions", "lhs_precision_type", "num_primitive_operations", "precision_config",
        "rhs_batching_dimensions", "rhs_component_count", "rhs_contracting_dimensions", "rhs_precision_type",
    ),
}  # fmt: skip
MIN_CONSTANT = 256  # bytes of a constant that is listed

WITH_BODY = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("all_reduce", "map", "reduce", "reduce_scatter", "reduce_window", "scatter", "select_and_scatter", "sort"),
    )
)
"""Operations that apply their body to elements: what the body does is part of what the operation is."""
_NOT_IN_NAMES = frozenset(("stablehlo.return", "stablehlo.constant"))  # Operations in a body that compute nothing.

# Codes of attributes in the sdy dialect: an axis is a name and a size, a mesh a list of axes, then the order of its
# devices. Measured with the artifacts of jax 0.7.2 to 0.12.0.1.
_AXIS, _MESH = 1, 2
# As text: `re` compiles each when it is first used, which few modules ask for.
_AXIS_AS_TEXT = r'"([^"\\]+)\\?"=(\d+)'
_MESH_AS_TEXT = r"#sdy\.mesh<\[([^\]]*)\]"


class CustomCall(NamedTuple):
    """A custom call: what XLA will run by name, outside StableHLO."""

    target: str  # The name that XLA looks up.
    api_version: int
    """StableHLO's number: 1 original, 2 status returning, 3 unified, 4 typed FFI. JAX's FFI calls say 1 too."""
    has_side_effect: bool  # Whether it has a side effect, so that it cannot be left out.
    backend_config: str | bytes | dict[str, Any]
    """The configuration of the call; of JAX's FFI calls, the arguments in `mhlo.backend_config`."""
    function: str  # The function that calls it.
    location: str  # The name that JAX gave the operation.
    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which nothing calls
    """The number of calls with the same configuration and the same location."""
    vjp_order: int = 0  # 0 for the function itself, 1 for its first derivative.

    @property
    def where(self) -> str:
        """The function and location, such as `@main at lu`."""
        place = f"@{self.function}" + (f" at {self.location}" if self.location else "")
        return place + (f" (VJP of order {self.vjp_order})" if self.vjp_order else "")


class Function:
    """A function of a module. Reading its types and attributes decodes them, which may raise `ArtifactError`."""

    __slots__ = ("_arguments", "_kind", "_results", "_values", "name", "visibility")

    def __init__(self, name: str, visibility: str, values: Values, kind: int, arguments: int, results: int):
        self.name = name  # The name of the function.
        self.visibility = visibility  # public, or private.
        # Numbers in the module's tables: of a function type, and of attributes, -1 if there are none.
        self._values = values
        self._kind = kind
        self._arguments = arguments
        self._results = results

    def __repr__(self) -> str:
        return f"Function({self.name!r}, {self.visibility!r})"

    def __str__(self) -> str:
        return f"@{self.name}({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The types of the function's arguments, as StableHLO prints them, such as tensor<4xf32>."""
        return self._values.function_type(self._kind)[0]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The types of the function's results, as StableHLO prints them, such as tensor<4xf32>."""
        return self._values.function_type(self._kind)[1]

    @property
    def arg_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each argument by name, such as jax.global_constant; empty if no argument has any."""
        return self._dictionaries(self._arguments)

    @property
    def result_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each result by name, such as jax.result_info; empty if no result has any."""
        return self._dictionaries(self._results)

    def _dictionaries(self, index: int) -> tuple[dict[str, Any], ...]:
        value = self._values.attribute(index) if index >= 0 else []
        return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()

    def shown(self) -> tuple[str, ...]:
        """Return the names of the fields that `as_dict` writes."""
        return "name", "visibility", "inputs", "outputs", "arg_attrs", "result_attrs"


class Constant(NamedTuple):
    """A constant of a module, without its content."""

    type: str  # The type of the constant.
    nbytes: int  # The number of bytes that its content takes in the file.
    at: int  # The place of the first byte of its content in the file.
    function: str  # The function that contains the constant.


@lru_cache(maxsize=1024)  # of the few hundred operations that there are
def without_version(name: str) -> str:
    """Return StableHLO's name for an operation of VHLO: ``stablehlo.sort`` for ``vhlo.sort_v1``.

    A name from a different dialect is returned unchanged.
    """
    dialect, _, operation = name.partition(".")
    stem, _, version = operation.rpartition("_v")
    return f"stablehlo.{stem}" if dialect == "vhlo" and stem and version.isdigit() else name


def no_uses(tables: Tables) -> Uses:
    """Return an empty `Uses`, for `walk` to fill with the different uses of operations in a module."""
    return Uses([*map(without_version, tables.op_names)], WITH_BODY, _NOT_IN_NAMES)


_Key = tuple[int, int]  # properties and attributes
_Place = tuple[int, int, int, int]  # and location and function


class Contents:
    """The functions, constants, custom calls and counts that one walk over the operations of a module gathers."""

    def __init__(self, tables: Tables, nbytes: int, vjp_order: int):
        self.tables = tables
        self.values = Values(tables)
        self.functions: list[Function] = []
        self.constants: list[Constant] = []
        self.own_attributes = -1  # of the module itself
        self.element_types: Mapping[str, Set[str]] | None = None  # once `element_types` was asked for them
        self.typed_ffi = False  # whether a custom call has a dictionary of arguments, or API version 4
        self.attributes_of: dict[int, int] = {}  # as `walk` fills it
        self._nbytes = nbytes
        self._room = 1024 + nbytes // 256  # no writer makes more than one in 256 bytes
        self._small: set[_Key] = set()
        self._seen: set[int] = set()
        self._facts: dict[_Key, tuple[str, int, bool, Any]] = {}
        self._counted: dict[_Place, int] = {}
        self._places: dict[_Key, _Place] = {}
        hooks = {"builtin.module": self._module, "vhlo.func_v1": self._function, "vhlo.constant_v1": self._constant}
        visit: dict[int, Callable[[Operation], None]] = {}
        for number, name in enumerate(tables.op_names):
            # A later version of custom_call is still a custom call, and must not be missed.
            if hook := self._custom_call if name.startswith("vhlo.custom_call_v") else hooks.get(name):
                visit[number] = hook
        self.uses = no_uses(tables)
        self.counts = walk(tables, visit, self.attributes_of, self.uses)
        self.calls = tuple(
            CustomCall(
                *self._facts[properties, attributes],
                function=self.functions[function].name if function >= 0 else "",
                location=self.values.location(location),
                count=count,
                vjp_order=vjp_order,
            )
            for (properties, attributes, location, function), count in self._counted.items()
        )

    def _limit(self, used: int, what: str, at: int) -> None:
        if used >= self._room:
            found = f"more in {self._nbytes} bytes"
            raise self.tables.error(f"at most {self._room} different {what}", found, at, advice=LIMIT)
        self.tables.spend(24, at)  # what decoding one takes, in operations

    def properties(self, op: Operation) -> dict[str, int]:
        """Return an operation's properties by name, each as the index of an attribute in the module's table.

        Before bytecode 5, properties were attributes.
        """
        name = self.tables.op_names[op.name]
        if op.properties < 0:
            return self.values.own_attributes(op.attributes)
        names = PROPERTIES.get(name, PROPERTIES["vhlo.custom_call_v2"])
        numbers = self.tables.properties(op.properties, len(names))
        if name in PROPERTIES and len(numbers) != len(names):
            raise self.tables.error(f"{len(names)} properties of {name}", str(len(numbers)), op.at)
        if op.attributes < 0:
            return dict(zip(names, numbers, strict=False))
        # In MLIR an attribute of the dictionary overrides the property of its name (jaxlib 0.6.2 to 0.12.0.1).
        overriding = self.values.own_attributes(op.attributes)
        return {key: overriding.get(key, number) for key, number in zip(names, numbers, strict=False)}

    def _value(self, named: dict[str, int], name: str, op: Operation) -> Any:
        if name not in named:
            raise self.tables.error(f"{name} of {self.tables.op_names[op.name]}", "none", op.at)
        return self.values.attribute(named[name])

    def _optional(self, named: dict[str, int], name: str, missing: Any) -> Any:
        return self.values.attribute(named[name]) if name in named else missing

    def _module(self, op: Operation) -> None:
        if op.depth == 0:  # modules can be nested, and only the outermost has what JAX sets
            self.own_attributes = op.attributes

    def _function(self, op: Operation) -> None:
        self._limit(len(self.functions), "functions", op.at)
        named = self.properties(op)
        if "function_type" not in named:
            raise self.tables.error("the type of a function", "none", op.at)
        dialect, code, cursor = self.values.attribute_entry(named["function_type"])
        if (dialect, code) not in (("vhlo", 17), ("builtin", 6)):
            raise cursor.error("the type of a function", f"{dialect} attribute {code}")
        function_type = cursor.index(len(self.tables.types), "type")
        name = str(self._value(named, "sym_name", op))
        visibility = str(self._optional(named, "sym_visibility", ""))
        own = named.get("arg_attrs", -1), named.get("res_attrs", -1)
        self.functions.append(Function(name, visibility or "public", self.values, function_type, *own))

    def _constant(self, op: Operation) -> None:
        # Equal constants have the same numbers, and are decoded once. Like all memory here, this has a bound.
        key = (op.properties, op.attributes)
        if key in self._small:
            return
        if len(self._small) < self._room:
            self._small.add(key)
        value = self.value_of_constant(op)
        _, start, end, _ = self.tables.attributes.entry(value)
        if end - start >= MIN_CONSTANT and value not in self._seen:
            self._seen.add(value)
            if constant := self.decoded_constant(value):
                self.constants.append(constant)

    def value_of_constant(self, op: Operation) -> int:
        """Return the index, in the module's table, of the attribute that holds the value of a constant operation."""
        named = self.properties(op)
        if "value" not in named:
            raise self.tables.error("the value of a constant", "none", op.at)
        return named["value"]

    def decoded_constant(self, value: int) -> Constant | None:
        """Return attribute `value` as a constant of the function that was read last; None if it is not a tensor."""
        dialect, code, cursor = self.values.attribute_entry(value)
        if (dialect, code) != ("vhlo", 15):
            return None
        kind = self.values.type(cursor.index(len(self.tables.types), "type"))
        blob = cursor.take(cursor.varint("the length of a constant"), "a constant")
        return Constant(kind, blob.end - blob.at, blob.at, self.functions[-1].name if self.functions else "")

    def _custom_call(self, op: Operation) -> None:
        # Equal calls share their properties and attributes in the file, so two numbers stand for all that is decoded.
        key = (op.properties, op.attributes)
        place = (*key, op.location, len(self.functions) - 1)
        if place in self._counted:
            self._counted[place] += 1
            return
        if key not in self._facts:
            self._limit(len(self._facts), "custom calls", op.at)
            self._facts[key] = self._facts_of(op)
        if len(self._counted) < self._room or key not in self._places:
            self._counted[place] = 1
            self._places[key] = place
        else:  # too many to tell apart: count it where the same call was met before
            self._counted[self._places[key]] += 1

    def _facts_of(self, op: Operation) -> tuple[str, int, bool, Any]:
        named = self.properties(op)
        target = self._value(named, "call_target_name", op)
        if not isinstance(target, str) or isinstance(target, Opaque):
            raise self.tables.error("the target of a custom call as UTF-8 text", repr(target), op.at)
        version, config = self._optional(named, "api_version", 1), self._optional(named, "backend_config", "")
        effect = bool(self._optional(named, "has_side_effect", False))
        # Both need StableHLO 1.3, although the operation is called custom_call_v1 before and after.
        self.typed_ffi = self.typed_ffi or version == 4 or isinstance(config, dict)
        # JAX's FFI calls say API version 1 and leave backend_config empty: their arguments are in an attribute of MHLO,
        # which before bytecode 5 is in `named` already.
        if not config:
            named = self.values.own_attributes(op.attributes) if op.properties >= 0 else named
            config = self._optional(named, "mhlo.backend_config", config)
        return target, version if isinstance(version, int) else 1, effect, config


class Module:
    """A StableHLO portable artifact, which is VHLO as MLIR bytecode.

    Its properties are decoded when they are read, which may raise `ArtifactError`.
    """

    def __init__(self, data: bytes | bytearray, start: int, length: int, name: str, vjp_order: int = 0):
        self.name = name  # The name of the module in messages, such as the file that it is in.
        self.data = data  # The bytes of the whole file that contains the module.
        self._start = start
        self.nbytes = length  # The size of the module in bytes.
        self.vjp_order = vjp_order  # 0 for the function itself, 1 for its first derivative.

    @cached_property
    def tables(self) -> Tables:
        """The header and the tables of the module, which are read without a walk over its operations."""
        return guarded(lambda: Tables(self.data, self._start, self.nbytes, self.name), self.name)

    # A third of the time of reading (0.5 of 1.35 ms for 6.7 kB), which versions, dialects and names do not need.
    @cached_property
    def contents(self) -> Contents:
        """The facts that a walk over all operations of the module gathers. The module is walked once."""
        return guarded(lambda: Contents(self.tables, self.nbytes, self.vjp_order), self.name)

    def serialized(self) -> bytes:
        """Return a copy of the module's bytes."""
        return bytes(self.data[self._start : self._start + self.nbytes])

    @property
    def producer(self) -> str:
        """The producer in the header, e.g. StableHLO_v1.18.0: it names the version that the module was written for."""
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
        """The names of the dialects that the module uses, e.g. vhlo."""
        return tuple(self.tables.dialects)

    @property
    def op_names(self) -> tuple[str, ...]:
        """The names of all kinds of operations in the module, e.g. vhlo.add_v1."""
        return tuple(self.tables.op_names)

    @property
    def op_counts(self) -> dict[str, int]:
        """The number of operations of each kind, by name, such as vhlo.add_v1."""
        return {name: n for name, n in zip(self.tables.op_names, self.contents.counts, strict=True) if n}

    @property
    def num_operations(self) -> int:
        """The number of operations in the module."""
        return sum(self.contents.counts)

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions of the module, in the order of the bytecode."""
        return tuple(self.contents.functions)

    @property
    def main(self) -> Function | None:
        """The function named main, which is called from outside; None if the module has none."""
        return next((function for function in self.functions if function.name == "main"), None)

    @property
    def custom_calls(self) -> tuple[CustomCall, ...]:
        """The custom calls in the order of the bytecode; equal calls at the same location are counted in one entry."""
        return self.contents.calls

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The different constants whose content takes 256 bytes or more, in the order of the bytecode."""
        return tuple(self.contents.constants)

    def constants_in_order(self) -> Iterator[Constant]:
        """Yield the constant of every constant operation, in order. Reads the module again."""
        contents = self.contents
        values = self._of_each("vhlo.constant_v1", contents.value_of_constant)
        decoded = {value: contents.decoded_constant(value) for value in set(values)}
        return (constant for value in values if (constant := decoded[value]))

    @property
    def has_dot_algorithms(self) -> bool:
        """Whether a dot_general names its algorithm, as with `jax.lax.DotAlgorithmPreset`. Reads the module again."""
        contents = self.contents
        types = self._of_each("vhlo.dot_general_v2", lambda op: contents.properties(op)["accumulation_type"])
        return any(contents.values.attribute(number) != "none" for number in {*types})

    def _of_each(self, name: str, value: Callable[[Operation], int]) -> list[int]:
        """Return the results of `value` for all operations named `name`, in order. Walks over the module again."""
        tables = self.tables
        values: list[int] = []
        tables.left = tables.most  # a walk of its own, with the same limit
        numbers = (number for number, other in enumerate(tables.op_names) if other == name)
        walk(tables, dict.fromkeys(numbers, lambda op: values.append(value(op))), {}, no_uses(tables))
        return values

    @property
    def types(self) -> tuple[str, ...]:
        """All types in the module, as StableHLO prints them. May raise `ArtifactError`."""
        return tuple(map(self.contents.values.type, range(len(self.tables.types))))

    @property
    def types_of_values(self) -> list[str]:
        """The types in `types`, without the types of functions. May raise `ArtifactError`."""
        return self.contents.values.types_of_values()

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the module itself, e.g. jax.uses_shape_polymorphism. May raise `ArtifactError`."""
        values = self.contents.values
        own = values.own_attributes(self.contents.own_attributes)
        return {name: values.attribute(number) for name, number in own.items()}

    @property
    def meshes(self) -> tuple[dict[str, int], ...]:
        """Shardy's meshes in the module, each as the sizes of its axes by name. May raise `ArtifactError`."""
        # Until jaxlib 0.6.2 a portable artifact could not have the sdy dialect: jax wrote its meshes as text, into an
        # attribute of the module.
        frontend = self.attributes.get("mhlo.frontend_attributes")
        text = str(frontend.get("xla.sdy.meshes", "")) if isinstance(frontend, dict) else ""
        found = re.findall(_MESH_AS_TEXT, text) if text else []
        meshes = [{name: int(size) for name, size in re.findall(_AXIS_AS_TEXT, axes)} for axes in found]
        tables, values = self.tables, self.contents.values
        for index in range(len(tables.attributes)) if "sdy" in tables.dialects else ():
            dialect, code, cursor = values.attribute_entry(index)
            if (dialect, code) != ("sdy", _MESH):
                continue
            mesh = {}
            for _ in range(cursor.count("axes")):
                dialect, code, axis = values.attribute_entry(cursor.index(len(tables.attributes), "attribute"))
                if (dialect, code) != ("sdy", _AXIS):
                    raise axis.error("an axis of a mesh", f"{dialect} attribute {code}")
                name = tables.string(axis.index(len(tables.string_ends), "string"), "the name of an axis")
                mesh[name] = axis.signed("the size of an axis")
            meshes.append(mesh)
        return tuple(meshes)
