"""Every operation of a module as text, with its attributes and constants: the same where two modules do the same.

Left out is what does not change what is run: locations, the names of the module, of private functions, of arguments and
of results, and how often and in which order equal functions are there.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact.bytecode.cursor import IR, PROPERTIES, Cursor
from export_core.artifact.bytecode.texts import Texts
from export_core.artifact.bytecode.walk import (
    HAS_ATTRIBUTES,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_RESULTS,
    Frame,
    enter,
    read_block,
    rest,
)
from export_core.artifact.errors import ArtifactError, unforeseen
from export_core.artifact.vhlo_tables import tables as vhlo_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from export_core.artifact.bytecode.module import Module

_CALLED = ("callee", "called_computations", "decomposition")
"""Properties that name functions of the module."""

_SYMBOL = ("sym_name", "sym_visibility")
_PLATFORM_INDEX = "jax.global_constant = '_platform_index'"
_WHOLE_NUMBER = re.compile(r"dense<(\d+)> : tensor<i32>")
_SUFFIX = re.compile(r"_\d+$")


_Head = tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]


class Line(NamedTuple):
    """An operation of a function, or what is said of the function itself."""

    name: str
    """Its name, such as `dot_general`."""
    attributes: tuple[tuple[str, str], ...]
    """The names and texts of its attributes."""
    calls: tuple[str, ...]
    """The functions that it calls."""
    types: tuple[str, ...]
    """The types of its results, or of the arguments of a block."""
    values: tuple[int, ...]
    """The numbers of the values that it takes."""
    depth: int
    """How many regions it is in."""
    platforms: tuple[int, ...]
    """The numbers of the platforms that it is for; empty for all."""

    def __str__(self) -> str:
        attributes = ", ".join(f"{name} = {text}" for name, text in self.attributes)
        called = "".join(f" @{_SUFFIX.sub('', name)}" for name in self.calls)
        types = f" : {', '.join(self.types)}" if self.types else ""
        return f"{self.name}{called}{f' {{{attributes}}}' if attributes else ''}{types}"


class Listing(NamedTuple):
    """A module, operation by operation."""

    functions: dict[str, list[Line]]
    """The lines of each function by its name; what is beside them, such as the module and meshes, has an empty one."""
    digest: str
    """A SHA-256 of all lines, equal for two modules with the same operations, attributes, constants and types."""


def listing(module: Module, *, platforms: int = 1, exact: bool = True) -> Listing:
    """List a module.

    Args:
        module: any module.
        platforms: the number of platforms that it was exported for.
        exact: with all digits of floating-point constants. Otherwise those of few elements have three digits and the
            others none: another processor computes other last digits where jax makes a constant.

    Raises:
        ArtifactError: the module cannot be read.
    """
    _ = module.num_operations  # a walk that checks all bounds
    try:
        return _Lister(module, platforms, exact).listing()
    except ArtifactError:
        raise
    except Exception as error:  # reported with its cause, as the one error type of this room
        raise unforeseen(error, module.name) from error


class _Region:
    """Where the walk is: in a region whose values have the numbers from `next` to `end`.

    `known` has, of values that follow from the platform alone, what they are on each.
    """

    def __init__(self, depth: int, first: int, known: dict[int, list[int]], platforms: tuple[int, ...]):
        self.depth = depth
        self.next = self.end = first
        self.known = known
        self.platforms = platforms
        self.returned: tuple[int, ...] = ()


class _Lister:
    """Lists one module."""

    def __init__(self, module: Module, platforms: int, exact: bool) -> None:
        self._tables = module.tables
        self._texts = Texts(self._tables, exact=exact)
        self._platforms = range(platforms)
        self._names: dict[str, Sequence[str]] = vhlo_tables()["properties"]
        self._heads: dict[tuple[int, int, int], _Head] = {}
        self._lines: list[Line] = []
        self._functions: dict[str, list[Line]] = {"": self._lines}

    def listing(self) -> Listing:
        tables, section = self._tables, self._tables.sections[IR]
        tables.left = 2 * tables.most  # a walk of its own, which looks into every operation
        cursor = Cursor(section.data, section.at, section.end, section.name)
        outermost = Frame(0, cursor.end, cursor.end)
        read_block(cursor, tables, outermost)
        for _ in range(outermost.operations):
            self._operation(cursor, _Region(0, 0, {}, ()))
        return Listing(self._functions, _Digests(self._functions).of_module())

    def _operation(self, cursor: Cursor, region: _Region) -> None:
        """List an operation with all that is in it."""
        tables = self._tables
        number, mask = cursor.varint("a name"), cursor.byte("what an operation has")
        cursor.varint("a location")
        attributes = cursor.varint("attributes") if mask & HAS_ATTRIBUTES else -1
        properties = cursor.varint("properties") if mask & HAS_PROPERTIES else -1
        types = self._types(cursor) if mask & HAS_RESULTS else ()
        count = cursor.count("operands") if mask & HAS_OPERANDS else 0
        values = tuple(cursor.varint("an operand") for _ in range(count))
        regions, isolated = rest(cursor, tables, mask, len(types))
        first, name = region.next, tables.op_names[number]
        region.next += len(types)
        known: dict[int, list[int]] = region.known
        if name == "vhlo.func_v1":
            known = self._function(attributes, properties)
        else:
            head = self._head(number, attributes, properties)
            self._lines.append(Line(*head, types, values, region.depth, region.platforms))
        branches = region.known.get(values[0]) if name == "vhlo.case_v1" and values else None
        results = []
        if regions:
            frame = enter(cursor, tables, regions, isolated, region.depth)
            for branch in range(regions):
                chosen = [p for p in self._platforms if branches[p] == branch] if branches else []
                start = 0 if isolated else region.end
                inner = _Region(region.depth + 1, start, dict(known), tuple(chosen) or region.platforms)
                self._region(cursor, inner)
                results.append(inner.known.get(inner.returned[0]) if len(inner.returned) == 1 else None)
            cursor.end = frame.outer_end
        if name == "vhlo.func_v1":
            self._lines = self._functions[""]
        elif name == "vhlo.return_v1":
            region.returned = values
        elif branches and len(types) == 1 and None not in results and max(branches) < len(results):
            region.known[first] = [results[branch][p] for p, branch in enumerate(branches)]  # type: ignore[index]
        elif name == "vhlo.constant_v1" and (match := _WHOLE_NUMBER.fullmatch(self._lines[-1].attributes[0][1])):
            region.known[first] = [int(match[1])] * len(self._platforms)

    def _region(self, cursor: Cursor, region: _Region) -> None:
        blocks = cursor.count("blocks")
        if blocks:
            region.end = region.next + cursor.varint("the number of values")
        for _ in range(blocks):
            block = Frame(0, cursor.end, cursor.end)
            kinds = tuple(map(self._texts.type, read_block(cursor, self._tables, block)))
            if kinds and len(self._lines) > 1:  # those of the function are in its type
                self._lines.append(Line("arguments", (), (), kinds, (), region.depth, region.platforms))
            region.next += len(kinds)
            for _ in range(block.operations):
                self._operation(cursor, region)

    def _types(self, cursor: Cursor) -> tuple[str, ...]:
        number = len(self._tables.types)
        return tuple(self._texts.type(cursor.index(number, "type")) for _ in range(cursor.count("results")))

    def _function(self, attributes: int, properties: int) -> dict[int, list[int]]:
        """Begin the lines of a function. Returns its arguments that follow from the platform alone."""
        own = self._own("vhlo.func_v1", attributes, properties)
        name, visibility = (self._texts.name(own[key]) if key in own else "" for key in _SYMBOL)
        self._lines = self._functions[name] = []
        private = visibility == "private"
        said: list[tuple[str, str]] = [] if private else [("name", repr(name))]
        known = {}
        for word, key in (("argument", "arg_attrs"), ("result", "res_attrs")):
            for number, index in enumerate(self._texts.elements(own[key]) if key in own else ()):
                text = self._texts.attribute(index)
                if text != "{}":
                    said.append((f"{word} {number}", text))
                if word == "argument" and _PLATFORM_INDEX in text:
                    known[number] = list(self._platforms)
        said += [
            (key, self._texts.attribute(index))
            for key, index in own.items()
            if key not in (*_SYMBOL, "arg_attrs", "res_attrs")
        ]
        self._lines.append(Line("function", tuple(said), (), (), (), 1, ()))
        return known

    def _head(self, number: int, attributes: int, properties: int) -> _Head:
        """The name of an operation, its attributes, and the functions that it calls."""
        key = (number, attributes, properties)
        if key not in self._heads:
            name = self._tables.op_names[number]
            own = self._own(name, attributes, properties)
            if name == "builtin.module":
                own = {key: index for key, index in own.items() if key not in _SYMBOL}
            texts = [(key, self._texts.attribute(index)) for key, index in own.items() if key not in _CALLED]
            called = [symbol for key in _CALLED if key in own for symbol in self._texts.symbols(own[key])]
            self._heads[key] = (_plain(name), tuple(texts), tuple(called))
        return self._heads[key]

    def _own(self, name: str, attributes: int, properties: int) -> dict[str, int]:
        """The numbers of an operation's attributes, by name."""
        own: dict[str, int] = {}
        if properties >= 0:
            tables = self._tables
            cursor = Cursor(tables.data, tables.property_offsets[properties], tables.sections[PROPERTIES].end, "")
            cursor = cursor.take(cursor.varint("the length of properties"), "properties")
            names = self._names.get(name.removeprefix("vhlo."), ())
            place = 0
            while cursor.at < cursor.end:
                index = cursor.varint("an attribute")
                if name == "builtin.module":  # the name and the visibility of the module
                    continue
                own[names[place] if place < len(names) else f"property {place}"] = index
                place += 1
        # In MLIR an attribute of the dictionary overrides the property of its name.
        return own | (self._texts.dictionary(attributes) if attributes >= 0 else {})


class _Digests:
    """Digests of functions: each has those of the functions that it calls, so that their names do not count."""

    def __init__(self, functions: dict[str, list[Line]]) -> None:
        self._functions = functions
        self._known: dict[str, str] = {}

    def of_module(self) -> str:
        return sha256("\n".join(sorted({self._of(name) for name in self._functions})).encode()).hexdigest()

    def _of(self, name: str) -> str:
        if name not in self._functions:
            return name
        if name not in self._known:
            self._known[name] = name  # of a function that calls itself, which StableHLO does not have
            digest = sha256()
            for line in self._functions[name]:
                called = [self._of(callee) for callee in line.calls]
                said = (line.depth, line.name, line.attributes, called, line.types, line.values)
                digest.update(repr(said).encode("utf-8", "surrogateescape"))
            self._known[name] = digest.hexdigest()
        return self._known[name]


def _plain(name: str) -> str:
    """An operation's name as StableHLO has it."""
    return re.sub(r"_v\d+$", "", name.removeprefix("vhlo."))
