"""A place in the bytecode from which varints and sections are read, never past the end of what they are in."""

from __future__ import annotations

from export_core.artifact.errors import ArtifactError

STRINGS, DIALECTS, ATTR_TYPES, ATTR_TYPE_OFFSETS, IR, RESOURCES, RESOURCE_OFFSETS, DIALECT_VERSIONS, PROPERTIES = range(
    9
)
SECTION_NAMES = (
    "string", "dialect", "attribute and type", "attribute and type offset", "IR", "resource", "resource offset",
    "dialect versions", "properties",
)  # fmt: skip
_SECTIONS = tuple(f"the {name} section" for name in SECTION_NAMES)


class Cursor:
    """A place in the bytes, and the end that it may not pass. All positions count from the start of the file."""

    __slots__ = ("at", "data", "end", "name")

    def __init__(self, data: bytes | bytearray, at: int, end: int, name: str):
        self.data = data
        self.at = at
        self.end = end
        self.name = name

    def error(self, expected: str, found: str, at: int | None = None, **more: str) -> ArtifactError:
        """Return the error for what is found here."""
        return ArtifactError(expected, found, self.at if at is None else at, name=self.name, **more)

    def byte(self, what: str) -> int:
        """Read one byte."""
        if self.at >= self.end:
            raise self.error(what, "the end of its section")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self, what: str) -> int:
        """Read a prefix varint: the trailing zeros of the first byte tell how many bytes follow."""
        at = self.at
        if at >= self.end:
            raise self.error(what, "the end of its section")
        first = self.data[at]
        if first & 1:
            self.at = at + 1
            return first >> 1
        # A zero byte has no bit to mark the length: eight whole bytes follow, and nothing is shifted out of them.
        more = 8 if first == 0 else (first & -first).bit_length() - 1
        if at + more >= self.end:
            raise self.error(f"{more + 1} bytes of {what}", "the end of its section")
        self.at = at + more + 1
        if first == 0:
            return int.from_bytes(self.data[at + 1 : at + 9], "little")
        return int.from_bytes(self.data[at : at + more + 1], "little") >> (more + 1)

    def signed(self, what: str) -> int:
        """Read a zigzag varint."""
        value = self.varint(what)
        return (value >> 1) ^ -(value & 1)

    def count(self, what: str, least: int = 1) -> int:
        """Read how many of something follow, each at least `least` bytes long."""
        at = self.at
        if at < self.end and (first := self.data[at]) & 1:  # nearly every number: without a text for an error
            self.at = at + 1
            value = first >> 1
        else:
            value = self.varint(f"the number of {what}")
        # Checked before the caller loops: nine bytes can claim 2**64 elements.
        if value * least > self.end - self.at:
            left = self.end - self.at
            raise self.error(f"{what} that fit in the {left} bytes that are left", f"{value} of them", at)
        return value

    def take(self, length: int, what: str) -> Cursor:
        """Step over `length` bytes and return a cursor on them."""
        if length > self.end - self.at:
            raise self.error(f"{length} bytes of {what}", f"{self.end - self.at} bytes")
        part = Cursor(self.data, self.at, self.at + length, self.name)
        self.at += length
        return part

    def index(self, count: int, what: str) -> int:
        """Read the number of one of `count` things."""
        at = self.at
        if at < self.end and (first := self.data[at]) & 1:  # nearly every number: without a text for an error
            self.at = at + 1
            value = first >> 1
        else:
            value = self.varint(f"the number of a {what}")
        if value >= count:
            raise self.error(f"the number of one of {count} {what}s", str(value), at)
        return value

    def section(self, base: int) -> tuple[int, Cursor]:
        """Read a section's header; return its id and a cursor on its bytes. Alignment counts from byte `base`."""
        at = self.at
        head = self.byte("a section")
        number = head & 0x7F
        if number > PROPERTIES:
            raise self.error("a section id from 0 to 8", str(number), at)
        what = _SECTIONS[number]
        length = self.varint("the length of a section")
        # The rule of LLVM's documentation. No file seen so far has an aligned section, so only made-up bytes test it.
        if head & 0x80:
            alignment = self.varint(f"the alignment of {what}")
            if alignment == 0 or alignment & (alignment - 1) or alignment > 1 << 16:
                raise self.error("an alignment that is a power of two up to 65536", str(alignment), at)
            while (self.at - base) % alignment:
                if self.byte(f"the padding of {what}") != 0xCB:
                    raise self.error(f"padding 0xCB before {what}", "another byte", self.at - 1)
        return number, self.take(length, what)
