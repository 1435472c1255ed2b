"""The operations of a module, with the element types of their operands and results."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from export_core.artifact.bytecode.module import Module
from export_core.artifact.bytecode.sections import IR, Tables
from export_core.artifact.bytecode.values import PLAIN_TYPES, Values
from export_core.artifact.bytecode.walk import (
    HAS_ATTRIBUTES,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_REST,
    HAS_RESULTS,
    LENGTH,
    block_at,
    regions_at,
    varint,
    varints,
)
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
_ONE, _TWO = 1 << 1 | 1, 2 << 1 | 1  # the numbers one and two, as a varint of one byte
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
        contents.element_types = guarded(lambda: _Walk(module.tables, contents.values).found, module.name)
    return contents.element_types


def _as_text(taken: tuple[str, ...], given: tuple[str, ...]) -> str:
    """Return the element types of operands and results as text, each once."""
    if len(given) == 1 and taken and taken.count(taken[0]) == len(taken):  # most operations
        return f"{taken[0]}->{given[0]}"
    return f"{','.join(dict.fromkeys(taken))}->{','.join(dict.fromkeys(given))}"


class _TypedRegion(NamedTuple):
    """The MLIR region that the walk is in. The values that it defines have the numbers from `first` to before `end`."""

    first: int
    end: int
    types: dict[int, str]  # The element type of each value by number, for a function with all its regions.


class _Walk:
    """The walk that gathers the element types of one module's operations."""

    def __init__(self, tables: Tables, values: Values) -> None:
        self._tables = tables
        self._values = values
        values.read_frequent_types()
        self._elements = values.elements
        self._names = [*map(without_version, tables.op_names)]
        self._has_body = [name in _WITH_BODY for name in self._names]
        self._seen: set[tuple[int, tuple[str, ...], tuple[str, ...]]] = set()
        self._with_body: set[tuple[str, tuple[str, ...], tuple[str, ...]]] = set()
        tables.left = 2 * tables.most  # a walk of its own, which looks into every operation
        self._blocks(tables.sections[IR].at, _TypedRegion(0, 0, {}), 1, None)

    @property
    def found(self) -> dict[str, frozenset[str]]:
        """The element types of each kind of operation, as `element_types` returns them."""
        names, found = self._names, dict[str, set[str]]()
        for number, taken, given in self._seen:
            name = names[number]
            if (types := found.get(name)) is None:
                types = found[name] = set()
            if name not in FLOW:
                types.add(_as_text(taken, given))
        for name, taken, given in self._with_body:
            found.setdefault(name, set()).add(_as_text(taken, given))
        return {name: frozenset(found[name]) for name in sorted(found)}

    def _blocks(self, at: int, region: _TypedRegion, count: int, body: set[str] | None) -> int:
        """Read the `count` blocks of a region from byte `at` on, and return the place behind them.

        The element types of their operations are added to `found`. Inside the body of another operation, such as a
        reduce, only the operations' names are added, to `body`, which else is None. A level of regions takes two calls
        of Python, not more, since 256 levels then fill half of Python's stack.

        Bytes are read here and not by the cursor's methods, as in `walk`, which has checked that all parts are there:
        a call takes as long as all else that happens to an operation.
        """
        data, length_of, has_body = self._tables.data, LENGTH, self._has_body
        elements, element_of, types = self._elements, self._element, region.types
        type_of, seen = types.get, self._seen.add
        value = region.first
        for _ in range(count):
            operations, kinds, at = block_at(self._tables, at)
            for kind in kinds:
                types[value] = elements.get(kind) or element_of(kind)
                value += 1
            for _ in range(operations):
                if (first := data[at]) & 1:  # nearly every name: a varint of one byte
                    number = first >> 1
                    at += 1
                else:
                    number, at = varint(data, at)
                mask = data[at]
                at += 1
                at += length_of[data[at]]  # the location
                if mask & HAS_ATTRIBUTES:
                    at += length_of[data[at]]
                if mask & HAS_PROPERTIES:
                    at += length_of[data[at]]
                given: tuple[str, ...] = ()
                if mask & HAS_RESULTS:
                    if data[at] == _ONE and (first := data[at + 1]) & 1:  # nearly all, without a list
                        given = (elements.get(first >> 1) or element_of(first >> 1),)
                        at += 2
                    else:
                        kinds, at = varints(data, at)
                        given = tuple([elements.get(kind) or element_of(kind) for kind in kinds])
                taken: tuple[str, ...] = ()
                if mask & HAS_OPERANDS:
                    # A value that is defined later, which only a damaged module has, is of no type.
                    if data[at] == _ONE and (first := data[at + 1]) & 1:
                        taken = (type_of(first >> 1, "none"),)
                        at += 2
                    elif data[at] == _TWO and (first := data[at + 1]) & 1 and (second := data[at + 2]) & 1:
                        taken = (type_of(first >> 1, "none"), type_of(second >> 1, "none"))
                        at += 3
                    else:
                        operands, at = varints(data, at)
                        taken = tuple([type_of(operand, "none") for operand in operands])
                for element in given:
                    types[value] = element
                    value += 1
                if mask & HAS_REST or has_body[number]:
                    at = self._with_regions(at, region, (number, taken, given), mask, body)
                elif body is None:
                    seen((number, taken, given))
                else:
                    self._name_in(body, self._names[number])
        return at

    def _with_regions(
        self,
        at: int,
        region: _TypedRegion,
        operation: tuple[int, tuple[str, ...], tuple[str, ...]],
        mask: int,
        body: set[str] | None,
    ) -> int:
        """Read what follows the operands of an operation with regions, and return the place behind it.

        Few operations have regions.
        """
        number, taken, given = operation
        regions, isolated, at = regions_at(self._tables, at, mask, len(given))
        has_body = self._has_body[number]
        inside = set[str]() if has_body else body
        data = self._tables.data
        for _ in range(regions):
            blocks, at = varint(data, at)
            if blocks:
                values, at = varint(data, at)
                first, types = (0, {}) if isolated else (region.end, region.types)
                at = self._blocks(at, _TypedRegion(first, first + values, types), blocks, inside)
        name = self._names[number]
        if has_body and inside is not None:
            name = f"{name}({','.join(sorted(inside))})"
        if body is not None:
            self._name_in(body, name)
        elif has_body:
            self._with_body.add((name, taken, given))
        else:
            self._seen.add(operation)
        return at

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
