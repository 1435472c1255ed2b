"""The reader of untrusted protobufs: every length is checked, every field counted.

A message is not copied: its fields are places in the bytes of the file, so that an error names the byte.
"""

from __future__ import annotations

from collections.abc import Iterator

from export_core.artifact.errors import LIMIT, ArtifactError
from export_core.base.named_tuple import NamedTuple

VARINT, FIXED_64, SPAN, FIXED_32 = 0, 1, 2, 5  # Wire types. Groups (3 and 4) are in no protobuf that is read here.
MOST_FIELDS = 1_000_000  # what is read in a second
NUMBER = 8  # what a number of a packed list costs, in fields, since it is stored
MAX_TEXT = 1 << 16  # bytes of a name
_SIZES = {FIXED_64: 8, FIXED_32: 4}
_WIRE_TYPES = {VARINT: "varint", FIXED_64: "64 bits", SPAN: "length-delimited", FIXED_32: "32 bits"}


def _words(wire: int) -> str:
    """Return a wire type in words, such as "wire type 2 (length-delimited)"."""
    return f"wire type {wire} ({_WIRE_TYPES[wire]})"


class Field(NamedTuple):
    """A field of a protobuf message: its number and type, and its value or the position of its bytes."""

    number: int  # The number of the field in its message.
    wire: int  # The wire type.
    value: int  # The value of a varint, 0 for any other field.
    start: int  # The place of the first byte of its content.
    end: int  # The place of the byte after its content.


class Wire:
    """The bytes of a protobuf, and the number of fields that may still be read from them."""

    __slots__ = ("advice", "data", "left", "most", "name")

    def __init__(self, data: bytes | bytearray, name: str, advice: str):
        self.data = data
        self.name = name  # The name of the protobuf in messages, such as its file.
        self.advice = advice  # What messages advise if the protobuf is damaged.
        self.most = 1024 + min(len(data) // 2, MOST_FIELDS)  # A field takes two bytes or more.
        self.left = self.most

    def error(self, expected: str, found: str, at: int, advice: str = "") -> ArtifactError:
        """Return the error for content that is not as expected, at byte `at` of the file."""
        return ArtifactError(expected, found, at, name=self.name, advice=advice or self.advice)

    def spend(self, at: int, fields: int = 1) -> None:
        """Count fields that are read at byte `at`. Raises `ArtifactError` for more fields than fit into the file."""
        self.left -= fields
        if self.left < 0:
            raise self.error(f"at most {self.most} fields in {len(self.data)} bytes", "more", at, LIMIT)

    def fields(self, start: int, end: int, what: str) -> Iterator[Field]:
        """Yield the fields of the message from byte `start` to byte `end`; `what` is the message's name in errors.

        Raises `ArtifactError` if a field does not fit into the message.
        """
        at = start
        while at < end:
            self.spend(at)
            tag, after = self.varint(at, end, what)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 1 << 29:
                raise self.error(f"a field of {what} with a number from 1 to {(1 << 29) - 1:,}", f"{number:,}", at)
            value, length = 0, _SIZES.get(wire, 0)
            if wire == VARINT:
                value, stop = self.varint(after, end, what)
            elif wire == SPAN:
                length, after = self.varint(after, end, what)
                stop = after + length
            elif length:
                stop = after + length
            else:
                raise self.error(f"a field of {what} with wire type 0, 1, 2 or 5", f"wire type {wire}", at)
            if stop > end:
                raise self.error(
                    f"a field of {what} that fits in the {end - after} bytes left", f"a field of {length} bytes", at
                )
            yield Field(number, wire, value, after, stop)
            at = stop

    def varint(self, at: int, end: int, what: str) -> tuple[int, int]:
        """Return the varint of at most 64 bits at byte `at`, and the position of the byte after it.

        Raises `ArtifactError` if the varint does not end before byte `end`.
        """
        value = shift = 0
        for place in range(at, min(end, at + 10)):
            byte = self.data[place]
            value |= (byte & 127) << shift
            if byte < 128:
                return value & (1 << 64) - 1, place + 1
            shift += 7
        raise self.error(f"a number in {what}", "a number that does not end", at)

    def packed(self, field: Field, what: str) -> list[int]:
        """Return the numbers in an entry of a repeated field: several if the field is packed, otherwise one."""
        if field.wire == VARINT:
            return [field.value]
        numbers, at = [], self.need(field, SPAN, what).start
        while at < field.end:
            self.spend(at, NUMBER)
            value, at = self.varint(at, field.end, what)
            numbers.append(value)
        return numbers

    def need(self, field: Field, wire: int, what: str) -> Field:
        """Return `field` if its wire type is `wire`; raise `ArtifactError` if not."""
        if field.wire != wire:
            raise self.error(f"{what} with {_words(wire)}", _words(field.wire), field.start)
        return field

    def text(self, field: Field, what: str) -> str:
        """Return the UTF-8 text in a field.

        Raises `ArtifactError` for bytes that are not UTF-8 text, and for more than `MAX_TEXT` bytes.
        """
        self.need(field, SPAN, what)
        if field.end - field.start > MAX_TEXT:
            raise self.error(
                f"at most {MAX_TEXT} bytes in {what}", f"{field.end - field.start} bytes", field.start, LIMIT
            )
        raw = bytes(self.data[field.start : field.end])
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.error(f"UTF-8 text in {what}", f"byte 0x{raw[error.start]:02x}", field.start) from None
