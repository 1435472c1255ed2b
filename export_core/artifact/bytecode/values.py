"""The attributes and types of a module, decoded one by one when they are needed, within limits of size and depth."""

from __future__ import annotations

from collections.abc import Iterator

from export_core.artifact.bytecode.sections import TEXT, Cursor, Entries, Tables
from export_core.artifact.errors import LIMIT
from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    _Sized = tuple[Any, int, int]  # a value, how many values are in it, how deep

MAX_DEPTH = 64  # attributes inside attributes, types inside types
MAX_NODES = 10_000  # values inside one value, and one more for each 16 bytes of the file: a shared one counts each time
MAX_LETTER = 1 << 15  # characters of one type, but for a function's, which has those of all its arrays
# Characters of all types together, and one more for each byte of the file: the function of a training step has twelve
# thousand arrays, each with twenty characters.
MAX_LETTERS = 1 << 20
LONG = 64  # strings and lists from this length on are remembered, since others may share them
MAX_ATTRIBUTES = 1024  # of one operation; JAX gives a module and its calls a handful
MAX_LOCATIONS = 128  # locations that are followed to find the name of one
# Sizes below 64 as text, by their varint of one byte, of a number without a sign; "" for any other byte.
_SMALL = tuple(f"{byte >> 2}x" if byte & 3 == 1 else "" for byte in range(256))
DYNAMIC = -(1 << 63)  # a dimension that is only known when the function runs

# Types that have no parts, by their codes (VhloBytecode.cpp, BuiltinDialectBytecode.td), as StableHLO prints them. The
# codes that are left out are types with parts, which `_type` reads.
PLAIN_TYPES = {
    "vhlo": {
        0: "i1", 2: "bf16", 3: "f16", 4: "f32", 5: "f64", 6: "f8E4M3FN", 7: "f8E5M2", 9: "index", 10: "i4", 11: "i8",
        12: "i16", 13: "i32", 14: "i64", 15: "ui4", 16: "ui8", 17: "ui16", 18: "ui32", 19: "ui64",
        22: "!stablehlo.token", 26: "!shape.witness", 27: "f8E4M3FNUZ", 28: "f8E5M2FNUZ", 29: "f8E4M3B11FNUZ", 31: "i2",
        32: "ui2", 33: "none", 34: "tf32", 35: "f8E4M3", 36: "f8E3M4", 37: "f4E2M1FN", 38: "f6E2M3FN", 39: "f6E3M2FN",
        40: "f8E8M0FNU",
    },
    "builtin": {1: "index", 3: "bf16", 4: "f16", 5: "f32", 6: "f64", 7: "f80", 8: "f128", 18: "none"},
}  # fmt: skip
MAX_AT_ONCE = 1 << 12  # types that are decoded before one is asked for; a module has a few dozen
_TENSORS = {"vhlo": 20, "builtin": 13}
_FUNCTIONS = {"vhlo": 8, "builtin": 2}
# For each dialect: the types without parts by their first byte, which is their code as a varint; that byte of a tensor,
# and that of a function; and types of more bytes.
_FREQUENT: dict[str, tuple[dict[int, str], int, int, dict[bytes, str]]] = {
    dialect: (
        {code << 1 | 1: text for code, text in types.items()},
        _TENSORS[dialect] << 1 | 1,
        _FUNCTIONS[dialect] << 1 | 1,
        {b"\x01\x09": "i1", b"\x01\x02\x02": "i32", b"\x01\x02\x04": "i64"} if dialect == "builtin" else {},
    )
    for dialect, types in PLAIN_TYPES.items()
}
# The words of VHLO's enumerations by their codes (VhloEnums.td): comparison direction, comparison type, FFT type,
# precision, algorithm and distribution of random numbers, transpose, mode of result accuracy.
ENUMS = {
    3: "EQ NE GE GT LE LT",
    4: "NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED",
    7: "FFT IFFT RFFT IRFFT",
    11: "DEFAULT HIGH HIGHEST",
    12: "DEFAULT THREE_FRY PHILOX",
    13: "? UNIFORM NORMAL",
    16: "TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT",
    19: "DEFAULT HIGHEST TOLERANCE",
}


class Opaque(str):
    """A value that is shown as text and not interpreted, such as another dialect's text or an unknown code."""

    __slots__ = ()


class Values:
    """The decoder of the attributes and types of one module."""

    def __init__(self, tables: Tables):
        self.tables = tables
        # Attributes and types refer to others, so that 80 shared levels would be 2**80 values: what one may hold, and
        # what is printed in all, is bounded by the size of the file.
        size = sum(section.end - section.at for section in tables.sections.values())
        self.most_nodes = MAX_NODES + size // 16
        self.letters = self.most_letters = MAX_LETTERS + size
        self._locations_left = 0
        self._types: dict[int, str] = {}
        self._has_frequent_types = False  # Whether `read_frequent_types` was called.
        self._others: list[int] = []  # The types that it left, by number, mostly without those of functions.
        self.elements: dict[int, str] = {}  # The element types of most types, by number: f32 for tensor<4xf32>.
        self._strings: dict[int, str | bytes] = {}
        self._known: dict[int, _Sized] = {}
        self._names_of: dict[int, dict[str, int]] = {}

    def attribute_entry(self, index: int) -> tuple[str, int, Cursor]:
        """Return the dialect and the code of attribute `index`, and a cursor on the bytes after the code.

        The code is `TEXT` for an attribute that is encoded as text.
        """
        return self._entry(self.tables.attributes, index)

    def _entry(self, entries: Entries, index: int) -> tuple[str, int, Cursor]:
        tables = self.tables
        dialect, start, end, is_encoded = entries.entry(index)
        cursor = Cursor(tables.data, start, end, tables.name)
        if not is_encoded:
            code = TEXT
        elif start < end and (first := tables.data[start]) & 1:  # nearly every code is a varint of one byte
            code, cursor.at = first >> 1, start + 1
        else:
            code = cursor.varint("an attribute's or type's code")
        return tables.dialects[dialect], code, cursor

    def _limit(self, cursor: Cursor, depth: int, nodes: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise cursor.error(f"attributes and types nested at most {MAX_DEPTH} deep", "deeper ones", advice=LIMIT)
        if nodes > self.most_nodes:
            raise cursor.error(f"at most {self.most_nodes} parts in an attribute or type", "more", advice=LIMIT)

    def reference(self, cursor: Cursor) -> int:
        """Read and return the index of an attribute at a cursor.

        Raises `ArtifactError` if the module has no attribute with this index.
        """
        return cursor.index(len(self.tables.attributes), "attribute")

    def _type_ref(self, cursor: Cursor) -> int:
        return cursor.index(len(self.tables.types), "type")

    def attribute(self, index: int) -> Any:
        """Return attribute `index` as Python data. Lists and dictionaries may be shared, so do not change them.

        A string that is not UTF-8 is returned as bytes. For a tensor of numbers, only its type is returned, as text.
        """
        return self._attribute(index, 0)[0]

    def _attribute(self, index: int, depth: int) -> _Sized:
        if (known := self._known.get(index)) is not None:
            # It may have been decoded nearer to the top, where its own depth was within the limit.
            if depth + known[2] > MAX_DEPTH:
                self._limit(self.attribute_entry(index)[2], MAX_DEPTH + 1)
            return known
        dialect, code, cursor = self.attribute_entry(index)
        self._limit(cursor, depth)
        nodes, height = 1, 0
        match dialect, code:
            case ("vhlo", 1) | ("builtin", 0):
                elements = []
                for _ in range(cursor.count("elements")):
                    value, more, deep = self._attribute(self.reference(cursor), depth + 1)
                    nodes, height = nodes + more, max(height, deep + 1)
                    self._limit(cursor, depth, nodes)
                    elements.append(value)
                known = elements, nodes, height
            case ("vhlo", 6) | ("builtin", 1):
                entries = {}
                for key, number in self.entries(cursor):
                    name, of_name, below = self._attribute(key, depth + 1)
                    value, more, deep = self._attribute(number, depth + 1)
                    nodes, height = nodes + of_name + more, max(height, below + 1, deep + 1)
                    self._limit(cursor, depth, nodes)
                    entries[name if isinstance(name, str) else repr(name)] = value
                known = entries, nodes, height
            case ("builtin", 4):  # a reference to a symbol, which is its name
                return self._attribute(self.reference(cursor), depth + 1)
            case _:
                return self._leaf(dialect, code, cursor, depth + 1), 1, 0
        if nodes >= LONG or height > 1:
            self._known[index] = known
        return known

    def entries(self, cursor: Cursor, most: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield the entries of the dictionary at a cursor, each as two attribute indexes: of its name and of its value.

        Raises `ArtifactError` for a dictionary with more than `most` entries.
        """
        count = cursor.count("entries", 2)
        if most is not None and count > most:
            raise cursor.error(f"at most {most} attributes of one operation", str(count), advice=LIMIT)
        for _ in range(count):
            yield self.reference(cursor), self.reference(cursor)

    def own_attributes(self, index: int) -> dict[str, int]:
        """Return the indexes of an operation's attributes by name.

        `index` is the index of the operation's attribute dictionary, or -1 if it has none.
        """
        if (known := {} if index < 0 else self._names_of.get(index)) is None:
            dialect, code, cursor = self.attribute_entry(index)
            if (dialect, code) != ("builtin", 1):
                raise cursor.error("a dictionary of attributes", f"{dialect} attribute {code}")
            known = {str(self.attribute(key)): value for key, value in self.entries(cursor, MAX_ATTRIBUTES)}
            self._names_of[index] = known
        return known

    def _string(self, cursor: Cursor) -> str | bytes:
        index = cursor.index(len(self.tables.string_ends), "string")
        if (known := self._strings.get(index)) is None:
            raw = self.tables.string_bytes(index)
            try:
                known = raw.decode()
            except UnicodeDecodeError:
                known = raw
            if len(raw) >= LONG:
                self._strings[index] = known
        return known

    def _leaf(self, dialect: str, code: int, cursor: Cursor, depth: int) -> Any:
        """Return the value of an attribute that contains no other attributes.

        `depth` is how deep the type of the attribute is nested: a type may name attributes, too.
        """
        if code == TEXT:
            text = bytes(cursor.data[cursor.at : min(cursor.end, cursor.at + 65536)]).rstrip(b"\0")
            return Opaque(text.decode("utf-8", "replace"))
        match dialect, code:
            case ("vhlo", 14) | ("builtin", 2 | 3):
                return self._string(cursor)
            case ("vhlo", 2):
                return bool(cursor.varint("a boolean"))
            case ("vhlo", 9) | ("builtin", 8):
                return self._integer(cursor, depth)
            case ("vhlo", 15):
                return Opaque(f"dense<…> : {self.type(self._type_ref(cursor), depth)}")
            case ("vhlo", 17) | ("builtin", 6):
                return Opaque(self.type(self._type_ref(cursor), depth))
            case ("builtin", 7):
                return True
            case ("vhlo", _) if code in (5, *ENUMS):
                return cursor.varint("an enum's value")
        return Opaque(f"#{dialect}<code {code}>")

    def _integer(self, cursor: Cursor, depth: int) -> int | bool | Opaque:
        kind = self.type(self._type_ref(cursor), depth)
        if "<code " in kind:  # how wide it is decides how its integers are written
            return Opaque(f"… : {kind}")
        # MLIR writes integers of at most 8 bits as a byte, and wider ones as zigzag varints, unsigned ones too.
        is_byte = kind in ("i1", "i2", "i4", "ui4", "ui2", "i8", "ui8")
        value = cursor.byte("an integer") if is_byte else cursor.signed("an integer")
        if kind == "i1":
            return bool(value)
        if kind.startswith("ui") and value < 0:
            value += 1 << 64
        elif kind == "i8" and value > 127:
            value -= 256
        return value

    def location(self, index: int, depth: int = 0) -> str:
        """Return the name that location `index` gives, or else its file and line; "" if the location is unknown.

        `depth` is how many other locations this location is inside.
        """
        # Four fused locations that share four fused ones, level by level, are 4**depth visits without this bound.
        self._locations_left = self._locations_left - 1 if depth else MAX_LOCATIONS
        if self._locations_left <= 0:
            return ""
        dialect, code, cursor = self.attribute_entry(index)
        self._limit(cursor, depth)
        self.tables.spend(1, cursor.at)
        if dialect != "builtin":
            return ""
        if code == 14:  # a name, then the location it names
            return str(self.attribute(self.reference(cursor)))
        if code == 10:  # callee, caller
            return self.location(self.reference(cursor), depth + 1)
        if code in (12, 13):
            count = min(cursor.count("locations"), 4)
            return next(filter(None, (self.location(self.reference(cursor), depth + 1) for _ in range(count))), "")
        if code in (11, 22):
            file = str(self.attribute(self.reference(cursor)))
            numbers = cursor.count("lines and columns", 0) if code == 22 else 1
            return f"{file}:{cursor.varint('a line')}" if numbers else file
        return ""

    def type(self, index: int, depth: int = 0) -> str:
        """Return type `index` as StableHLO prints it, e.g. tensor<4x?xf32>; `depth` is how deep it is nested."""
        if not self._has_frequent_types:
            self.read_frequent_types()
        if (known := self._types.get(index)) is None:
            dialect, code, cursor = self._entry(self.tables.types, index)
            self._limit(cursor, depth)
            known = self._type(dialect, code, cursor, depth + 1)
            # A tuple of two tuples of two … doubles at every level: the text of a type can be far longer than the file.
            self.letters -= len(known)
            if len(known) > MAX_LETTER and code != _FUNCTIONS.get(dialect):
                raise cursor.error(f"a type of at most {MAX_LETTER} letters", f"{len(known)} letters", advice=LIMIT)
            if self.letters < 0:
                raise cursor.error(f"types of at most {self.most_letters:,} characters in all", "more", advice=LIMIT)
            self._types[index] = known
        return known

    def types_of_values(self) -> list[str]:
        """Return all types except the types of functions, which are long and consist of the other types."""
        self.read_frequent_types()
        for index in self._others:
            self.type(index)
        return [text for text in self._types.values() if not text.startswith("(")]

    def read_frequent_types(self) -> None:
        """Decode the types that contain no other types, and the tensors of such types, in one loop over the bytes.

        These are nearly all types, and the loop takes a third of the time of decoding types one by one. All other
        types, and damaged types, are left to `type`. Further calls do nothing.
        """
        if self._has_frequent_types:
            return
        self._has_frequent_types = True
        tables, types, elements, others = self.tables, self._types, self.elements, self._others
        if len(tables.types) > MAX_AT_ONCE:
            others += range(len(tables.types))
            return
        data, ends, start = tables.data, tables.types.ends, tables.types.first
        tensors: list[tuple[int, int, int]] = []  # The number of each, the place behind its code, and its end.
        for number, first, last in tables.types.groups:
            by_byte, tensor, function, by_bytes = _FREQUENT.get(tables.dialects[number], ({}, -2, -2, {}))
            for index, value in enumerate(ends[first:last], first):
                at, start = start, value >> 1
                byte = data[at] if value & 1 and at < start else -1  # -1 for a text, and for nothing
                if (text := by_byte.get(byte)) is not None:
                    types[index] = text
                    elements[index] = text.removeprefix("!stablehlo.")
                elif byte == tensor:
                    tensors.append((index, at + 1, start))
                elif (text := by_bytes.get(bytes(data[at:start]))) is not None:
                    types[index] = elements[index] = text
                elif byte != function:
                    others.append(index)
        plain = {*types}
        for index, at, end in tensors:
            # Its rank, its dimensions, and the number of its element type: each a varint of one byte.
            after = at + 1 + (data[at] >> 1) if at < end and data[at] & 1 else end
            if after < end and data[after] & 1 and (element := data[after] >> 1) in plain:
                sizes = [_SMALL[byte] for byte in data[at + 1 : after]]
                if "" not in sizes:
                    types[index] = f"tensor<{''.join(sizes)}{types[element]}>"
                    elements[index] = types[element]
                    continue
            others.append(index)

    def _type(self, dialect: str, code: int, cursor: Cursor, depth: int) -> str:
        if code == TEXT:
            text = bytes(cursor.data[cursor.at : min(cursor.end, cursor.at + 4096)])
            return text.rstrip(b"\0").decode("utf-8", "replace")
        if (plain := PLAIN_TYPES.get(dialect, {}).get(code)) is not None:
            return plain
        match dialect, code:  # the most frequent first
            case ("vhlo", 20) | ("builtin", 13):
                return f"tensor<{self._shape(cursor)}{self.type(self._type_ref(cursor), depth)}>"
            case ("vhlo", 1) | ("builtin", 9):
                return f"complex<{self.type(self._type_ref(cursor), depth)}>"
            case ("vhlo", 8) | ("builtin", 2):
                inputs, outputs = self._types_of(cursor, depth), self._types_of(cursor, depth)
                return f"({', '.join(inputs)}) -> ({', '.join(outputs)})"
            case ("vhlo", 21):
                encoding = self._attribute(self.reference(cursor), depth)[0]
                return f"tensor<{self._shape(cursor)}{self.type(self._type_ref(cursor), depth)}, {encoding}>"
            case ("vhlo", 41):
                return f"memref<{self._shape(cursor)}{self.type(self._type_ref(cursor), depth)}>"
            case ("vhlo", 25):
                return f"tensor<*x{self.type(self._type_ref(cursor), depth)}>"
            case ("vhlo", 23 | 42):
                word = "tuple" if code == 23 else "!stablehlo.future"
                return f"{word}<{', '.join(self._types_of(cursor, depth))}>"
            case ("builtin", 0):
                width = cursor.varint("an integer's width")
                return f"{('i', 'si', 'ui', '?')[width & 3]}{width >> 2}"
        return f"!{dialect}<code {code}>"

    def _types_of(self, cursor: Cursor, depth: int) -> list[str]:
        count = cursor.count("types")
        self._limit(cursor, depth, count)
        types = [self.type(self._type_ref(cursor), depth) for _ in range(count)]
        if sum(map(len, types)) > self.letters:  # Before they become one text.
            raise cursor.error(f"types of at most {self.most_letters:,} characters in all", "more", advice=LIMIT)
        return types

    def _shape(self, cursor: Cursor) -> str:
        count = cursor.count("dimensions")
        sizes = [_SMALL[byte] for byte in cursor.data[cursor.at : cursor.at + count]]
        if "" not in sizes:  # nearly all
            cursor.at += count
            return "".join(sizes)
        sizes = []
        for _ in range(count):
            size = cursor.signed("a dimension")
            sizes.append("?x" if size == DYNAMIC else f"{size}x")
        return "".join(sizes)

    def function_type(self, index: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the types of the arguments and of the results of a function, whose own type has the index `index`."""
        dialect, code, cursor = self._entry(self.tables.types, index)
        if (dialect, code) not in (("vhlo", 8), ("builtin", 2)):
            raise cursor.error("a function type", f"another type ({dialect} type {code})")
        return tuple(self._types_of(cursor, 1)), tuple(self._types_of(cursor, 1))
