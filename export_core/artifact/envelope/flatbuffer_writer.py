"""The writer of flatbuffers. Tables come before what they point to: readers demand that offsets point forward."""

from __future__ import annotations

from struct import pack, pack_into
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Scalar:
    """A number in a table; `form` is its struct letter."""

    __slots__ = ("form", "value")

    def __init__(self, form: str, value: int):
        self.form = form
        self.value = value


class Blob:
    """Bytes behind an offset; text is UTF-8 with a final zero."""

    __slots__ = ("align", "data", "zero")

    def __init__(self, data: bytes | str, align: int = 4):
        self.zero = isinstance(data, str)
        self.data = data.encode() if isinstance(data, str) else data
        self.align = align


class Vector:
    """A vector of tables or of texts."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[NewTable | Blob]):
        self.items = items


class Numbers:
    """A vector of scalars; `form` is their struct letter."""

    __slots__ = ("form", "values")

    def __init__(self, form: str, values: tuple[int, ...]):
        self.form = form
        self.values = values


class NewTable:
    """A table to write: the index of each field by name, and the fields. A field that is None is not written."""

    __slots__ = ("fields", "order")

    def __init__(self, order: dict[str, int], /, **fields: Scalar | Blob | Vector | Numbers | NewTable | None):
        self.order = order
        self.fields = fields


_SIZE = {"b": 1, "B": 1, "h": 2, "H": 2, "I": 4}


def build(root: NewTable) -> bytes:
    """Return the bytes of a flatbuffer with this root table."""
    out = bytearray(4)
    # Places of offsets, and what each points to: the offset is known when its target is written, always further on.
    todo: list[tuple[int, Scalar | Blob | Vector | Numbers | NewTable]] = [(0, root)]
    while todo:
        place, node = todo.pop()
        if isinstance(node, NewTable):
            _pad(out, 4)
            start = _table(out, node, todo)
        elif isinstance(node, Blob):
            _pad(out, node.align, 4)  # what is aligned is the data, behind four bytes of length
            start = len(out)
            out += pack("<I", len(node.data)) + node.data + (b"\0" if node.zero else b"")
        elif isinstance(node, Numbers):
            _pad(out, max(4, _SIZE[node.form]))
            start = len(out)
            out += pack(f"<I{len(node.values)}{node.form}", len(node.values), *node.values)
        elif isinstance(node, Vector):
            _pad(out, 4)
            start = len(out)
            out += pack("<I", len(node.items)) + bytes(4 * len(node.items))
            todo += [(start + 4 + 4 * i, item) for i, item in reversed(list(enumerate(node.items)))]
        else:
            raise TypeError(f"a scalar has no offset: {node!r}")
        pack_into("<I", out, place, start - place)
    return bytes(out)


def _size(value: object) -> int:
    return _SIZE[value.form] if isinstance(value, Scalar) else 4


def _pad(out: bytearray, align: int, ahead: int = 0) -> None:
    out += bytes(-(len(out) + ahead) % align)


def _table(
    out: bytearray,
    table: NewTable,
    todo: list[tuple[int, Scalar | Blob | Vector | Numbers | NewTable]],
) -> int:
    """Write a vtable and its table; put what the table points to on the list."""
    fields: list[tuple[int, Scalar | Blob | Vector | Numbers | NewTable]] = []
    for name, value in table.fields.items():
        if value is not None:
            fields.append((table.order[name], value))
    slots = max((index for index, _ in fields), default=-1) + 1
    # Wide fields first: a table starts at a multiple of 4, so each is aligned to its own width without padding.
    sized = sorted(fields, key=lambda field: -_size(field[1]))
    offsets = [0] * slots
    inline = 4
    for index, value in sized:
        offsets[index] = inline
        inline += _size(value)
    vtable = len(out)
    out += pack(f"<HH{slots}H", 4 + 2 * slots, inline, *offsets)
    _pad(out, 4)
    start = len(out)
    out += pack("<i", start - vtable) + bytes(inline - 4)
    later = []
    for index, value in fields:
        if isinstance(value, Scalar):
            pack_into("<" + value.form, out, start + offsets[index], value.value)
        else:
            later.append((start + offsets[index], value))
    todo += reversed(later)  # the last is written first
    return start
