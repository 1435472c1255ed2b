"""The operations of a module, with the element types of their operands and results."""

import re
from collections.abc import Mapping
from functools import lru_cache

from export_core.artifact.bytecode import walk
from export_core.artifact.bytecode.module import Module
from export_core.artifact.bytecode.sections import IR, Cursor, Tables
from export_core.artifact.bytecode.values import Values
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
    return f"{','.join(dict.fromkeys(taken))}->{','.join(dict.fromkeys(given))}"


class _TypedRegion:
    """The MLIR region that the walk is in. The values that it defines have the numbers from `next` to before `end`."""

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
        self.found: dict[str, set[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        """The element types of operands and of results for each kind of operation."""
        tables.left = 2 * tables.most  # a walk of its own, which looks into every operation
        self._blocks(tables.cursor(IR), _TypedRegion(0, 0, {}), 1, None)

    def _blocks(self, cursor: Cursor, region: _TypedRegion, count: int, body: set[str] | None) -> None:
        """Read the `count` blocks of a region; `body` is a set for the names of their operations, or None.

        A level of regions takes two calls of Python, not more, since 256 levels then fill half of Python's stack.
        """
        for _ in range(count):
            block = walk.Frame(0, cursor.end, cursor.end)
            for kind in walk.read_block(cursor, self._tables, block):
                region.types[region.next] = self._element(kind)
                region.next += 1
            for _ in range(block.operations):
                self._operation(cursor, region, body)

    def _operation(self, cursor: Cursor, region: _TypedRegion, body: set[str] | None) -> None:
        """Read an operation with all its regions, and add its element types to `found`.

        Inside the body of another operation, such as a reduce, only its name is added, to `body`, which else is None.
        Bytes are read here and not by the cursor's methods, as in `walk`, which has checked that all parts are there:
        a call takes as long as all else that happens to an operation.
        """
        data, length_of = self._tables.data, walk.LENGTH
        at = cursor.at
        if (first := data[at]) & 1:  # nearly every name: a varint of one byte
            number, at = first >> 1, at + 1
        else:
            number, at = walk.varint(data, at)
        name, mask = self._names[number], data[at]
        at += 1
        at += length_of[data[at]]  # the location
        if mask & walk.HAS_ATTRIBUTES:
            at += length_of[data[at]]
        if mask & walk.HAS_PROPERTIES:
            at += length_of[data[at]]
        kinds, at = walk.varints(data, at) if mask & walk.HAS_RESULTS else ([], at)
        operands, at = walk.varints(data, at) if mask & walk.HAS_OPERANDS else ([], at)
        cursor.at = at
        elements, types = self._elements, region.types
        given = [elements.get(kind) or self._element(kind) for kind in kinds]
        # A value that is defined later, which only a damaged module has, is of no type.
        taken = [types.get(operand, "none") for operand in operands]
        regions, isolated = walk.rest(cursor, self._tables, mask, len(given)) if mask & walk.HAS_REST else (0, False)
        for element in given:
            types[region.next] = element
            region.next += 1
        inside = set[str]() if name in _WITH_BODY else body
        if regions:
            frame = walk.enter(cursor, self._tables, regions, isolated, region.depth)
            for _ in range(regions):
                inner = _TypedRegion(0 if isolated else region.end, region.depth + 1, {} if isolated else region.types)
                if blocks := cursor.count("blocks"):
                    inner.end = inner.next + cursor.varint("the number of values")
                    self._blocks(cursor, inner, blocks, inside)
            cursor.end = frame.outer_end
        if name in _WITH_BODY and inside is not None:
            name = f"{name}({','.join(sorted(inside))})"
        if body is not None:
            if name not in _PLAIN:
                body.add(name.removeprefix("stablehlo."))
        elif name in FLOW:
            self.found.setdefault(name, set())
        else:
            self.found.setdefault(name, set()).add((tuple(taken), tuple(given)))

    def _element(self, number: int) -> str:
        """Return the element type of type `number`, such as f32, or ?f32 if the type has a symbolic dimension."""
        if (known := self._elements.get(number)) is None:
            if number >= len(self._tables.types):
                expected = f"the number of a type, below {len(self._tables.types)}"
                raise self._tables.error(expected, str(number), self._tables.sections[IR].at)
            text = self._values.type(number)
            match = _TENSOR.fullmatch(text)
            known = ("?" if "?" in match[1] else "") + match[2] if match else text.removeprefix("!stablehlo.")
            self._elements[number] = known
        return known
