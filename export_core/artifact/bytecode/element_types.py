"""The operations of a module, with the element types of their operands and results."""

import re
from collections.abc import Mapping
from functools import lru_cache

from export_core.artifact.bytecode import walk
from export_core.artifact.bytecode.module import Module
from export_core.artifact.bytecode.sections import IR, Cursor, Tables
from export_core.artifact.bytecode.values import PLAIN_TYPES, Values
from export_core.artifact.errors import guarded

FLOW = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("func", "return", "call", "while", "case", "if", "composite", "custom_call", "optimization_barrier"),
        *("tuple", "get_tuple_element"),
    )
) | {"builtin.module"}
"""Operations that pass on values of any type, so that the types of their operands and results say little."""

_WITH_BODY = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_reduce",
        "map",
        "reduce",
        "reduce_scatter",
        "reduce_window",
        "scatter",
        "select_and_scatter",
        "sort",
    )
)
_TENSOR = re.compile(r"tensor<((?:\d+x|\?x)*)(.*?)(?:, .*)?>")
_ONE = 1 << 1 | 1  # the number one, as a varint of one byte
_ELEMENTS = frozenset(PLAIN_TYPES["vhlo"].values()) - {"index"}  # Those whose name contains no x.
_PLAIN = frozenset(("stablehlo.return", "stablehlo.constant"))


@lru_cache(maxsize=1024)  # of the few hundred operations that there are
def without_version(name: str) -> str:
    """Return StableHLO's name for an operation of VHLO: ``stablehlo.sort`` for ``vhlo.sort_v1``.

    A name from a different dialect is returned unchanged.
    """
    dialect, _, operation = name.partition(".")
    stem, _, version = operation.rpartition("_v")
    return f"stablehlo.{stem}" if dialect == "vhlo" and stem and version.isdigit() else name


def element_types(module: Module) -> Mapping[str, frozenset[str]]:
    """Return the element types of operands and results for each kind of operation in a module.

    Operations are named such as `stablehlo.add`. A name such as `stablehlo.reduce(add)` has the operations of the body,
    which are then not listed by themselves. Types are written such as `i32,f32->f32`, each type once, with `?f32` for
    arrays that have a symbolic dimension. Operations in `FLOW` have no types.

    Raises:
        ArtifactError: the module cannot be read.
    """
    contents = module.contents  # a walk that checks all bounds
    if contents.element_types is None:  # each forecast of an artifact asks for them
        found = guarded(lambda: _Walk(module.tables, contents.values).found, module.name)
        contents.element_types = {name: frozenset(map(_as_text, types)) for name, types in sorted(found.items())}
    return contents.element_types


def _as_text(types: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    taken, given = types
    if len(taken) < 2 and len(given) == 1:
        return f"{taken[0] if taken else ''}->{given[0]}"
    return f"{','.join(dict.fromkeys(taken))}->{','.join(dict.fromkeys(given))}"


class _TypedRegion:
    """The MLIR region that the walk is in. The values that it defines have the numbers from `next` to before `end`."""

    __slots__ = ("depth", "end", "next", "types")

    def __init__(self, first: int, depth: int, types: dict[int, str]) -> None:
        self.next = self.end = first
        self.depth = depth
        self.types = types  # The element type of each value by number, for a function with all its regions.


class _Walk:
    """The walk that gathers the element types of one module's operations."""

    def __init__(self, tables: Tables, values: Values) -> None:
        self._tables = tables
        self._values = values
        self._elements: dict[int, str] = {}
        self._names = [*map(without_version, tables.op_names)]
        self._has_body = [name in _WITH_BODY for name in self._names]
        self._seen: set[tuple[int, tuple[str, ...], tuple[str, ...]]] = set()
        self._with_body: set[tuple[str, tuple[str, ...], tuple[str, ...]]] = set()
        tables.left = 2 * tables.most  # a walk of its own, which looks into every operation
        self._blocks(tables.cursor(IR), _TypedRegion(0, 0, {}), 1, None)

    @property
    def found(self) -> dict[str, set[tuple[tuple[str, ...], tuple[str, ...]]]]:
        """The element types of operands and of results for each kind of operation."""
        found: dict[str, set[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for number, taken, given in self._seen:
            name = self._names[number]
            types = found.setdefault(name, set())
            if name not in FLOW:
                types.add((taken, given))
        for name, taken, given in self._with_body:
            found.setdefault(name, set()).add((taken, given))
        return found

    def _blocks(self, cursor: Cursor, region: _TypedRegion, count: int, body: set[str] | None) -> None:
        """Read the `count` blocks of a region, and add the element types of their operations to `found`.

        Inside the body of another operation, such as a reduce, only the operations' names are added, to `body`, which
        else is None. A level of regions takes two calls of Python, not more, since 256 levels then fill half of
        Python's stack.

        Bytes are read here and not by the cursor's methods, as in `walk`, which has checked that all parts are there:
        a call takes as long as all else that happens to an operation.
        """
        data, length_of, has_body = self._tables.data, walk.LENGTH, self._has_body
        elements, element_of, types = self._elements, self._element, region.types
        type_of, seen = types.get, self._seen.add
        for _ in range(count):
            block = walk.Frame(0, cursor.end, cursor.end)
            for kind in walk.read_block(cursor, self._tables, block):
                types[region.next] = element_of(kind)
                region.next += 1
            at, value = cursor.at, region.next
            for _ in range(block.operations):
                if (first := data[at]) & 1:  # nearly every name: a varint of one byte
                    number = first >> 1
                    at += 1
                else:
                    number, at = walk.varint(data, at)
                mask = data[at]
                at += 1
                at += length_of[data[at]]  # the location
                if mask & walk.HAS_ATTRIBUTES:
                    at += length_of[data[at]]
                if mask & walk.HAS_PROPERTIES:
                    at += length_of[data[at]]
                given: tuple[str, ...] = ()
                if mask & walk.HAS_RESULTS:
                    if data[at] == _ONE and (first := data[at + 1]) & 1:  # nearly all, without a list
                        given = (elements.get(first >> 1) or element_of(first >> 1),)
                        at += 2
                    else:
                        kinds, at = walk.varints(data, at)
                        given = tuple([elements.get(kind) or element_of(kind) for kind in kinds])
                taken: tuple[str, ...] = ()
                if mask & walk.HAS_OPERANDS:
                    # A value that is defined later, which only a damaged module has, is of no type.
                    if data[at] == _ONE and (first := data[at + 1]) & 1:
                        taken = (type_of(first >> 1, "none"),)
                        at += 2
                    else:
                        operands, at = walk.varints(data, at)
                        taken = tuple([type_of(operand, "none") for operand in operands])
                if mask & walk.HAS_REST or has_body[number]:
                    cursor.at, region.next = at, value
                    self._with_regions(cursor, region, (number, taken, given), mask, body)
                    at, value = cursor.at, region.next
                    continue
                for element in given:
                    types[value] = element
                    value += 1
                if body is None:
                    seen((number, taken, given))
                else:
                    self._name_in(body, self._names[number])
            cursor.at, region.next = at, value

    def _with_regions(
        self,
        cursor: Cursor,
        region: _TypedRegion,
        operation: tuple[int, tuple[str, ...], tuple[str, ...]],
        mask: int,
        body: set[str] | None,
    ) -> None:
        """Read what follows the operands of an operation with regions: few have them."""
        number, taken, given = operation
        regions, isolated = walk.rest(cursor, self._tables, mask, len(given)) if mask & walk.HAS_REST else (0, False)
        for element in given:
            region.types[region.next] = element
            region.next += 1
        has_body = self._has_body[number]
        inside = set[str]() if has_body else body
        if regions:
            frame = walk.enter(cursor, self._tables, regions, isolated, region.depth)
            for _ in range(regions):
                inner = _TypedRegion(0 if isolated else region.end, region.depth + 1, {} if isolated else region.types)
                if blocks := cursor.count("blocks"):
                    inner.end = inner.next + cursor.varint("the number of values")
                    self._blocks(cursor, inner, blocks, inside)
            cursor.end = frame.outer_end
        name = self._names[number]
        if has_body and inside is not None:
            name = f"{name}({','.join(sorted(inside))})"
        if body is not None:
            self._name_in(body, name)
        elif has_body:
            self._with_body.add((name, taken, given))
        else:
            self._seen.add(operation)

    @staticmethod
    def _name_in(body: set[str], name: str) -> None:
        """Add the name of an operation to the body that it is in."""
        if name not in _PLAIN:
            body.add(name.removeprefix("stablehlo."))

    def _element(self, number: int) -> str:
        """Return the element type of type `number`, such as f32, or ?f32 if the type has a symbolic dimension."""
        if (known := self._elements.get(number)) is None:
            if number >= len(self._tables.types):
                expected = f"the number of a type, below {len(self._tables.types)}"
                raise self._tables.error(expected, str(number), self._tables.sections[IR].at)
            known = self._elements[number] = _element_of(self._values.type(number))
        return known


def _element_of(text: str) -> str:
    """Return the element type of a type, such as ``?f32`` for ``tensor<4x?xf32>``."""
    if text.startswith("tensor<"):
        shape, _, element = text[7:-1].rpartition("x")
        if element in _ELEMENTS:  # nearly all, without a regular expression
            return f"?{element}" if "?" in shape else element
    match = _TENSOR.fullmatch(text)
    return ("?" if "?" in match[1] else "") + match[2] if match else text.removeprefix("!stablehlo.")
