"""The operations of a module, with the element types of their operands and results."""

import re
from collections.abc import Mapping, Set

from export_core.artifact.bytecode.module import Module
from export_core.artifact.bytecode.sections import IR, Tables
from export_core.artifact.bytecode.values import PLAIN_TYPES, Values
from export_core.artifact.bytecode.walk import UNKNOWN_TYPE, Uses
from export_core.artifact.errors import guarded

FLOW = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("func", "return", "call", "while", "case", "if", "composite", "custom_call", "optimization_barrier"),
        *("tuple", "get_tuple_element"),
    )
) | {"builtin.module"}
"""Operations that pass on values of any type, so that the types of their operands and results say little."""

_TENSOR = re.compile(r"tensor<((?:\d+x|\?x)*)(.*?)(?:, .*)?>")
_ELEMENTS = frozenset(PLAIN_TYPES["vhlo"].values()) - {"index"}  # Those whose name contains no x.


def element_types(module: Module) -> Mapping[str, Set[str]]:
    """Return the element types of operands and results for each kind of operation in a module.

    Operations are named such as `stablehlo.add`. A name such as `stablehlo.reduce(add)` includes the operations of the
    body, which then have no entries of their own. Types are written such as `i32,f32->f32`, each type once, with `?f32`
    for arrays that have a symbolic dimension. Operations in `FLOW` have no types.

    Raises:
        ArtifactError: the module cannot be read.
    """
    contents = module.contents  # a walk that checks all bounds
    if contents.element_types is None:  # each forecast of an artifact asks for them
        contents.element_types = guarded(lambda: _found(module.tables, contents.values, contents.uses), module.name)
    return contents.element_types


def _found(tables: Tables, values: Values, uses: Uses) -> dict[str, Set[str]]:
    """Return the element types of each kind of operation, as `element_types` returns them."""
    values.read_frequent_types()
    elements, names = values.elements, uses.names
    sides: dict[tuple[int, ...], str] = {}  # Operands, or results, as text: most have the same types as others.

    def element(number: int) -> str:
        if number == UNKNOWN_TYPE:
            return "none"
        if (known := elements.get(number)) is None:
            if number >= len(tables.types):
                expected = f"an index below {len(tables.types)} in the table of types"
                raise tables.error(expected, str(number), tables.sections[IR].at)
            known = elements[number] = _element_of(values.type(number))
        return known

    def side(kinds: tuple[int, ...]) -> str:
        own = [elements.get(kind) or element(kind) for kind in kinds]
        # Most operands are of one type.
        text = sides[kinds] = own[0] if own and own.count(own[0]) == len(own) else ",".join(dict.fromkeys(own))
        return text

    found = dict[str, set[str]]()
    for (taken, given), numbers in uses.found.items():
        text = ""
        for number in numbers:
            name = names[number] if isinstance(number, int) else number
            if (types := found.get(name)) is None:
                types = found[name] = set()
            if name not in FLOW:
                text = text or f"{sides.get(taken) or side(taken)}->{sides.get(given) or side(given)}"
                types.add(text)
    return {name: found[name] for name in sorted(found)}


def _element_of(text: str) -> str:
    """Return the element type of a type, such as ``?f32`` for ``tensor<4x?xf32>``."""
    if text.startswith("tensor<"):
        shape, _, element = text[7:-1].rpartition("x")
        if element in _ELEMENTS:  # nearly all, without a regular expression
            return f"?{element}" if "?" in shape else element
    match = _TENSOR.fullmatch(text)
    return ("?" if "?" in match[1] else "") + match[2] if match else text.removeprefix("!stablehlo.")
