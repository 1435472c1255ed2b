"""The reader of untrusted flatbuffers: every offset is checked, every visit to an object counted."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from export_core.artifact.errors import LIMIT, ArtifactError
from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


_U16 = Struct("<H").unpack_from
_I32 = Struct("<i").unpack_from
_U32 = Struct("<I").unpack_from
_FORMS = {form: Struct("<" + form) for form in "bBhHI"}

# Different values that equal ones are looked up in: what a writer repeats is less, and each takes memory.
MOST_SHARED = 1024
MOST_VISITS = 750_000  # what is read in a second; a function of 25,000 arguments and as many results needs less
MAX_STRING = 1 << 20  # bytes of one name; the longest field that may be long, the module, is not read as a string


class Buffer:
    """The bytes of one flatbuffer, and the number of objects that may still be visited in them.

    Offsets only point forward, so tables cannot form cycles. But two references can share a table, and 40 shared levels
    are 2**40 visits. JAX's writer never shares a table. So the size of the file and `MOST_VISITS` limit how many visits
    are allowed.
    """

    __slots__ = ("data", "left", "most", "name", "size", "texts", "vtables")

    def __init__(self, data: bytes | bytearray, name: str):
        self.data = data
        self.size = len(data)
        self.name = name
        self.texts: dict[bytes, str] = {}  # equal texts are one object
        self.vtables: dict[int, tuple[int, tuple[int, ...]]] = {}  # tables of a kind share theirs
        self.most = 2048 + min(self.size // 4, MOST_VISITS)
        self.left = self.most

    def root(self) -> Table:
        """Return the root table, which is an Exported."""
        return Table(self, self.follow(0, "the root table"), "Exported")

    def spend(self, visits: int, at: int) -> None:
        """Count visits to objects at byte `at`.

        Raises `ArtifactError` for more visits than a file of this size can need.
        """
        self.left -= visits
        if self.left < 0:
            expected = f"at most {self.most} objects in {self.size} bytes"
            raise ArtifactError(expected, "more", at, name=self.name, advice=LIMIT)

    def need(self, at: int, count: int, what: str) -> None:
        """Raise `ArtifactError` unless `count` bytes from byte `at` on are inside the file; `what` names the bytes."""
        if at < 0 or at + count > self.size:
            found = f"a place outside the file, which has {self.size} bytes"
            if 0 <= at <= self.size:
                found = f"the end of the file after {self.size - at}"
            raise ArtifactError(f"{count} bytes of {what}", found, at, name=self.name)

    def follow(self, at: int, what: str) -> int:
        """Return the position to which the unsigned offset at byte `at` points; `what` names the target in errors."""
        if at + 4 > self.size:  # looked at before the message is made: this is asked for every field
            self.need(at, 4, f"the offset of {what}")
        # An offset of 0 would point at itself. No writer makes one: a field without a value is left out of its vtable.
        target: int = at + _U32(self.data, at)[0]
        if target == at or target + 4 > self.size:
            raise ArtifactError(f"the offset of {what} to point inside the file", f"byte {target}", at, name=self.name)
        return target

    def string(self, at: int, what: str) -> str:
        """Return the UTF-8 string whose offset is at byte `at`; `what` names the string in errors."""
        raw = bytes(self.blob(at, what))
        if (known := self.texts.get(raw)) is not None:
            return known
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise ArtifactError(f"UTF-8 text in {what}", f"byte 0x{raw[error.start]:02x}", at, name=self.name) from None
        self.spend(2, at)
        if len(self.texts) < MOST_SHARED:
            self.texts[raw] = text
        return text

    def blob(self, at: int, what: str) -> bytes | bytearray:
        """Return the bytes of the byte vector or string whose offset is at byte `at`; `what` names them in errors.

        Raises `ArtifactError` for more than `MAX_STRING` bytes.
        """
        start, length = self.span(at, what)
        if length > MAX_STRING:
            found = f"{length} bytes"
            raise ArtifactError(f"at most {MAX_STRING} bytes in {what}", found, at, name=self.name, advice=LIMIT)
        self.spend(1 + length // 16, at)
        return self.data[start : start + length]

    def span(self, at: int, what: str, width: int = 1) -> tuple[int, int]:
        """Return where the elements of the vector whose offset is at byte `at` begin, and the number of elements.

        Each element takes `width` bytes; `what` names the vector in errors.
        """
        start = self.follow(at, what)
        length: int = _U32(self.data, start)[0]
        self.need(start + 4, length * width, what)
        return start + 4, length


class Table:
    """A table of a flatbuffer, whose fields are identified by their indexes in the schema and thus in the vtable."""

    __slots__ = ("buffer", "kind", "offsets", "position")

    def __init__(self, buffer: Buffer, position: int, kind: str):
        # `spend` and, below, `need` are only called to fail: each table comes through here, and a call costs as much as
        # the check that it makes.
        buffer.left -= 2
        if buffer.left < 0:
            buffer.spend(0, position)
        size = buffer.size
        if position + 4 > size:
            buffer.need(position, 4, f"the table {kind}")
        vtable = position - _I32(buffer.data, position)[0]
        if vtable < 0 or vtable + 4 > size:
            buffer.need(vtable, 4, f"the vtable of {kind}")
        # A writer gives equal tables one vtable: thousands of avals have a handful.
        known = buffer.vtables.get(vtable)
        if known is None:
            size, inline = _U16(buffer.data, vtable)[0], _U16(buffer.data, vtable + 2)[0]
            if size < 4 or size % 2 or size > 4 + 2 * 512:
                found = f"{size} bytes"
                raise ArtifactError(f"a vtable of {kind} of 4 to 1028 bytes", found, vtable, name=buffer.name)
            buffer.need(vtable, size, f"the vtable of {kind}")
            known = inline, Struct(f"<{(size - 4) // 2}H").unpack_from(buffer.data, vtable + 4)
            if len(buffer.vtables) < 256:  # there are 11 kinds of tables, with a few sets of fields each
                buffer.vtables[vtable] = known
        if position + known[0] > buffer.size:
            buffer.need(position, known[0], f"the fields of {kind}")
        self.buffer = buffer
        self.position = position
        self.kind = kind
        self.offsets: tuple[int, ...] = known[1]

    def error(self, expected: str, found: str, **more: str) -> ArtifactError:
        """Return the error for content that is not as expected, at the position of this table."""
        return ArtifactError(expected, found, self.position, name=self.buffer.name, **more)

    def __contains__(self, index: int) -> bool:
        return index < len(self.offsets) and self.offsets[index] != 0

    def present(self) -> list[int]:
        """Return the indexes of the fields that are present in this table."""
        return [index for index, offset in enumerate(self.offsets) if offset]

    def at(self, index: int) -> int:
        """Return the position in the file of field `index`, which must be present."""
        return self.position + self.offsets[index]

    def number(self, index: int, form: str) -> int:
        """Return the number in field `index`, or 0 if the field is missing.

        `form` is the letter of the number's type in Python's module `struct`: b i8, B u8, h i16, H u16, I u32.
        """
        if index not in self:
            return 0
        layout = _FORMS[form]
        at = self.at(index)
        if at + layout.size > self.buffer.size:
            self.buffer.need(at, layout.size, f"field {index} of {self.kind}")
        value: int = layout.unpack_from(self.buffer.data, at)[0]
        return value

    def string(self, index: int) -> str | None:
        """Return the string in field `index`, or None if the field is missing."""
        return self.buffer.string(self.at(index), f"field {index} of {self.kind}") if index in self else None

    def text(self, index: int, what: str) -> str:
        """Return the string in field `index`.

        Raises `ArtifactError`, which names the string `what`, if the field is missing.
        """
        if index not in self:
            raise self.error(f"{what} (field {index} of {self.kind})", "none")
        return self.buffer.string(self.at(index), what)

    def table(self, index: int, kind: str) -> Table | None:
        """Return the table of type `kind` in field `index`, or None if the field is missing."""
        return Table(self.buffer, self.buffer.follow(self.at(index), kind), kind) if index in self else None

    def blob(self, index: int) -> bytes | None:
        """Return the byte vector in field `index`, or None if the field is missing."""
        return bytes(self.buffer.blob(self.at(index), f"field {index} of {self.kind}")) if index in self else None

    def tables(self, index: int, kind: str) -> Iterator[Table]:
        """Yield the tables of type `kind` in the vector in field `index`; nothing if the field is missing."""
        for at in self._references(index):
            yield Table(self.buffer, self.buffer.follow(at, kind), kind)

    def strings(self, index: int) -> tuple[str, ...]:
        """Return the strings in the vector in field `index`; empty if the field is missing."""
        what = f"field {index} of {self.kind}"
        return tuple(self.buffer.string(at, what) for at in self._references(index))

    def numbers(self, index: int, form: str) -> tuple[int, ...]:
        """Return the numbers in the vector in field `index`, of the type `form`; empty if the field is missing."""
        if index not in self:
            return ()
        width = _FORMS[form].size
        start, length = self.buffer.span(self.at(index), f"field {index} of {self.kind}", width)
        self.buffer.spend(2 * length if width == 2 else length, start)  # a number takes 40 bytes, a small one 8
        values: tuple[Any, ...] = Struct(f"<{length}{form}").unpack_from(self.buffer.data, start)
        return values

    def _references(self, index: int) -> range:
        if index not in self:
            return range(0)
        start, length = self.buffer.span(self.at(index), f"field {index} of {self.kind}", 4)
        self.buffer.spend(length, start)
        return range(start, start + 4 * length, 4)
