"""The attributes of a module as text, whole: two texts are equal only where the attributes are."""

from __future__ import annotations

import math
import re
import struct
from hashlib import sha256
from typing import TYPE_CHECKING

from export_core.artifact.bytecode.values import ENUMS, MAX_DEPTH, Values
from export_core.artifact.errors import LIMIT, ArtifactError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from export_core.artifact.bytecode.cursor import Cursor
    from export_core.artifact.bytecode.sections import Tables

LONGEST = 400
"""Characters of an attribute. The text of a longer one is its beginning, and a hash of all."""

FEW = 8
"""Elements of a constant that are spelled; of more there is a hash."""

NAMES = frozenset({"jax.arg_info", "jax.result_info"})
"""What jax calls arguments and results: left out, since it has no effect."""

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
_NUMBERS_ALONE = {*_INTEGERS, ("builtin", 9), ("vhlo", 8)}
_TEXT = -1
_WORDS = {
    "comparison_direction": "EQ NE GE GT LE LT",
    "comparison_type": "NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED",
    "fft_type": "FFT IFFT RFFT IRFFT",
    "precision": "DEFAULT HIGH HIGHEST",
    "rng_algorithm": "DEFAULT THREE_FRY PHILOX",
    "rng_distribution": "? UNIFORM NORMAL",
    "transpose": "TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT",
    "result_accuracy_mode": "DEFAULT HIGHEST TOLERANCE",
}
"""The words of VHLO's enumerations, by number (VhloEnums.td)."""

_ELEMENT = re.compile(r"tensor<(?:[\d?]+x)*(?:complex<)?(\w+)")
DIGITS = 32
"""Digits that stand for what is too long: with 16, two constants with the same ones can be made in a day."""
_PLAIN = re.compile(r"[\w.$-]+")
_NUMBERS = {
    "f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "ui8": "B", "ui16": "H",
    "ui32": "I", "ui64": "Q", "index": "q",
}  # fmt: skip


class Texts:
    """The texts of the attributes and types of one module.

    `exact`: with all digits of floating-point constants, see `listing`.
    """

    def __init__(self, tables: Tables, *, exact: bool) -> None:
        self._tables = tables
        self._values = Values(tables)
        self._exact = exact
        self._known: dict[int, str] = {}

    def type(self, index: int) -> str:
        """A type as StableHLO prints it."""
        return self._values.type(index)

    def attribute(self, index: int, depth: int = 0) -> str:
        """An attribute, with all that is in it."""
        if (known := self._known.get(index)) is not None:
            return known
        dialect, code, cursor = self._values.attribute_entry(index)
        if depth > MAX_DEPTH:
            expected = f"attributes at most {MAX_DEPTH} deep"
            raise ArtifactError(expected, "more", cursor.at, name=cursor.name, advice=LIMIT)
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
        self._known[index] = text
        return text

    def dictionary(self, index: int) -> dict[str, int]:
        """The numbers of the attributes in a dictionary, by name."""
        _, _, cursor = self._values.attribute_entry(index)
        count = cursor.count("entries", 2)
        return {self.name(self._reference(cursor)): self._reference(cursor) for _ in range(count)}

    def elements(self, index: int) -> list[int]:
        """The numbers of the attributes in a list."""
        _, _, cursor = self._values.attribute_entry(index)
        return [self._reference(cursor) for _ in range(cursor.count("elements"))]

    def name(self, index: int) -> str:
        """A string, or the symbol of a reference."""
        return str(self._values.attribute(index))

    def symbols(self, index: int) -> list[str]:
        """The names of the functions in a reference, a string or a list of them."""
        value = self._values.attribute(index)
        return [str(name) for name in (value if isinstance(value, list) else [value])]

    def _reference(self, cursor: Cursor) -> int:
        return cursor.index(len(self._tables.attributes), "attribute")

    def _type(self, cursor: Cursor) -> str:
        return self.type(cursor.index(len(self._tables.types), "type"))

    def _text(self, index: int, dialect: str, code: int, cursor: Cursor, depth: int) -> str:
        kind = (dialect, code)
        if code == _TEXT:
            cursor.at = cursor.end
            return _hashed(self.name(index))
        if kind in _DICTIONARIES:
            return f"{{{_joined(self._entries(cursor, depth))}}}"
        if kind in _DATA:
            of = self._type(cursor)
            return self._data(of, cursor.take(cursor.varint("the length of data"), "data"))
        if kind in _NUMBERS_ALONE:
            of, start = self._type(cursor), cursor.at
            is_byte = cursor.end - start == 1  # what is written so, is so in every module
            bits = cursor.byte("a number") if is_byte else cursor.signed("a number")
            return f"{self.name(index) if kind in _INTEGERS else _float(of, bits)} : {of}"
        if dialect == "vhlo" and code in ENUMS:
            number, words = cursor.varint("an enum's value"), _WORDS[ENUMS[code]].split()
            return words[number] if number < len(words) else str(number)
        if (layout := _LAYOUTS.get(dialect, {}).get(code)) is None:
            return ""
        text = _joined(self._parts(layout, cursor, depth))
        if len(layout) == 1 or (layout == "[a]" and dialect != "sdy"):
            return text
        return f"{_SHARDY.get(code, code) if dialect == 'sdy' else f'{dialect} {code}'}<{text}>"

    def _entries(self, cursor: Cursor, depth: int) -> Iterator[str]:
        for _ in range(cursor.count("entries", 2)):
            name, value = self.name(self._reference(cursor)), self._reference(cursor)
            if name not in NAMES:
                # Quoted where it could be read as several entries: users choose the names of some attributes.
                shown = name if _PLAIN.fullmatch(name) else repr(name)
                yield f"{shown} = {self.attribute(value, depth)}"

    def _parts(self, layout: str, cursor: Cursor, depth: int) -> Iterator[str]:
        for part in _PARTS.findall(layout):
            if part == "?" and cursor.at >= cursor.end:
                return
            if part[0] == "[":
                count = cursor.count("elements")
                elements = (text for _ in range(count) for text in self._parts(part[1:-1], cursor, depth))
                yield f"[{_joined(elements)}]"
            elif part != "?":
                yield self._part(part, cursor, depth)

    def _part(self, part: str, cursor: Cursor, depth: int) -> str:
        match part:
            case "a":
                return self.attribute(self._reference(cursor), depth)
            case "o":
                number = cursor.varint("an attribute that may be missing")
                return self.attribute(number >> 1, depth) if number else "none"
            case "t":
                return self._type(cursor)
            case "s":
                raw = self._tables.string_bytes(cursor.index(len(self._tables.string_ends), "string"))
                return _hashed(repr(raw.decode("utf-8", "surrogateescape")))
            case "z":
                return str(cursor.signed("a number"))
            case "b":
                return str(cursor.byte("a byte"))
            case "d":
                data = cursor.take(cursor.varint("the length of data"), "data")
                return _hashed(bytes(data.data[data.at : data.end]).hex())
            case _:
                return str(cursor.varint("a number"))

    def _data(self, of: str, data: Cursor) -> str:
        """The elements of a constant; of equal ones the file has a single one."""
        element = match[1] if (match := _ELEMENT.match(of)) else ""
        code, content = _NUMBERS.get(element, ""), memoryview(data.data)[data.at : data.end]
        size = struct.calcsize(f"<{code}") if code else 1
        is_float = element.startswith(("f", "bf", "tf"))
        if len(content) > FEW * size:
            if is_float and not self._exact:
                return f"dense<…> : {of}"
            return f"dense<SHA-256 {sha256(content).hexdigest()[:DIGITS]}> : {of}"
        if not code:
            return f"dense<0x{content.hex()}> : {of}"
        numbers = [number for (number,) in struct.iter_unpack(f"<{code}", content)]
        if any(map(math.isnan, numbers)):  # of which there are many
            return f"dense<0x{content.hex()}> : {of}"
        words = [f"{number:.3g}" if is_float and not self._exact else repr(number) for number in numbers]
        return f"dense<{words[0] if len(words) == 1 else '[' + ', '.join(words) + ']'}> : {of}"


def _float(of: str, bits: int) -> str:
    code = _NUMBERS.get(of, "")
    if code not in ("e", "f", "d"):
        return hex(bits)
    size = struct.calcsize(f"<{code}")
    (number,) = struct.unpack(f"<{code}", (bits % (1 << 8 * size)).to_bytes(size, "little"))
    return hex(bits) if math.isnan(number) else repr(number)


def _joined(parts: Iterable[str]) -> str:
    """Texts with commas between them, in bounded memory: a shared part may stand in thousands of places."""
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
