"""Which operations a module has: one pass over the IR, no recursion, counting all, stopping at those worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from export_core.artifact.bytecode.cursor import IR, Cursor
from export_core.artifact.errors import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from export_core.artifact.bytecode.sections import Tables

    # Takes the numbers of an operation's name, its first byte, the numbers of its attributes and properties (-1: none) and of its
    # location, and how deep it is nested (0: outermost).
    Hook = Callable[[int, int, int, int, int, int], None]

MAX_NESTING = 256  # regions inside regions

# How long a varint is, by its first byte.
_LENGTH = tuple(9 if byte == 0 else (byte & -byte).bit_length() for byte in range(256))

_ATTRS, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USES, _PROPERTIES = 1, 2, 4, 8, 16, 32, 64


class _Frame:
    """An operation whose regions are being read: what is left of it, and where its bytes end."""

    __slots__ = ("blocks", "end", "operations", "outer_end", "regions")

    def __init__(self, regions: int, outer_end: int, end: int):
        self.regions = regions
        self.blocks = 0
        self.operations = 0
        self.outer_end = outer_end
        self.end = end


def walk(tables: Tables, visit: dict[int, Hook]) -> list[int]:
    """Read every operation; call `visit[name]` for those named there, before what is inside them.

    Returns how many there are of each name, by the name's number.

    Raises:
        ArtifactError: the operations do not fit their section, are nested too deeply or name what is not in the tables.
    """
    section = tables.sections[IR]
    cursor = Cursor(section.data, section.at, section.end, section.name)
    try:
        return _walk(tables, visit, cursor)
    except IndexError:
        raise cursor.error("an operation inside its section", "the end of the file") from None


def _walk(tables: Tables, visit: dict[int, Hook], cursor: Cursor) -> list[int]:
    data, version, length_of = tables.data, tables.version, _LENGTH
    names = len(tables.op_names)
    counts = [0] * names
    hooks = [visit.get(number) for number in range(names)]
    frame = _Frame(0, cursor.end, cursor.end)
    frame.blocks = 1
    stack = [frame]
    _block(cursor, tables, frame)
    while stack:
        frame = stack[-1]
        if frame.operations == 0:
            if frame.blocks:
                _block(cursor, tables, frame)
            elif frame.regions:
                frame.regions -= 1
                frame.blocks = cursor.count("blocks")
                if frame.blocks:
                    cursor.varint("the number of values")
                    _block(cursor, tables, frame)
            else:
                if cursor.end != frame.outer_end or len(stack) == 1:
                    if cursor.at != cursor.end:
                        raise cursor.error("the end of the operations", f"{cursor.end - cursor.at} more bytes")
                    cursor.end = frame.outer_end
                stack.pop()
            continue
        frame.operations -= 1
        at = start = cursor.at
        end = cursor.end
        byte = data[at]
        if byte & 1:
            name = byte >> 1
            at += 1
        else:
            name, at = _varint(data, at)
        if name >= names:
            raise cursor.error(f"the number of one of {names} operation names", str(name), start)
        counts[name] += 1
        mask = data[at]
        hook = hooks[name]
        at += 1
        attributes = properties = -1
        results = operands = regions = 0
        isolated = 0
        if hook is None:
            location = 0
            at += length_of[data[at]]
            if mask & _ATTRS:
                at += length_of[data[at]]
            if mask & _PROPERTIES:
                at += length_of[data[at]]
        else:
            location, at = _varint(data, at)
            if mask & _ATTRS:
                attributes, at = _varint(data, at)
            if mask & _PROPERTIES:
                properties, at = _varint(data, at)
        if mask & _RESULTS:
            results, at = _varint(data, at)
            if results > end - at:
                raise cursor.error("results that fit in their section", f"{results} of them", start)
            for _ in range(results):
                at += length_of[data[at]]
        if mask & _OPERANDS:
            operands, at = _varint(data, at)
            if operands > end - at:
                raise cursor.error("operands that fit in their section", f"{operands} of them", start)
            for _ in range(operands):
                at += length_of[data[at]]
        if mask & (_SUCCESSORS | _USES | _REGIONS):
            cursor.at = at
            if mask & _SUCCESSORS:
                successors = cursor.count("successors")
                tables.spend(successors // 3, start)
                for _ in range(successors):
                    cursor.varint("a successor")
            if version >= 3 and mask & _USES:
                _use_lists(cursor, tables, results)
            if mask & _REGIONS:
                head = cursor.varint("the number of regions")
                regions, isolated = head >> 1, head & 1
                tables.spend(regions, start)
            at = cursor.at
        if at > end:
            raise cursor.error("an operation inside its section", f"one that ends at byte {at}", start)
        cursor.at = at
        if hook is not None:
            if location >= len(tables.attributes) or attributes >= len(tables.attributes):
                raise cursor.error(f"the numbers of some of {len(tables.attributes)} attributes", "larger ones", start)
            if properties >= len(tables.property_offsets):
                raise cursor.error(f"one of {len(tables.property_offsets)} properties", str(properties), start)
            tables.spend(1, start)  # on top of what its block counted: looking into it costs as much again
            hook(name, start, attributes, properties, location, len(stack) - 1)
        if regions:
            if len(stack) > MAX_NESTING:
                raise cursor.error(f"regions at most {MAX_NESTING} deep", "more", start, advice=LIMIT)
            if regions > end - at:
                raise cursor.error("regions that fit in their section", f"{regions} of them", start)
            if isolated and version >= 2:
                number, inner = cursor.section(tables.start)
                if number != IR:
                    raise cursor.error("an IR section for the regions", f"section {number}", at)
                cursor.at, cursor.end = inner.at, inner.end
            stack.append(_Frame(regions, end, cursor.end))
    return counts


def _varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    first = data[at]
    if first & 1:
        return first >> 1, at + 1
    if first == 0:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    size = (first & -first).bit_length()
    return int.from_bytes(data[at : at + size], "little") >> size, at + size


def _block(cursor: Cursor, tables: Tables, frame: _Frame) -> None:
    """Read a block's header: how many operations, and its arguments."""
    version, types = tables.version, len(tables.types)
    frame.blocks -= 1
    start = cursor.at
    head = cursor.varint("the number of operations")
    frame.operations = head >> 1
    if frame.operations > cursor.end - cursor.at:
        raise cursor.error("operations that fit in their section", f"{frame.operations} of them")
    tables.spend(3 + frame.operations, start)  # a block costs as much as an operation or two
    if not head & 1:
        return
    count = cursor.count("block arguments")
    tables.spend(count // 2, start)
    for _ in range(count):
        at = cursor.at
        kind = cursor.varint("the type of a block argument")
        located = True
        if version >= 4:
            kind, located = kind >> 1, bool(kind & 1)
        if kind >= types:
            raise cursor.error(f"the number of one of {types} types", str(kind), at)
        if located:
            cursor.varint("the location of a block argument")
    if version >= 3 and cursor.byte("whether there are use lists"):
        _use_lists(cursor, tables, count)


def _use_lists(cursor: Cursor, tables: Tables, values: int) -> None:
    """Step over the order in which values are used."""
    for _ in range(1 if values <= 1 else cursor.count("use lists", 2)):
        if values > 1:
            cursor.varint("the number of a value")
        at = cursor.at
        count = cursor.varint("the number of uses") >> 1
        if count > cursor.end - cursor.at:
            raise cursor.error("uses that fit in their section", f"{count} of them", at)
        tables.spend(1 + count // 3, at)
        for _ in range(count):
            cursor.varint("a use")
