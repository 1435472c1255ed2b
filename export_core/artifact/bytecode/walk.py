"""The walk over a module's operations in one pass, without recursion: it counts all and calls hooks for a few kinds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from export_core.artifact.bytecode.sections import IR, Cursor, Tables
from export_core.artifact.errors import LIMIT
from export_core.base.named_tuple import NamedTuple
from export_core.base.text import plural

MAX_NESTING = 256  # regions inside regions; the walk keeps a stack of its own, since Python's would overflow

# How long a varint is, by its first byte.
LENGTH = tuple(9 if byte == 0 else (byte & -byte).bit_length() for byte in range(256))

_ONE, _TWO = 1 << 1 | 1, 2 << 1 | 1  # The numbers one and two, as a varint of one byte.
UNKNOWN_TYPE = -1  # Stands for the type of a value that is defined later, which only a damaged module has.

HAS_ATTRIBUTES, HAS_RESULTS, HAS_OPERANDS, _SUCCESSORS, _REGIONS, _USES, HAS_PROPERTIES = 1, 2, 4, 8, 16, 32, 64
HAS_REST = _SUCCESSORS | _REGIONS | _USES  # what `rest` reads


class Operation(NamedTuple):
    """An operation of a module, as `walk` passes it to a hook. Its numbers are indexes into the module's tables."""

    name: int  # The number of its name.
    at: int  # The place of its first byte in the file.
    attributes: int  # The number of its dictionary of attributes, -1 if it has none.
    properties: int  # The number of its properties, -1 if it has none.
    location: int  # The number of its location.
    depth: int  # How many operations enclose it; 0 for the outermost.


Hook = Callable[[Operation], None]
Signature = tuple[tuple[int, ...], tuple[int, ...]]
"""The types of an operation's operands and results: numbers of entries in the module's tables, or `UNKNOWN_TYPE`."""


class Uses:
    """The different uses of operations in a module, which `walk` gathers.

    A use is the name of an operation with the types of its operands and results. The name of an operation with a body,
    such as a reduction, includes the names of the operations in the body: ``stablehlo.reduce(add)``. The operations in
    the body are then not uses of their own. There are at most as many uses as operations.
    """

    def __init__(self, names: Sequence[str], with_body: Collection[str], left_out: Collection[str]):
        # For each signature, the operations that have it: numbers, or names for operations with a body.
        self.found: defaultdict[Signature, set[int | str]] = defaultdict(set)
        self.names = names  # The name of each operation, by its number.
        self.has_body = [name in with_body for name in names]
        self._left_out = left_out  # The names that are not part of the name of a body.

    def add(self, number: int, signature: Signature, inside: set[str], body: set[str] | None) -> None:
        """Add a use: an operation whose regions have all been read. In a body, its name is added to the body's names.

        Args:
            number: The number of the operation's name.
            signature: The types of its operands and results.
            inside: The names of the operations in the body of this operation, if it has a body.
            body: The names of the operations in the body that this operation is in; None if it is in no body.
        """
        name = self.names[number]
        if self.has_body[number]:
            name = f"{name}({','.join(sorted(inside))})"
        if body is None:
            self.found[signature].add(name if self.has_body[number] else number)
        elif name not in self._left_out:
            body.add(name.removeprefix("stablehlo."))


class Frame:
    """The state of reading the regions of one operation, as an entry of the stack of `walk`.

    It has the counts of regions, blocks and operations that are still to be read, and the position where the bytes
    end. The values of a region are numbered from `first` up to, but not including, `last`; `value` is the number of the
    next value to be read.
    """

    __slots__ = (
        *("blocks", "body", "end", "first", "isolated", "last", "name", "operations", "outer_end", "regions"),
        *("signature", "types", "value"),
    )

    def __init__(self, regions: int, outer_end: int, end: int):
        self.regions = regions
        self.blocks = 0
        self.operations = 0
        self.outer_end = outer_end
        self.end = end
        self.first = self.value = self.last = 0
        self.isolated = False  # Whether its regions cannot use the values outside.
        self.types: dict[int, int] = {}  # The type of each value by number, for a function with all its regions.
        self.name = 0  # The number of the name of the operation itself.
        self.signature: Signature = (), ()  # The types of its operands and results.
        self.body: set[str] | None = None  # The names of the operations in the body that its regions are part of.


def walk(tables: Tables, visit: dict[int, Hook], attributes_of: dict[int, int], uses: Uses) -> list[int]:
    """Read every operation of a module, and count the operations of each name.

    Args:
        tables: the tables of the module.
        visit: hooks by the number of an operation's name, called before the regions of the operation are read.
        attributes_of: a dictionary to fill. A key is the number of an attribute dictionary, its value the number of the
            name of the first operation that has this dictionary.
        uses: a collection to fill with the different uses of operations.

    Returns:
        The number of operations of each name, by the name's number.

    Raises:
        ArtifactError: Operations do not fit into their section, are nested too deeply, or refer to entries that the
            tables lack.
    """
    cursor = tables.cursor(IR)
    try:
        return _walk(tables, visit, attributes_of, uses, cursor)
    except IndexError:
        raise cursor.error("the rest of an operation", "the end of the file") from None


def _walk(
    tables: Tables, visit: dict[int, Hook], attributes_of: dict[int, int], uses: Uses, cursor: Cursor
) -> list[int]:
    """Do the work of `walk`. Each step of the loop reads an operation, or continues after the end of a block.

    This loop takes most of the time of reading a large module, 3 µs an operation, so that it is written for speed.
    Bytes are read here and not by the cursor's methods, since a call takes as long as everything else that is done for
    an operation. All names are local. The length of a varint comes from a table, and its value is only computed if it
    is needed.

    Bounds are checked once, after the whole operation has been read: then an operation that ends outside its section is
    refused. Reading past the end of the file raises an IndexError, which `walk` turns into an `ArtifactError`. Parts
    that few operations have (successors, regions, a hook) are read in functions of their own.
    """
    data, length_of = tables.data, LENGTH
    names = len(tables.op_names)
    counts = [0] * names
    hooks = [visit.get(number) for number in range(names)]
    by_signature, has_body = uses.found, uses.has_body
    frame = Frame(0, cursor.end, cursor.end)
    frame.blocks = 1
    stack = [frame]
    while stack:
        frame = stack[-1]
        if frame.operations == 0:
            _next_block(cursor, tables, stack, uses)
            continue
        frame.operations -= 1
        at = start = cursor.at
        end = cursor.end
        byte = data[at]
        if byte & 1:  # nearly every name: a varint of one byte
            name = byte >> 1
            at += 1
        else:
            name, at = varint(data, at)
        if name >= names:
            raise cursor.error(f"an index below {names} in the table of operation names", str(name), start)
        counts[name] += 1
        # The order from here on is that of MLIR's code: location, attributes, properties, results, operands, the rest.
        # LLVM's documentation leaves out the properties.
        mask = data[at]
        hook = hooks[name]
        at += 1
        attributes = properties = -1
        regions = 0
        isolated = False
        given: tuple[int, ...] = ()
        taken: tuple[int, ...] = ()
        if hook is None:
            location = 0
            at += length_of[data[at]]
            if mask & HAS_ATTRIBUTES:
                attributes, at = varint(data, at)
            if mask & HAS_PROPERTIES:
                at += length_of[data[at]]
        else:
            location, at = varint(data, at)
            if mask & HAS_ATTRIBUTES:
                attributes, at = varint(data, at)
            if mask & HAS_PROPERTIES:
                properties, at = varint(data, at)
        value, types = frame.value, frame.types
        if mask & HAS_RESULTS:
            if data[at] == _ONE and (byte := data[at + 1]) & 1:  # nearly all, without a list
                given = (byte >> 1,)
                at += 2
            else:
                results, at = varint(data, at)
                if results > end - at:  # before the loop: a hostile number would keep it busy for years
                    raise cursor.error("results that fit in their section", plural(results, "result"), start)
                kinds, at = _varints(data, at, results)
                given = tuple(kinds)
            frame.value += len(given)
        if mask & HAS_OPERANDS:
            if data[at] == _ONE and (byte := data[at + 1]) & 1:
                taken = (types.get(byte >> 1, UNKNOWN_TYPE),)
                at += 2
            elif data[at] == _TWO and (byte := data[at + 1]) & 1 and (second := data[at + 2]) & 1:
                taken = (types.get(byte >> 1, UNKNOWN_TYPE), types.get(second >> 1, UNKNOWN_TYPE))
                at += 3
            else:
                operands, at = varint(data, at)
                if operands > end - at:
                    raise cursor.error("operands that fit in their section", plural(operands, "operand"), start)
                numbers, at = _varints(data, at, operands)
                taken = tuple([types.get(number, UNKNOWN_TYPE) for number in numbers])
        for kind in given:
            types[value] = kind
            value += 1
        if mask & HAS_REST:
            cursor.at = at  # from the local variable to the cursor and back: only these few operations need it
            regions, isolated = rest(cursor, tables, mask, len(given))
            at = cursor.at
        # Nothing that was read beyond the section has been used yet: hooks and regions come after this check.
        if at > end:
            found = f"one that ends {plural(at - end, 'byte')} past it"
            raise cursor.error("an operation that ends inside its section", found, start)
        cursor.at = at
        if attributes >= 0:
            if attributes >= len(tables.attributes):
                raise cursor.error(
                    f"an index below {len(tables.attributes)} in the table of attributes", str(attributes), start
                )
            attributes_of.setdefault(attributes, name)
        if hook is not None:
            if location >= len(tables.attributes):
                raise cursor.error(
                    f"a location's index below {len(tables.attributes)} in the table of attributes",
                    str(location),
                    start,
                )
            if properties >= len(tables.property_offsets):
                expected = f"an index below {len(tables.property_offsets)} in the table of properties"
                raise cursor.error(expected, str(properties), start)
            tables.spend(1, start)  # on top of what its block counted: looking into it costs as much again
            hook(Operation(name, start, attributes, properties, location, len(stack) - 1))
        if regions:
            inner = enter(cursor, tables, regions, isolated, len(stack))
            inner.name, inner.signature = name, (taken, given)
            inner.isolated, inner.types, inner.first = isolated, types, 0 if isolated else frame.last
            inner.body = set() if has_body[name] else frame.body
            stack.append(inner)
        elif frame.body is None and not has_body[name]:
            by_signature[taken, given].add(name)
        else:
            uses.add(name, (taken, given), set(), frame.body)
    return counts


def _next_block(cursor: Cursor, tables: Tables, stack: list[Frame], uses: Uses) -> None:
    """Continue after the end of a block: enter the next block or region, or leave the operation with the region."""
    frame = stack[-1]
    if not frame.blocks and frame.regions:
        frame.regions -= 1
        frame.blocks = cursor.count("blocks")
        if frame.blocks:  # a region without blocks is its zero alone
            frame.value, frame.last = frame.first, frame.first + cursor.varint("the number of values")
            frame.types = {} if frame.isolated else frame.types
    elif not frame.blocks:
        if cursor.end != frame.outer_end or len(stack) == 1:  # its regions had a section of their own
            if cursor.at != cursor.end:
                raise cursor.error("the end of the operations", f"{cursor.end - cursor.at} more bytes")
            cursor.end = frame.outer_end
        stack.pop()
        if stack:
            uses.add(frame.name, frame.signature, frame.body or set(), stack[-1].body)
        return
    if frame.blocks:
        for kind in read_block(cursor, tables, frame):
            frame.types[frame.value] = kind
            frame.value += 1


def rest(cursor: Cursor, tables: Tables, mask: int, results: int) -> tuple[int, bool]:
    """Read the last parts of an operation, which few operations have: successors, use lists, and the number of regions.

    `mask` says which parts the operation has, and `results` is the number of its results. Returns the number of
    regions, and whether they are isolated from the values outside.
    """
    start = cursor.at
    if mask & _SUCCESSORS:
        successors = cursor.count("successors")
        tables.spend(successors // 3, start)
        for _ in range(successors):
            cursor.varint("a successor")
    if tables.version >= 3 and mask & _USES:  # bytecode 3 added orders of uses
        _use_lists(cursor, tables, results)
    if not mask & _REGIONS:
        return 0, False
    head = cursor.varint("the number of regions")
    tables.spend(head >> 1, start)
    return head >> 1, bool(head & 1)


def enter(cursor: Cursor, tables: Tables, regions: int, isolated: bool, depth: int) -> Frame:
    """Return the frame for reading an operation's regions.

    Since bytecode version 2, isolated regions are in a section of their own, which is entered.
    """
    start, end = cursor.at, cursor.end
    if depth > MAX_NESTING:
        raise cursor.error(f"regions nested at most {MAX_NESTING} deep", "deeper ones", start, advice=LIMIT)
    if regions > end - start:
        raise cursor.error("regions that fit in their section", plural(regions, "region"), start)
    if isolated and tables.version >= 2:
        number, inner = cursor.section(tables.start)
        if number != IR:
            raise cursor.error("an IR section for the regions", f"section {number}", start)
        cursor.at, cursor.end = inner.at, inner.end
    return Frame(regions, end, cursor.end)


def varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return the varint at byte `at`, and the position after it. Raises `IndexError` past the last byte of the file."""
    first = data[at]
    if first & 1:
        return first >> 1, at + 1
    if first == 0:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    size = (first & -first).bit_length()
    return int.from_bytes(data[at : at + size], "little") >> size, at + size


def _varints(data: bytes | bytearray, at: int, count: int) -> tuple[list[int], int]:
    """Return `count` varints from byte `at` on, and the position after them. Raises `IndexError` past the last byte."""
    numbers = []
    for _ in range(count):
        if (first := data[at]) & 1:  # nearly all, without a call
            numbers.append(first >> 1)
            at += 1
        else:
            number, at = varint(data, at)
            numbers.append(number)
    return numbers, at


def read_block(cursor: Cursor, tables: Tables, frame: Frame) -> list[int]:
    """Read a block's header into `frame`, and return the numbers of the types of the block's arguments."""
    version, types = tables.version, len(tables.types)
    frame.blocks -= 1
    start = cursor.at
    head = cursor.varint("the number of operations")
    frame.operations = head >> 1
    if frame.operations > cursor.end - cursor.at:
        raise cursor.error("operations that fit in their section", plural(frame.operations, "operation"))
    tables.spend(3 + frame.operations, start)  # a block costs as much as an operation or two
    if not head & 1:
        return []
    count = cursor.count("block arguments")
    tables.spend(count // 2, start)
    kinds = []
    for _ in range(count):
        at = cursor.at
        kind = cursor.varint("the type of a block argument")
        located = True
        if version >= 4:  # since then an unknown location is left out
            kind, located = kind >> 1, bool(kind & 1)
        if kind >= types:
            raise cursor.error(f"an index below {types} in the table of types", str(kind), at)
        kinds.append(kind)
        if located:
            cursor.varint("the location of a block argument")
    # One more byte that LLVM's documentation does not have; only blocks with arguments have it.
    if version >= 3 and cursor.byte("the flag for use lists"):
        _use_lists(cursor, tables, count)
    return kinds


def _use_lists(cursor: Cursor, tables: Tables, values: int) -> None:
    """Step over the use lists of an operation or a block, which say in which order values are used.

    `values` is the number of the values.
    """
    # For a single value, neither the number of lists nor the value's own number is written.
    for _ in range(1 if values <= 1 else cursor.count("use lists", 2)):
        if values > 1:
            cursor.varint("the number of a value")
        at = cursor.at
        count = cursor.varint("the number of uses") >> 1
        if count > cursor.end - cursor.at:
            raise cursor.error(
                f"at most {plural(cursor.end - cursor.at, 'use')}, one for each byte left", f"{count:,}", at
            )
        tables.spend(1 + count // 3, at)
        for _ in range(count):
            cursor.varint("a use")
