"""Every operation of a module as text, with attributes and constants, so that modules that do the same are equal.

What does not change what is run is left out: locations, and the names of the module, of private functions, of arguments
and of results. How often and in which order equal functions occur does not count.
"""

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from export_core.artifact.bytecode import walk
from export_core.artifact.bytecode.module import Module
from export_core.artifact.bytecode.sections import IR, TEXT, Cursor, Tables
from export_core.artifact.bytecode.values import ENUMS, Values
from export_core.artifact.errors import LIMIT, ArtifactError, guarded
from export_core.artifact.unread import vhlo_tables

_CALLED = ("callee", "called_computations", "decomposition")  # properties that name functions of the module
_SYMBOL = ("sym_name", "sym_visibility")
_PLATFORM_INDEX = "jax.global_constant = '_platform_index'"
_WHOLE_NUMBER = re.compile(r"dense<(\d+)> : tensor<i32>")
_Head = tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]


class Line(NamedTuple):
    """A line of a module's listing, for an operation of a function or for the function itself."""

    name: str  # The name of the operation in StableHLO, such as dot_general.
    attributes: tuple[tuple[str, str], ...]  # The name and the text of each attribute.
    calls: tuple[str, ...]  # The functions that the operation calls.
    types: tuple[str, ...]  # The types of its results, or of the arguments of a block.
    values: tuple[int, ...]  # The numbers of the values that are its operands.
    depth: int  # The number of regions that enclose the operation.
    platforms: tuple[int, ...]  # The numbers of the platforms on which the operation runs; empty for all.

    def __str__(self) -> str:
        attributes = ", ".join(f"{name} = {text}" for name, text in self.attributes)
        called = "".join(" @" + re.sub(r"_\d+$", "", name) for name in self.calls)
        types = f" : {', '.join(self.types)}" if self.types else ""
        return f"{self.name}{called}{f' {{{attributes}}}' if attributes else ''}{types}"


Listing = dict[str, list[Line]]
"""The lines of each function, by the function's name.

Lines outside functions, such as the module and meshes, are under an empty name.
"""


def listing(module: Module, *, platforms: int = 1, exact: bool = True) -> Listing:
    """List a module, operation by operation.

    Raises `ArtifactError` if the module cannot be read.

    Args:
        module: any module.
        platforms: the number of platforms that the module was exported for.
        exact: whether floating-point constants have all their digits. If not, constants of up to `FEW` elements have
            three digits, and longer constants none, since the last digits of what jax computes depend on the processor.
    """
    _ = module.contents  # a walk that checks all bounds
    return guarded(lambda: _Lister(module.tables, platforms, exact).functions, module.name)


def digest_of(functions: Listing) -> str:
    """Return a SHA-256 of all lines of a module's listing, without the names of functions.

    A call has the digest of the function that it calls in place of the function's name.
    """
    known: dict[str, str] = {}
    begun: set[str] = set()
    left = list(functions)  # a stack: calls of any depth, which a hostile file chooses, need no recursion
    while left:
        lines = functions[name := left[-1]]
        if name not in begun:
            begun.add(name)
            left += [call for line in lines for call in line.calls if call in functions and call not in begun]
            continue
        left.pop()
        if name in known:
            continue
        digest = sha256()
        for line in lines:
            # A function that calls itself, which StableHLO does not have, counts by its name.
            calls = [known.get(call, call) for call in line.calls]
            parts = (line.depth, line.name, line.attributes, calls, line.types, line.values)
            digest.update(repr(parts).encode("utf-8", "surrogateescape"))
        known[name] = digest.hexdigest()
    return sha256("\n".join(sorted(set(known.values()))).encode()).hexdigest()


class _Region:
    """The MLIR region that the lister has entered.

    The values that the region still has to define have the numbers from `next` up to, but not including, `end`.
    """

    def __init__(self, depth: int, first: int, known: Mapping[int, list[int]], platforms: tuple[int, ...]):
        self.depth = depth
        self.next = self.end = first
        self.known = dict(known)  # By number, each value that depends on the platform alone: its number on each.
        self.platforms = platforms
        self.returned: tuple[int, ...] = ()


class _Lister:
    """The walk over one module that fills `functions` with the lines of its listing."""

    def __init__(self, tables: Tables, platforms: int, exact: bool) -> None:
        self._tables = tables
        self._texts = _Texts(tables, exact)
        self._platforms = range(platforms)
        self._names: dict[str, Sequence[str]] = vhlo_tables()["properties"]
        self._heads: dict[tuple[int, int, int], _Head] = {}
        self._lines: list[Line] = []
        self.functions: Listing = {"": self._lines}
        tables.left = 2 * tables.most  # a walk of its own, which looks into every operation
        self._blocks(tables.cursor(IR), _Region(0, 0, {}, ()), 1)

    def _operation(self, cursor: Cursor, region: _Region) -> None:
        """List an operation with all its regions, and note which of its values depend on nothing but the platform."""
        tables = self._tables
        number, mask = cursor.varint("an operation's name"), cursor.byte("the mask of an operation")
        cursor.varint("a location")
        attributes = cursor.varint("attributes") if mask & walk.HAS_ATTRIBUTES else -1
        properties = cursor.varint("properties") if mask & walk.HAS_PROPERTIES else -1
        count = cursor.count("results") if mask & walk.HAS_RESULTS else 0
        types = tuple(self._texts.type(cursor.index(len(tables.types), "type")) for _ in range(count))
        count = cursor.count("operands") if mask & walk.HAS_OPERANDS else 0
        values = tuple(cursor.varint("an operand") for _ in range(count))
        regions, isolated = walk.rest(cursor, tables, mask, len(types))
        first, name = region.next, tables.op_names[number]
        region.next += len(types)
        known: Mapping[int, list[int]] = region.known
        if name == "vhlo.func_v1":
            known = self._begin_function(attributes, properties)
        else:
            head = self._head(number, attributes, properties)
            self._lines.append(Line(*head, types, values, region.depth, region.platforms))
        branches = region.known.get(values[0]) if name == "vhlo.case_v1" and values else None
        results = []
        if regions:
            frame = walk.enter(cursor, tables, regions, isolated, region.depth)
            for branch in range(regions):
                chosen = [p for p in self._platforms if branches[p] == branch] if branches else []
                start = 0 if isolated else region.end
                inner = _Region(region.depth + 1, start, known, tuple(chosen) or region.platforms)
                if blocks := cursor.count("blocks"):
                    inner.end = inner.next + cursor.varint("the number of values")
                self._blocks(cursor, inner, blocks)
                results.append(inner.known.get(inner.returned[0]) if len(inner.returned) == 1 else None)
            cursor.end = frame.outer_end
        if name == "vhlo.func_v1":
            self._lines = self.functions[""]
        elif name == "vhlo.return_v1":
            region.returned = values
        elif branches and len(types) == 1 and None not in results and max(branches) < len(results):
            region.known[first] = [results[branch][p] for p, branch in enumerate(branches)]  # type: ignore[index]
        elif name == "vhlo.constant_v1" and (match := _WHOLE_NUMBER.fullmatch(self._lines[-1].attributes[0][1])):
            region.known[first] = [int(match[1])] * len(self._platforms)

    def _blocks(self, cursor: Cursor, region: _Region, count: int) -> None:
        """List the `count` blocks of a region.

        Each level of nested regions takes only two calls of Python, so that 256 levels fill no more than half of
        Python's stack.
        """
        for _ in range(count):
            block = walk.Frame(0, cursor.end, cursor.end)
            kinds = tuple(map(self._texts.type, walk.read_block(cursor, self._tables, block)))
            if kinds and len(self._lines) > 1:  # those of the function are in its type
                self._lines.append(Line("arguments", (), (), kinds, (), region.depth, region.platforms))
            region.next += len(kinds)
            for _ in range(block.operations):
                self._operation(cursor, region)

    def _begin_function(self, attributes: int, properties: int) -> dict[int, list[int]]:
        """Begin the listing of a function, and return its arguments that are the platform index.

        The result has, by argument number, the value of the argument on each platform.
        """
        texts, own = self._texts, self._own("vhlo.func_v1", attributes, properties)
        name, visibility = (str(texts.attribute(own[key])) if key in own else "" for key in _SYMBOL)
        self._lines = self.functions[name] = []
        stated = [] if visibility == "private" else [("name", repr(name))]
        known = {}
        for word, key in (("argument", "arg_attrs"), ("result", "res_attrs")):
            if key not in own:
                continue
            _, _, cursor = texts.attribute_entry(own.pop(key))
            elements = [texts.reference(cursor) for _ in range(cursor.count("elements"))]
            for number, text in enumerate(map(texts.text, elements)):
                if text != "{}":
                    stated.append((f"{word} {number}", text))
                if word == "argument" and _PLATFORM_INDEX in text:
                    known[number] = list(self._platforms)
        stated += [(key, texts.text(index)) for key, index in own.items() if key not in _SYMBOL]
        self._lines.append(Line("function", tuple(stated), (), (), (), 1, ()))
        return known

    def _head(self, number: int, attributes: int, properties: int) -> _Head:
        """Return the name of an operation, its attributes, and the functions that it calls.

        Args:
            number: the number of the operation's name.
            attributes: the number of its dictionary of attributes, -1 if it has none.
            properties: the number of its properties, -1 if it has none.
        """
        key = (number, attributes, properties)
        if key not in self._heads:
            name = self._tables.op_names[number]
            stated: list[tuple[str, str]] = []
            called: list[str] = []
            for word, index in self._own(name, attributes, properties).items():
                if word in _CALLED:
                    symbols = self._texts.attribute(index)
                    called += map(str, symbols if isinstance(symbols, list) else [symbols])
                elif name != "builtin.module" or word not in _SYMBOL:
                    stated.append((word, self._texts.text(index)))
            self._heads[key] = (re.sub(r"_v\d+$", "", name.removeprefix("vhlo.")), tuple(stated), tuple(called))
        return self._heads[key]

    def _own(self, name: str, attributes: int, properties: int) -> dict[str, int]:
        """Return the indexes of an operation's attributes by name, from its properties and its attribute dictionary."""
        own: dict[str, int] = {}
        if properties >= 0 and name != "builtin.module":  # which has the name and the visibility of the module
            names = self._names.get(name.removeprefix("vhlo."), ())
            numbered = enumerate(self._tables.properties(properties, 0))
            own = {names[at] if at < len(names) else f"property {at}": index for at, index in numbered}
        # In MLIR an attribute of the dictionary overrides the property of its name.
        return own | self._texts.own_attributes(attributes)


LONGEST = 400  # characters of an attribute. The text of a longer one is its beginning, and a hash of all.
FEW = 8  # elements of a constant that are spelled; of more there is a hash
DIGITS = 32  # digits that stand for what is too long: with 16, two constants with the same ones can be made in a day
NAMES = {"jax.arg_info", "jax.result_info"}  # what jax calls arguments and results: left out, since it has no effect

# How attributes are encoded, by dialect and code: a an attribute, o one that may be missing, t a type, s a string,
# v a varint, z a signed one, b a byte, d data; [ ] any number of what is inside; ? ends one that has no more bytes.
# Sources: StableHLO's VhloBytecode.cpp, Shardy's bytecode.td, MLIR's BuiltinDialectBytecode.td.
_LAYOUTS = {
    "builtin": {0: "[a]", 1: "[aa]", 2: "s", 3: "st", 4: "a", 5: "a[a]", 6: "t", 7: "", 17: "tvd", 18: "td"},
    "vhlo": {
        1: "[a]", 2: "v", 5: "v", 6: "[aa]", 10: "[z]z[z]", 14: "s", 15: "td", 17: "t", 18: "[z]", 20: "zzza", 21: "zz",
        22: "av?a", 23: "aa", 24: "az", 25: "ao",
    },
    "sdy": {
        0: "[a]", 1: "sz", 2: "[a][z]", 3: "zz", 4: "so", 5: "[a]bv", 6: "a[a][a]", 7: "[a]", 8: "[z]", 9: "[a]",
        10: "[z][a][a][z][z][z][z]b", 11: "[a]", 12: "[a]", 13: "[a]zz", 14: "[a]", 15: "a[a][a][a]", 16: "[a]",
        17: "a[a][a][a]z",
    },
}  # fmt: skip
_SHARDY = {
    0: "manual_axes", 1: "axis", 2: "mesh", 4: "axis", 5: "dimension", 6: "sharding", 7: "shardings", 8: "factors",
    9: "mapping", 10: "rule", 15: "sharding", 16: "shardings", 17: "sharding",
}  # fmt: skip
_PARTS = re.compile(r"\[\w+\]|.")
_DICTIONARIES = {("builtin", 1), ("vhlo", 6)}
_DATA = {("builtin", 18), ("vhlo", 15)}
_INTEGERS = {("builtin", 8), ("vhlo", 9)}
_FLOATS = {("builtin", 9), ("vhlo", 8)}
_ELEMENT = re.compile(r"tensor<(?:[\d?]+x)*(?:complex<)?(\w+)")
_PLAIN = re.compile(r"[\w.$-]+")
_NUMBERS = {
    "f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "ui8": "B", "ui16": "H",
    "ui32": "I", "ui64": "Q", "index": "q",
}  # fmt: skip


class _Texts(Values):
    """The attributes and types of one module as texts. Different attributes have different texts."""

    def __init__(self, tables: Tables, exact: bool) -> None:
        super().__init__(tables)
        self._exact = exact
        self._texts: dict[int, str] = {}

    def text(self, index: int, depth: int = 0) -> str:
        """Return attribute `index` as text, with all attributes inside it; `depth` is how deep it is nested itself."""
        if (known := self._texts.get(index)) is not None:
            return known
        dialect, code, cursor = self.attribute_entry(index)
        self._limit(cursor, depth)
        start = cursor.at
        try:
            text = self._text(index, dialect, code, cursor, depth + 1)
        except ArtifactError as error:
            if error.advice == LIMIT:
                raise
            text = ""
        if not text or cursor.at != cursor.end:
            # Encoded in a way that this reader does not know: its bytes, which equal modules of one writer share.
            text = f"#{dialect}<code {code}: {_hashed(bytes(cursor.data[start : cursor.end]).hex())}>"
        self._texts[index] = text
        return text

    def _text(self, index: int, dialect: str, code: int, cursor: Cursor, depth: int) -> str:
        kind = (dialect, code)
        if code == TEXT:
            cursor.at = cursor.end
            return _hashed(str(self.attribute(index)))
        if kind in _DICTIONARIES:
            return f"{{{_joined(self._entries(cursor, depth))}}}"
        if kind in _DATA:
            of = self.type(self._type_ref(cursor))
            return self._data(of, cursor.take(cursor.varint("the length of data"), "data"))
        if kind in _INTEGERS or kind in _FLOATS:
            of, start = self.type(self._type_ref(cursor)), cursor.at
            is_byte = cursor.end - start == 1  # this text means the same in every module
            bits = cursor.byte("a number") if is_byte else cursor.signed("a number")
            return f"{self.attribute(index) if kind in _INTEGERS else _float(of, bits)} : {of}"
        if dialect == "vhlo" and code in ENUMS:
            number, words = cursor.varint("an enum's value"), ENUMS[code].split()
            return words[number] if number < len(words) else str(number)
        if (layout := _LAYOUTS.get(dialect, {}).get(code)) is None:
            return ""
        text = _joined(self._parts(layout, cursor, depth))
        if len(layout) == 1 or (layout == "[a]" and dialect != "sdy"):
            return text
        return f"{_SHARDY.get(code, code) if dialect == 'sdy' else f'{dialect} {code}'}<{text}>"

    def _entries(self, cursor: Cursor, depth: int) -> Iterator[str]:
        for key, value in self.entries(cursor):
            name = str(self.attribute(key))
            if name not in NAMES:
                # Quoted where it could be read as several entries: users choose the names of some attributes.
                shown = name if _PLAIN.fullmatch(name) else repr(name)
                yield f"{shown} = {self.text(value, depth)}"

    def _parts(self, layout: str, cursor: Cursor, depth: int) -> Iterator[str]:
        for part in _PARTS.findall(layout):
            match part[0]:
                case "?":
                    if cursor.at >= cursor.end:
                        return
                case "[":
                    count = cursor.count("elements")
                    elements = (text for _ in range(count) for text in self._parts(part[1:-1], cursor, depth))
                    yield f"[{_joined(elements)}]"
                case "a":
                    yield self.text(self.reference(cursor), depth)
                case "o":
                    number = cursor.varint("the number of an optional attribute")
                    yield self.text(number >> 1, depth) if number else "none"
                case "t":
                    yield self.type(self._type_ref(cursor))
                case "s":
                    raw = self.tables.string_bytes(cursor.index(len(self.tables.string_ends), "string"))
                    yield _hashed(repr(raw.decode("utf-8", "surrogateescape")))
                case "z":
                    yield str(cursor.signed("a number"))
                case "b":
                    yield str(cursor.byte("a byte"))
                case "d":
                    data = cursor.take(cursor.varint("the length of data"), "data")
                    yield _hashed(bytes(data.data[data.at : data.end]).hex())
                case "v":
                    yield str(cursor.varint("a number"))

    def _data(self, of: str, data: Cursor) -> str:
        """Return a constant of type `of` as text: its numbers, or a hash of its bytes if it has many elements.

        If all elements are equal, `data` has only one element.
        """
        element = match[1] if (match := _ELEMENT.match(of)) else ""
        code, content = _NUMBERS.get(element, ""), memoryview(data.data)[data.at : data.end]
        size = struct.calcsize(f"<{code}") if code else 1
        is_rough = not self._exact and element.startswith(("f", "bf", "tf"))
        if len(content) > FEW * size:
            elements = "…" if is_rough else f"SHA-256 {sha256(content).hexdigest()[:DIGITS]}"
            return f"dense<{elements}> : {of}"
        numbers = [number for (number,) in struct.iter_unpack(f"<{code}", content)] if code else []
        if not code or any(map(math.isnan, numbers)):  # NaNs have many different bits
            return f"dense<0x{content.hex()}> : {of}"
        words = [f"{number:.3g}" if is_rough else repr(number) for number in numbers]
        return f"dense<{words[0] if len(words) == 1 else '[' + ', '.join(words) + ']'}> : {of}"


def _float(of: str, bits: int) -> str:
    code = _NUMBERS.get(of, "")
    if code not in ("e", "f", "d"):
        return hex(bits)
    size = struct.calcsize(f"<{code}")
    (number,) = struct.unpack(f"<{code}", (bits % (1 << 8 * size)).to_bytes(size, "little"))
    return hex(bits) if math.isnan(number) else repr(number)


def _joined(parts: Iterable[str]) -> str:
    """Join texts with commas; if that is longer than `LONGEST`, return only its beginning and a hash of all parts.

    This bounds the memory, since a hostile file may use one shared part in thousands of places.
    """
    digest, shown, length = sha256(), list[str](), 0
    for part in parts:
        digest.update(f"{len(part)} {part}".encode("utf-8", "surrogateescape"))
        if length <= LONGEST:
            shown.append(part)
            length += len(part) + 2
    text = ", ".join(shown)
    return text if length <= LONGEST else f"{text[:LONGEST]}… SHA-256 {digest.hexdigest()[:DIGITS]}"


def _hashed(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… SHA-256 {sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:DIGITS]}"
