"""A StableHLO module as its tables and operations, which can be changed, and encoded as bytecode again.

If nothing is changed, the bytecode of a real writer comes out byte for byte (test_written_back.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from forge import section, strings, varint

from export_core.artifact.bytecode.sections import DIALECT_VERSIONS, DIALECTS, IR, PROPERTIES, Cursor, Entries, Tables

ATTRS, RESULTS, OPERANDS, SUCCESSORS, REGIONS, USES, PROPS = 1, 2, 4, 8, 16, 32, 64


@dataclass
class Entry:
    """An attribute or a type: the index of its dialect, and its bytes, which are text unless `custom` is true."""

    dialect: int
    content: bytes
    custom: bool = True


@dataclass
class Block:
    """A block of operations, with its arguments."""

    operations: list["Operation"]
    arguments: list[tuple[int, int | None]] | None = None  # the indexes of type and location of each
    uses: bytes = b""  # the use lists, copied unread


@dataclass
class Operation:
    """An operation: its regions, and the indexes of its name, location, attributes and properties in the tables.

    The bits of `mask` say which parts it has.
    """

    name: int
    mask: int
    location: int
    attributes: int = 0
    properties: int = 0
    middle: bytes = b""  # the results, operands, successors and use lists, copied unread
    regions: list[list[Block]] = field(default_factory=list)
    values: list[int] = field(default_factory=list)  # the number of values in each region
    isolated: bool = False


@dataclass
class Name:
    """The name of an operation: the indexes of its dialect and of its string, and whether it is registered."""

    dialect: int
    string: int
    registered: bool = True


Item = TypeVar("Item", Entry, Name)


@dataclass
class TakenApart:
    """The tables and operations of a module, with the version of the bytecode in which it is encoded.

    `block` is the outermost block, `order` the order of the sections, `others` the sections that are copied unread.
    """

    version: int
    producer: bytes
    strings: list[bytes]
    dialects: list[tuple[int, bytes]]  # the index of each name, and the section with its version
    names: list[Name]
    attributes: list[Entry]
    types: list[Entry]
    properties: list[bytes]
    block: Block
    order: list[int]
    others: dict[int, bytes]

    def string(self, text: bytes) -> int:
        """Return the index of a string in the table of strings; it is added if the module does not have it."""
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def dialect(self, name: bytes) -> int:
        """Return the index of a dialect in the table of dialects; it is added if the module does not have it."""
        number, known = self.string(name), [string for string, _ in self.dialects]
        if number not in known:
            self.dialects.append((number, b""))
        return known.index(number) if number in known else len(known)

    def attribute(self, dialect: bytes, content: bytes, *, custom: bool = True) -> int:
        """Add an attribute of a dialect, and return its index. `content` is text unless `custom` is true."""
        self.attributes.append(Entry(self.dialect(dialect), content, custom))
        return len(self.attributes) - 1

    def text(self, words: bytes) -> int:
        """Add a string attribute of the builtin dialect, and return its index."""
        return self.attribute(b"builtin", varint(2) + varint(self.string(words)))

    def target(self, words: bytes) -> int:
        """Add a string attribute of VHLO, the form of a custom call's target, and return its index."""
        return self.attribute(b"vhlo", varint(14) + varint(self.string(words)))

    def dictionary(self, pairs: list[tuple[int, int]]) -> int:
        """Add a dictionary attribute, given the indexes of its keys and values, and return its own index."""
        content = varint(1) + varint(len(pairs)) + b"".join(varint(key) + varint(value) for key, value in pairs)
        return self.attribute(b"builtin", content)

    def name_of(self, operation: Operation) -> bytes:
        """Return the name of an operation with its dialect, such as `vhlo.add_v1`."""
        name = self.names[operation.name]
        return self.strings[self.dialects[name.dialect][0]] + b"." + self.strings[name.string]

    def name(self, dialect: bytes, operation: bytes, *, registered: bool = True) -> int:
        """Add the name of an operation, and return its index."""
        self.names.append(Name(self.dialect(dialect), self.string(operation), registered))
        return len(self.names) - 1

    def operations(self) -> list[Operation]:
        """Return all operations of the module; each comes before the operations inside it."""
        found: list[Operation] = []
        blocks = [self.block]
        while blocks:
            for operation in blocks.pop().operations:
                found.append(operation)
                blocks += [block for region in operation.regions for block in region]
        return found

    def entries(self, dictionary: int) -> list[tuple[int, int]]:
        """Return the indexes of keys and values of a dictionary attribute; [] if the attribute is not a dictionary."""
        content = self.attributes[dictionary].content if dictionary < len(self.attributes) else b""
        cursor = Cursor(content, 0, len(content), "")
        if content[:1] != varint(1):
            return []
        cursor.at = 1
        return [(cursor.varint("key"), cursor.varint("value")) for _ in range(cursor.varint("entries"))]

    def encode(self) -> bytes:
        """Return the module as bytecode."""
        content = {
            0: strings(self.strings),
            DIALECTS: self._names(),
            2: b"".join(entry.content for entry in (*self.attributes, *self.types)),
            3: varint(len(self.attributes)) + varint(len(self.types)) + _groups(self.attributes) + _groups(self.types),
            IR: _block(self.block, self.version),
            PROPERTIES: varint(len(self.properties)) + b"".join(varint(len(p)) + p for p in self.properties),
            **self.others,
        }
        head = b"ML\xefR" + varint(self.version) + self.producer + b"\0"
        order = [number for number in self.order if number != PROPERTIES or self.version >= 5]
        return head + b"".join(section(number, content[number]) for number in order)

    def _names(self) -> bytes:
        out = varint(len(self.dialects))
        for string, version in self.dialects:
            out += varint(string << 1 | bool(version)) if self.version >= 1 else varint(string)
            out += section(DIALECT_VERSIONS, version) if version and self.version >= 1 else b""
        out += varint(len(self.names)) if self.version >= 4 else b""
        for dialect, names in _runs(self.names):
            out += varint(dialect) + varint(len(names))
            for name in names:
                out += varint(name.string << 1 | name.registered) if self.version >= 5 else varint(name.string)
        return out


def take_apart(data: bytes) -> TakenApart:
    """Read the bytecode of a module into its tables and operations.

    Raises:
        ArtifactError: the module cannot be read.
    """
    tables = Tables(data, 0, len(data), "module")
    cursor = Cursor(data, 4, len(data), "module")
    cursor.varint("the version")
    cursor.at = data.index(b"\0", cursor.at) + 1
    order = []
    while cursor.at < cursor.end:
        order.append(cursor.section(0)[0])
    others = {n: data[c.at : c.end] for n, c in tables.sections.items() if n in (5, 6)}
    properties = []
    for at in tables.property_offsets:
        part = Cursor(data, at, len(data), "module")
        size = part.varint("length")
        properties.append(data[part.at : part.at + size])
    texts = [tables.string_bytes(number) for number in range(len(tables.string_ends))]
    split = [(name.partition(".")[0], name.partition(".")[2].encode()) for name in tables.op_names]
    return TakenApart(
        version=tables.version,
        producer=tables.producer.encode(),
        strings=texts,
        dialects=[(texts.index(name.encode()), b"") for name in tables.dialects],
        names=[
            Name(tables.dialects.index(dialect), texts.index(word), registered)
            for (dialect, word), registered in zip(split, tables.op_registered, strict=True)
        ],
        attributes=_entries(data, tables.attributes),
        types=_entries(data, tables.types),
        properties=properties,
        block=_read_block(tables.cursor(IR), tables),
        order=order,
        others=others,
    )


def _entries(data: bytes, entries: Entries) -> list[Entry]:
    found = map(entries.entry, range(len(entries)))
    return [Entry(dialect, data[start:end], is_encoded) for dialect, start, end, is_encoded in found]


def _read_block(cursor: Cursor, tables: Tables) -> Block:
    head = cursor.varint("operations")
    arguments: list[tuple[int, int | None]] | None = None
    uses = b""
    if head & 1:
        arguments = []
        for _ in range(cursor.varint("arguments")):
            kind, located = cursor.varint("type"), True
            if tables.version >= 4:
                kind, located = kind >> 1, bool(kind & 1)
            arguments.append((kind, cursor.varint("location") if located else None))
        if tables.version >= 3 and cursor.byte("use lists"):
            start = cursor.at
            _skip_uses(cursor, len(arguments))
            uses = bytes(cursor.data[start : cursor.at])
    return Block([_read_operation(cursor, tables) for _ in range(head >> 1)], arguments, uses)


def _skip_uses(cursor: Cursor, values: int) -> None:
    for _ in range(1 if values <= 1 else cursor.varint("lists")):
        if values > 1:
            cursor.varint("value")
        for _ in range(cursor.varint("uses") >> 1):
            cursor.varint("use")


def _read_operation(cursor: Cursor, tables: Tables) -> Operation:
    name = cursor.varint("name")
    mask = cursor.byte("mask")
    op = Operation(name, mask, cursor.varint("location"))
    op.attributes = cursor.varint("attributes") if mask & ATTRS else 0
    op.properties = cursor.varint("properties") if mask & PROPS else 0
    start, results = cursor.at, 0
    if mask & RESULTS:
        results = cursor.varint("results")
        for _ in range(results):
            cursor.varint("result")
    for bit in (OPERANDS, SUCCESSORS):
        for _ in range(cursor.varint("values") if mask & bit else 0):
            cursor.varint("value")
    if tables.version >= 3 and mask & USES:
        _skip_uses(cursor, results)
    op.middle = bytes(cursor.data[start : cursor.at])
    head = cursor.varint("regions") if mask & REGIONS else 0
    op.isolated = bool(head & 1)
    inner = cursor.section(0)[1] if op.isolated and tables.version >= 2 else cursor
    for _ in range(head >> 1):
        blocks = inner.varint("blocks")
        op.values.append(inner.varint("values") if blocks else 0)
        op.regions.append([_read_block(inner, tables) for _ in range(blocks)])
    return op


def _block(block: Block, version: int) -> bytes:
    head = varint(len(block.operations) << 1 | (block.arguments is not None))
    if block.arguments is not None:
        head += varint(len(block.arguments))
        for kind, location in block.arguments:
            head += varint(kind << 1 | (location is not None) if version >= 4 else kind)
            head += b"" if version >= 4 and location is None else varint(location or 0)
        head += b"\x20" + block.uses if block.uses and version >= 3 else b"\0" if version >= 3 else b""
    return head + b"".join(_operation(op, version) for op in block.operations)


def _operation(op: Operation, version: int) -> bytes:
    out = varint(op.name) + bytes([op.mask]) + varint(op.location)
    out += varint(op.attributes) if op.mask & ATTRS else b""
    out += varint(op.properties) if op.mask & PROPS else b""
    out += op.middle
    if op.mask & REGIONS:
        body = b""
        for blocks, values in zip(op.regions, op.values, strict=True):
            body += varint(len(blocks)) + (varint(values) if blocks else b"")
            body += b"".join(_block(block, version) for block in blocks)
        out += varint(len(op.regions) << 1 | op.isolated)
        out += section(IR, body) if op.isolated and version >= 2 else body
    return out


def _runs(items: Sequence[Item]) -> list[tuple[int, list[Item]]]:
    """Return the runs of consecutive items of the same dialect, each as the index of the dialect and these items."""
    runs: list[tuple[int, list[Item]]] = []
    for item in items:
        if not runs or runs[-1][0] != item.dialect:
            runs.append((item.dialect, []))
        runs[-1][1].append(item)
    return runs


def _groups(entries: list[Entry]) -> bytes:
    out = b""
    for dialect, group in _runs(entries):
        lengths = b"".join(varint(len(entry.content) << 1 | entry.custom) for entry in group)
        out += varint(dialect) + varint(len(group)) + lengths
    return out
