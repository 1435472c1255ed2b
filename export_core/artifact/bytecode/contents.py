"""What the walk over a module's operations gathers: functions, custom calls, constants, the module's attributes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from export_core.artifact.bytecode.values import Opaque, Values
from export_core.artifact.bytecode.walk import Operation, walk
from export_core.artifact.errors import LIMIT, ArtifactError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from export_core.artifact.bytecode.sections import Tables


class CustomCall(NamedTuple):
    """A custom call: what XLA will run by name, outside StableHLO."""

    target: str
    """The name that XLA looks up."""
    api_version: int
    """StableHLO's number: 1 original, 2 status returning, 3 unified, 4 typed FFI. JAX's FFI calls say 1 too."""
    has_side_effect: bool
    """Whether it may not be left out."""
    backend_config: str | bytes | dict[str, Any]
    """Its configuration; of JAX's FFI calls, the arguments in `mhlo.backend_config`."""
    function: str
    """The function that calls it."""
    location: str
    """The name that JAX gave the operation."""
    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which nothing calls
    """The number of calls with the same configuration and the same location."""
    vjp_order: int = 0
    """0 for the function itself, 1 for its first derivative."""

    @property
    def where(self) -> str:
        """The function and the location, for people."""
        place = f"@{self.function}" + (f" at {self.location}" if self.location else "")
        return place if not self.vjp_order else f"{place} (VJP of order {self.vjp_order})"


class Function:
    """A function of the module. Its types and attributes are decoded when asked: each may raise `ArtifactError`."""

    __slots__ = ("_arguments", "_kind", "_results", "_values", "name", "visibility")

    name: str
    """Its name."""
    visibility: str
    """public, or private."""

    def __init__(self, name: str, visibility: str, values: Values, kind: int, arguments: int, results: int):
        self.name = name
        self.visibility = visibility
        # Numbers in the module's tables: of a function type, and of attributes, -1 where there are none.
        self._values = values
        self._kind = kind
        self._arguments = arguments
        self._results = results

    def __repr__(self) -> str:
        return f"Function({self.name!r}, {self.visibility!r})"

    def __eq__(self, other: object) -> bool:
        names = self.shown()
        return isinstance(other, Function) and all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((self.name, self.visibility))  # decoding the rest for a hash would cost what this class saves

    @property
    def inputs(self) -> tuple[str, ...]:
        """The types of its arguments."""
        return self._values.function_type(self._kind)[0]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The types of its results."""
        return self._values.function_type(self._kind)[1]

    @property
    def arg_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each argument."""
        return self._dictionaries(self._arguments)

    @property
    def result_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each result."""
        return self._dictionaries(self._results)

    def _dictionaries(self, index: int) -> tuple[dict[str, Any], ...]:
        value = self._values.attribute(index) if index >= 0 else []
        return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()

    def shown(self) -> tuple[str, ...]:
        """Return the names of what `as_dict` gives."""
        return "name", "visibility", "inputs", "outputs", "arg_attrs", "result_attrs"

    def __str__(self) -> str:
        return f"@{self.name}({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})"


class Constant(NamedTuple):
    """A constant. Its content is not copied."""

    type: str
    """Its type."""
    nbytes: int
    """The bytes that it takes in the file."""
    at: int
    """Its first byte in the file."""
    function: str
    """The function that it is in."""


# The properties of the operations that are decoded, in the order of the bytes. It is alphabetical in every file seen,
# which no document promises: `properties` checks their number, so that a new one is an error, not a wrong answer.
PROPERTIES = {
    "vhlo.func_v1": ("arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"),
    "vhlo.constant_v1": ("value",),
    "vhlo.call_v1": ("callee",),
    "vhlo.custom_call_v1": (
        "api_version", "backend_config", "call_target_name", "called_computations", "has_side_effect",
        "operand_layouts",
        "output_operand_aliases", "result_layouts",
    ),
    "vhlo.custom_call_v2": (
        "api_version", "backend_config", "call_target_name", "called_computations", "has_side_effect",
        "operand_layouts",
        "output_operand_aliases", "result_layouts", "result_tilings",
    ),
}  # fmt: skip


_Key = tuple[int, int]  # properties and attributes
_Place = tuple[int, int, int, int]  # and location and function
MIN_CONSTANT = 256  # bytes of a constant that is listed


class ModuleContents:
    """One walk over a module, and what it gathers."""

    def __init__(self, tables: Tables, nbytes: int, vjp_order: int):
        self.tables = tables
        self.nbytes = nbytes
        self.name = tables.name
        self.vjp_order = vjp_order
        self.values = Values(self.tables)
        self.functions: list[Function] = []
        self.constants: list[Constant] = []
        self.seen: set[int] = set()
        self.small: set[_Key] = set()
        self.own_attributes = -1
        self.facts: dict[_Key, tuple[str, int, bool, Any]] = {}
        self.callees: dict[_Key, str] = {}
        self.counted: dict[_Place, int] = {}
        self.room = 1024 + nbytes // 256  # more than one in 256 bytes is not what a writer makes
        self.places: dict[_Key, _Place] = {}
        self.current = ""
        self.typed_ffi = False
        hooks = {
            "vhlo.func_v1": self._function,
            "vhlo.custom_call_v1": self._custom_call,
            "vhlo.custom_call_v2": self._custom_call,
            "vhlo.constant_v1": self._constant,
            "builtin.module": self._module,
        }
        names = self.tables.op_names
        for name in names:  # a later version of custom_call is still a custom call, and must not be missed
            if name.startswith("vhlo.custom_call_v") and name not in hooks:
                hooks[name] = self._custom_call
        self.attributes_of: dict[int, int] = {}
        self.counts = walk(self.tables, {i: hooks[n] for i, n in enumerate(names) if n in hooks}, self.attributes_of)
        self.calls = tuple(self._call(place, count) for place, count in self.counted.items())

    def _limit(self, used: int, what: str, at: int) -> None:
        if used >= self.room:
            found = f"more in {self.nbytes} bytes"
            raise ArtifactError(f"at most {self.room} different {what}", found, at, name=self.name, advice=LIMIT)
        self.tables.spend(24, at)  # what decoding one takes, in operations

    def properties(self, op: Operation) -> dict[str, int]:
        """Return the number of the attribute of each property, by name.

        Bytecode before version 5 has no properties: there they are attributes.
        """
        name = self.tables.op_names[op.name]
        if op.properties < 0:
            return self.values.own_attributes(op.attributes)
        names = PROPERTIES.get(name, PROPERTIES["vhlo.custom_call_v2"] if "custom_call" in name else ())
        numbers = self.tables.properties(op.properties, len(names))
        if name in PROPERTIES and len(numbers) != len(names):
            raise ArtifactError(f"{len(names)} properties of {name}", str(len(numbers)), op.at, name=self.name)
        if op.attributes < 0:
            return dict(zip(names, numbers, strict=False))
        # In MLIR an attribute of the dictionary overrides the property of its name (jaxlib 0.6.2 to 0.12.0.1).
        overriding = self.values.own_attributes(op.attributes)
        return {key: overriding.get(key, number) for key, number in zip(names, numbers, strict=False)}

    def _value(self, named: dict[str, int], name: str, op: Operation) -> Any:
        if name not in named:
            what = f"{name} of {self.tables.op_names[op.name]}"
            raise ArtifactError(what, "none", op.at, name=self.name)
        return self.values.attribute(named[name])

    def _module(self, op: Operation) -> None:
        if op.depth == 0:  # modules can be nested, and only the outermost has what JAX sets
            self.own_attributes = op.attributes

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the module itself, decoded when asked. May raise `ArtifactError`."""
        own = self.values.own_attributes(self.own_attributes)
        return {name: self.values.attribute(number) for name, number in own.items()}

    def _function(self, op: Operation) -> None:
        self._limit(len(self.functions), "functions", op.at)
        named = self.properties(op)
        kind = named.get("function_type")
        if kind is None:
            raise ArtifactError("the type of a function", "none", op.at, name=self.name)
        dialect, code, cursor = self.values.attribute_entry(kind)
        if (dialect, code) not in (("vhlo", 17), ("builtin", 6)):
            raise cursor.error("the type of a function", f"{dialect} attribute {code}")
        function_type = cursor.index(len(self.tables.types), "type")
        self.current = str(self._value(named, "sym_name", op))
        visibility = str(self._value(named, "sym_visibility", op)) if "sym_visibility" in named else ""
        own = named.get("arg_attrs", -1), named.get("res_attrs", -1)
        self.functions.append(Function(self.current, visibility or "public", self.values, function_type, *own))

    def _constant(self, op: Operation) -> None:
        # Equal constants have the same numbers, and are decoded once. Like all memory here, this has a bound.
        key = (op.properties, op.attributes)
        if key in self.small:
            return
        if len(self.small) < self.room:
            self.small.add(key)
        value = self._value_of_constant(op)
        entry = self.tables.attributes.entry(value)
        if entry.end - entry.start < MIN_CONSTANT or value in self.seen:
            return
        self.seen.add(value)
        if constant := self._decode_constant(value):
            self.constants.append(constant)

    def _value_of_constant(self, op: Operation) -> int:
        """Return the number of the attribute that a constant is."""
        named = self.properties(op)
        if "value" not in named:
            raise ArtifactError("the value of a constant", "none", op.at, name=self.name)
        return named["value"]

    def _decode_constant(self, value: int) -> Constant | None:
        dialect, code, cursor = self.values.attribute_entry(value)
        if (dialect, code) != ("vhlo", 15):
            return None
        kind = self.values.type(cursor.index(len(self.tables.types), "type"))
        blob = cursor.take(cursor.varint("the length of a constant"), "a constant")
        return Constant(kind, blob.end - blob.at, blob.at, self.current)

    def constants_in_order(self) -> Iterator[Constant]:
        """Give the constant of every operation that has one, also short and repeated ones, by one more walk."""
        values: list[int] = []

        def visit(op: Operation) -> None:
            values.append(self._value_of_constant(op))

        self.tables.left = self.tables.most  # a walk of its own, with the same limit
        numbers = (number for number, name in enumerate(self.tables.op_names) if name == "vhlo.constant_v1")
        walk(self.tables, dict.fromkeys(numbers, visit), {})
        decoded = {value: self._decode_constant(value) for value in set(values)}
        return (constant for value in values if (constant := decoded[value]))

    def _custom_call(self, op: Operation) -> None:
        # Equal calls share their properties and attributes in the file, so two numbers stand for all that is decoded.
        key = (op.properties, op.attributes)
        place = (*key, op.location, len(self.functions) - 1)
        if place in self.counted:
            self.counted[place] += 1
            return
        if key not in self.facts:
            self._limit(len(self.facts), "custom calls", op.at)
            self.facts[key] = self._facts(op)
        if len(self.counted) < self.room or key not in self.places:
            self.counted[place] = 1
            self.places[key] = place
        else:  # too many to tell apart: count it where the same call was met before
            self.counted[self.places[key]] += 1

    def symbol(self, op: Operation) -> str:
        """Return the target of a custom call, or the function that a call calls; empty for another operation."""
        kind, key = self.tables.op_names[op.name], (op.properties, op.attributes)
        if "custom_call" in kind:
            return self.facts[key][0]
        if kind != "vhlo.call_v1":
            return ""
        if key not in self.callees:  # each is decoded once: a hostile file may have a long list in this place
            self._limit(len(self.callees), "calls of functions", op.at)
            self.callees[key] = str(self._value(self.properties(op), "callee", op))
        return self.callees[key]

    def _facts(self, op: Operation) -> tuple[str, int, bool, Any]:
        named = self.properties(op)
        target = self._value(named, "call_target_name", op)
        if not isinstance(target, str) or isinstance(target, Opaque):
            raise ArtifactError("the target of a custom call as UTF-8 text", repr(target), op.at, name=self.name)
        version = self._value(named, "api_version", op) if "api_version" in named else 1
        effect = bool(self._value(named, "has_side_effect", op)) if "has_side_effect" in named else False
        config = self._value(named, "backend_config", op) if "backend_config" in named else ""
        # Both need StableHLO 1.3, although the operation is called custom_call_v1 before and after.
        self.typed_ffi = self.typed_ffi or version == 4 or isinstance(config, dict)
        # JAX's FFI calls say API version 1 and leave backend_config empty: their arguments are in an attribute of MHLO,
        # which before bytecode 5 is in `named` already.
        if not config and op.properties >= 0:
            named = self.values.own_attributes(op.attributes)
        if not config and "mhlo.backend_config" in named:
            config = self._value(named, "mhlo.backend_config", op)
        return target, version if isinstance(version, int) else 1, effect, config

    def _call(self, place: _Place, count: int) -> CustomCall:
        location, function = place[2:]
        name = self.functions[function].name if function >= 0 else ""
        target, version, effect, config = self.facts[place[:2]]
        where = self.values.location(location)
        return CustomCall(target, version, effect, config, name, where, count, self.vjp_order)
