"""The layout of MLIR bytecode, versions 0 to 6: header, sections, and the tables that its operations refer to.

The layout follows the encoding that LLVM documents for MLIR and, where that is silent, what jaxlib's own files show.
"""

from array import array
from bisect import bisect_right

from export_core.artifact.errors import LIMIT, ArtifactError
from export_core.base.text import plural

(
    STRINGS, DIALECTS, ATTR_TYPES, ATTR_TYPE_OFFSETS, IR, RESOURCES, RESOURCE_OFFSETS, DIALECT_VERSIONS, PROPERTIES,
) = range(9)  # fmt: skip
SECTION_NAMES = (
    "string", "dialect", "attribute and type", "attribute and type offset", "IR", "resource", "resource offset",
    "dialect versions", "properties",
)  # fmt: skip
_SECTIONS = tuple(f"the {name} section" for name in SECTION_NAMES)
ALIGNED = 0x80  # In the first byte of a section, beside its kind: its alignment and its padding follow its length.


class Cursor:
    """A position in the bytes of a module, and the end up to which it may read.

    Positions count from the start of the file.
    """

    __slots__ = ("at", "data", "end", "name")

    def __init__(self, data: bytes | bytearray, at: int, end: int, name: str):
        self.data = data
        self.at = at
        self.end = end
        self.name = name

    def error(self, expected: str, found: str, at: int | None = None, **more: str) -> ArtifactError:
        """Return the error for bytes that are not as expected, at byte `at` or, if it is None, at the cursor."""
        return ArtifactError(expected, found, self.at if at is None else at, name=self.name, **more)

    def byte(self, what: str) -> int:
        """Read one byte and step over it; `what` names the byte in the error if the section has no more bytes."""
        if self.at >= self.end:
            raise self.error(what, "the end of the section")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self, what: str) -> int:
        """Read a prefix varint of MLIR and step over it; `what` names the number in errors.

        The number of trailing zero bits of the first byte is the number of bytes that follow.
        """
        at = self.at
        if at >= self.end:
            raise self.error(what, "the end of the section")
        first = self.data[at]
        if first & 1:
            self.at = at + 1
            return first >> 1
        # A zero byte has no bit to mark the length: eight whole bytes follow, and nothing is shifted out of them.
        more = 8 if first == 0 else (first & -first).bit_length() - 1
        if at + more >= self.end:
            raise self.error(f"{more + 1} bytes of {what}", "the end of the section")
        self.at = at + more + 1
        if first == 0:
            return int.from_bytes(self.data[at + 1 : at + 9], "little")
        return int.from_bytes(self.data[at : at + more + 1], "little") >> (more + 1)

    def signed(self, what: str) -> int:
        """Read a zigzag varint, which stands for a signed number; `what` names the number in errors."""
        value = self.varint(what)
        return (value >> 1) ^ -(value & 1)

    def count(self, what: str, least: int = 1) -> int:
        """Read the number of elements that follow, each of which takes at least `least` bytes.

        `what` names the elements in errors. Raises `ArtifactError` if so many elements do not fit into the bytes that
        are left.
        """
        at = self.at
        if at < self.end and (first := self.data[at]) & 1:  # most numbers; needs no text for an error
            self.at = at + 1
            value = first >> 1
        else:
            value = self.varint(f"the number of {what}")
        # Checked before the caller loops: nine bytes can claim 2**64 elements.
        if value * least > self.end - self.at:
            left = self.end - self.at
            raise self.error(f"{what} that fit in the {left} bytes that are left", f"a count of {value}", at)
        return value

    def take(self, length: int, what: str) -> "Cursor":
        """Step over `length` bytes and return a cursor on these bytes; `what` names the bytes in errors."""
        if length > self.end - self.at:
            raise self.error(f"{length} bytes of {what}", f"{self.end - self.at} bytes")
        part = Cursor(self.data, self.at, self.at + length, self.name)
        self.at += length
        return part

    def index(self, count: int, what: str) -> int:
        """Read an index. Raises `ArtifactError`, which names the element `what`, if the index is not below `count`."""
        at = self.at
        if at < self.end and (first := self.data[at]) & 1:  # most numbers; needs no text for an error
            self.at = at + 1
            value = first >> 1
        else:
            value = self.varint(f"an index in the table of {what}s")
        if value >= count:
            raise self.error(f"an index below {count} in the table of {what}s", str(value), at)
        return value

    def section(self, base: int) -> "tuple[int, Cursor]":
        """Read a section's header, step over the section, and return its id and a cursor on its bytes.

        Alignment counts from byte `base`.
        """
        at = self.at
        head = self.byte("a section")
        number = head & ~ALIGNED
        if number > PROPERTIES:
            raise self.error("a section id from 0 to 8", str(number), at)
        what = _SECTIONS[number]
        length = self.varint("the length of a section")
        # The rule of LLVM's documentation. No file seen so far has an aligned section, so only made-up bytes test it.
        if head & ALIGNED:
            alignment = self.varint(f"the alignment of {what}")
            if alignment == 0 or alignment & (alignment - 1) or alignment > 1 << 16:
                raise self.error("an alignment that is a power of two up to 65536", str(alignment), at)
            while (self.at - base) % alignment:
                if self.byte(f"the padding of {what}") != 0xCB:
                    raise self.error(f"padding 0xCB before {what}", "another byte", self.at - 1)
        return number, self.take(length, what)


MAGIC = b"ML\xefR"
NEWEST_BYTECODE = 6  # what StableHLO has written for its versions from 0.15 on, and still does
# Operations, strings, attributes and so on that are read in a second. Real modules take 10 to 30 bytes for an operation
# with all that belongs to it, and are mostly smaller than this by far; one in 16 bytes is enough for the largest.
MOST_PARTS = 400_000
MAX_NAMES = 4096  # dialects, and kinds of operations: all of MLIR has fewer
MAX_NAME = 256  # bytes of the name of a dialect or of an operation
TEXT = -1  # in place of the code of an attribute or type that is encoded as text
MAX_PROPERTY = 512  # bytes of an operation's properties: a number for each of a few attributes


class Entries:
    """The positions of the bytes of all attributes, or of all types, in a module.

    To save memory, only the end of each entry is stored, in a packed array, and the range of entries of each dialect.
    """

    def __init__(self, first: int, code: str) -> None:
        self.first = first
        # Ends alone: each entry starts where the one before ends. Objects would take far more memory than the file.
        self.ends = array(code)  # end << 1 | has a custom encoding
        self.groups: list[tuple[int, int, int]] = []  # dialect, first entry, one past the last
        self.firsts: list[int] = []  # the first entry of each group, by which one is found
        self.codes: set[tuple[str, int]] | None = None  # what `Tables.codes` returned: several ask for it

    def __len__(self) -> int:
        return len(self.ends)

    def entry(self, index: int) -> tuple[int, int, int, bool]:
        """Return where entry `index` is in the bytes; the caller must have checked the index.

        The result is the number of the entry's dialect, its first byte, the byte after its last byte, and whether it is
        encoded in binary rather than as text.
        """
        start = self.ends[index - 1] >> 1 if index else self.first
        dialect, _, _ = self.groups[bisect_right(self.firsts, index) - 1]
        value = self.ends[index]
        return dialect, start, value >> 1, bool(value & 1)


class Tables:
    """The header, sections and tables of one module, whose operations are not read.

    Raises `ArtifactError` if the bytes are not MLIR bytecode of version 0 to 6, or if sections contradict each other.
    """

    def __init__(self, data: bytes | bytearray, start: int, length: int, name: str):
        self.data, self.start, self.name = data, start, name
        self.most = max(MOST_PARTS, length // 16)
        self.left = self.most
        # Ends are shifted by one bit for the flag, so 4 bytes hold them only in files below 1 GiB.
        self.array_code = "I" if start + length < 1 << 30 else "Q"
        cursor = Cursor(data, start, start + length, name)
        if bytes(data[start : start + 4]) != MAGIC or length < 6:
            found = bytes(data[start : start + min(length, 4)]).hex(" ") or "nothing"
            raise cursor.error("MLIR bytecode (4D 4C EF 52)", found)
        cursor.at += 4
        self.version = cursor.varint("the bytecode version")
        if self.version > NEWEST_BYTECODE:
            knows = "This reader knows bytecode versions 0 to 6"
            advice = f"{knows}: update it, or read the file with the jaxlib that wrote it."
            raise cursor.error("a bytecode version from 0 to 6", str(self.version), start + 4, advice=advice)
        # Real names are short (StableHLO_v1.18.0); the limit stops a search through a whole file without a zero byte.
        stop = data.find(b"\0", cursor.at, min(cursor.end, cursor.at + 4096))
        if stop < 0:
            raise cursor.error("the producer's name and a zero byte", "none")
        self.producer = bytes(data[cursor.at : stop]).decode("utf-8", "replace")
        cursor.at = stop + 1
        self.sections: dict[int, Cursor] = {}
        while cursor.at < cursor.end:
            at = cursor.at
            number, section = cursor.section(start)
            if number in self.sections:
                raise cursor.error("each section once", f"a second {SECTION_NAMES[number]} section", at)
            self.sections[number] = section
        # The two resource sections are in every file too, empty in all that were seen: nothing here reads them.
        for number in (STRINGS, DIALECTS, ATTR_TYPES, ATTR_TYPE_OFFSETS, IR):
            if number not in self.sections:
                raise cursor.error(f"a section of kind {SECTION_NAMES[number]}", "none", cursor.end)
        if self.version >= 5 and PROPERTIES not in self.sections:
            raise cursor.error("a properties section (bytecode 5 and later)", "none", cursor.end)
        self._read_strings(self.cursor(STRINGS))
        self._read_dialects(self.cursor(DIALECTS))
        self._read_offsets(self.cursor(ATTR_TYPE_OFFSETS))
        self.property_offsets = array(self.array_code)
        if PROPERTIES in self.sections:
            self._read_properties(self.cursor(PROPERTIES))

    def error(self, expected: str, found: str, at: int, **more: str) -> ArtifactError:
        """Return the error for bytes of the module that are not as expected, at byte `at`."""
        return ArtifactError(expected, found, at, name=self.name, **more)

    def cursor(self, number: int) -> Cursor:
        """Return a new cursor on the section with this id, such as `IR`."""
        section = self.sections[number]
        return Cursor(self.data, section.at, section.end, self.name)

    def spend(self, parts: int, at: int) -> None:
        """Count parts that are about to be read at byte `at`, in units of the time that reading an operation takes.

        Raises `ArtifactError` if the module needs more than its size allows.
        """
        self.left -= parts
        if self.left < 0:
            expected = f"at most {self.most} operations, strings, attributes and the like"
            raise self.error(expected, "more", at, advice=LIMIT)

    def _read_strings(self, cursor: Cursor) -> None:
        count = cursor.count("strings", 2)
        self.spend(count, cursor.at)
        sizes_from = cursor.at
        total = 0
        self.string_ends = array(self.array_code, (0,)) * count
        # The sizes come last string first, each with its final zero byte. LLVM's code says so, its documentation not.
        for index in range(count - 1, -1, -1):
            self.string_ends[index] = cursor.end - total
            size = cursor.varint("a string's length")
            if size == 0:
                raise cursor.error("a string's length of at least 1, which counts its final zero byte", "0")
            total += size
            if total > cursor.end - sizes_from:
                raise cursor.error("strings that fit in their section", f"a string of {size} bytes")
        if cursor.end - cursor.at != total:
            found = f"{cursor.end - cursor.at} bytes"
            raise cursor.error(f"{total} bytes of strings, as their lengths say", found, sizes_from)
        self.strings_from = cursor.at

    def string_bytes(self, index: int) -> bytes:
        """Return string `index` without its final zero; the caller must have checked the index."""
        start = self.string_ends[index - 1] if index else self.strings_from
        return bytes(self.data[start : self.string_ends[index] - 1])

    def string(self, index: int, what: str) -> str:
        """Return string `index` as text. Raises `ArtifactError`, which names the string `what`, if it is not UTF-8."""
        raw = self.string_bytes(index)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            at = (self.string_ends[index - 1] if index else self.strings_from) + error.start
            raise self.error(f"UTF-8 text in {what}", f"byte 0x{raw[error.start]:02x}", at) from None

    def _read_dialects(self, cursor: Cursor) -> None:
        self.dialects: list[str] = []
        for _ in range(self._few(cursor, "dialects")):
            at = cursor.at
            head = cursor.varint("a dialect's name")
            # Bytecode 1 added a flag here; what is in a dialect's version does not change how VHLO is read.
            number, versioned = (head >> 1, head & 1) if self.version >= 1 else (head, 0)
            self.dialects.append(self._short(number, "a dialect's name", at))
            if versioned:
                kind, _ = cursor.section(self.start)
                if kind != DIALECT_VERSIONS:
                    raise cursor.error("the dialect versions section", _SECTIONS[kind], at)
        if self.version >= 4:
            cursor.varint("the number of operation names")  # the total; each dialect has its own number below
        self.op_names: list[str] = []
        self.op_registered: list[bool] = []
        names: dict[tuple[str, int], str] = {}
        while cursor.at < cursor.end:
            dialect = self.dialects[cursor.index(len(self.dialects), "dialect")]
            for _ in range(self._few(cursor, "operation names", len(self.op_names))):
                at = cursor.at
                head = cursor.varint("an operation's name")
                # Bytecode 5 added the flag; before it, every operation counts as registered.
                number, registered = (head >> 1, bool(head & 1)) if self.version >= 5 else (head, True)
                # One text for each name, however many entries repeat it: 4,096 times 256 bytes would be a megabyte.
                key = (dialect, number)
                if key not in names:
                    names[key] = f"{dialect}.{self._short(number, 'an operation name', at)}"
                self.op_names.append(names[key])
                self.op_registered.append(registered)

    def _few(self, cursor: Cursor, what: str, before: int = 0) -> int:
        at = cursor.at
        count = cursor.count(what)
        if before + count > MAX_NAMES:
            raise cursor.error(f"at most {MAX_NAMES} {what}", str(before + count), at, advice=LIMIT)
        return count

    def _short(self, number: int, what: str, at: int) -> str:
        if number >= len(self.string_ends):
            raise self.error(f"an index below {len(self.string_ends)} in the table of strings", str(number), at)
        length = self.string_ends[number] - (self.string_ends[number - 1] if number else self.strings_from)
        if length > MAX_NAME:
            raise self.error(f"at most {MAX_NAME} bytes in {what}", f"{length} bytes", at, advice=LIMIT)
        return self.string(number, what)

    def _read_offsets(self, cursor: Cursor) -> None:
        data = self.sections[ATTR_TYPES]
        counts = [cursor.count("attributes"), cursor.count("types")]
        self.spend(sum(counts) // 2, cursor.at)  # half an operation each: an entry is only a length
        first, tables = data.at, []
        for count, what in zip(counts, ("attribute", "type"), strict=True):
            table = Entries(first, self.array_code)
            end, ends, length = first, table.ends, f"the length of a {what}"
            while len(ends) < count:
                dialect = cursor.index(len(self.dialects), "dialect")
                at = cursor.at
                size = cursor.varint(f"the number of {what}s")
                if size > count - len(ends):
                    raise cursor.error(f"at most {count - len(ends)} more {what}s", str(size), at)
                table.groups.append((dialect, len(ends), len(ends) + size))
                table.firsts.append(len(ends))
                most = 1024 + 16 * len(self.dialects)  # a writer makes one for each dialect and varint size
                if len(table.groups) > most:
                    raise cursor.error(f"at most {most} groups of {what}s by dialect", "more", at, advice=LIMIT)
                for _ in range(size):
                    head = cursor.varint(length)
                    end += head >> 1
                    if end > data.end:
                        found = f"one that ends {plural(end - data.end, 'byte')} past it"
                        raise cursor.error(f"{what}s that fit in their section", found)
                    ends.append(end << 1 | head & 1)
            first = end
            tables.append(table)
        self.attributes, self.types = tables

    def _read_properties(self, cursor: Cursor) -> None:
        at = cursor.at
        count = cursor.count("properties")
        nbytes = cursor.end - cursor.at
        most = (nbytes + 1024) // 3  # each is there once: nearly all take two bytes and their length
        if count > most:
            expected = f"at most {most} properties in {nbytes} bytes, since no two are equal"
            raise cursor.error(expected, f"{count} properties", at, advice=LIMIT)
        self.spend(count, at)
        # Only stepped over: what is in them depends on the operation that refers to them.
        data, end = cursor.data, cursor.end
        for _ in range(count):
            at = cursor.at
            self.property_offsets.append(at)
            if at < end and (first := data[at]) & 1 and (after := at + 1 + (first >> 1)) <= end:
                cursor.at = after  # nearly all: two calls are half of reading a small file's properties
            else:
                cursor.take(cursor.varint("the length of properties"), "properties")

    def codes(self, entries: Entries) -> set[tuple[str, int]]:
        """Return the different pairs of dialect and code among all attributes or all types of the module."""
        if entries.codes is not None:
            return entries.codes
        data, ends = self.data, entries.ends
        pairs: set[tuple[str, int]] = set()
        start = entries.first
        for dialect, first, last in entries.groups:
            found: set[int] = set()
            for end_and_bit in ends[first:last]:
                # The lowest bit of an end says whether it has an encoding of its own.
                end, is_encoded = end_and_bit >> 1, end_and_bit & 1
                if not is_encoded:
                    code = TEXT
                elif start < end and (byte := data[start]) & 1:  # nearly every code is a varint of one byte
                    code = byte >> 1
                else:
                    code = Cursor(data, start, end, self.name).varint("an attribute's or type's code")
                found.add(code)
                start = end
            name = self.dialects[dialect]
            pairs.update([(name, code) for code in found])
        entries.codes = pairs
        return pairs

    def properties(self, index: int, count: int) -> list[int]:
        """Return the attribute indexes in entry `index` of the properties, in alphabetical order of attribute names.

        Raises `ArtifactError` if there are fewer than `count` attributes, or if the entry has more than `MAX_PROPERTY`
        bytes.
        """
        cursor = Cursor(self.data, self.property_offsets[index], self.sections[PROPERTIES].end, self.name)
        start = cursor.at
        cursor = cursor.take(cursor.varint("the length of properties"), "properties")
        if cursor.end - cursor.at > MAX_PROPERTY:
            found = f"{cursor.end - cursor.at} bytes"
            raise cursor.error(f"properties of at most {MAX_PROPERTY} bytes", found, advice=LIMIT)
        numbers = []
        while cursor.at < cursor.end:
            numbers.append(cursor.index(len(self.attributes), "attribute"))
        if len(numbers) < count:
            raise cursor.error(f"{count} properties", str(len(numbers)), start)
        return numbers
