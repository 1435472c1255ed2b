"""What flows where in a module: the operations of each function's body, and the values that they take and make."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact.bytecode.cursor import IR, Cursor
from export_core.artifact.bytecode.walk import HAS_ATTRIBUTES, HAS_OPERANDS, HAS_PROPERTIES, HAS_RESULTS, walk

if TYPE_CHECKING:
    from export_core.artifact.bytecode.module import Module

BODY = 2
"""How deep the operations of a function's body are: below the module and the function."""


class Operation(NamedTuple):
    """An operation in the body of a function; what is inside its regions is left out."""

    name: str
    """Its name, such as vhlo.call_v1."""
    symbol: str
    """The target of a custom call, the function that a call calls; empty for others."""
    operands: tuple[int, ...]
    """The numbers of the values that it takes."""
    first: int
    """The number of its first result."""


class Body:
    """The operations of a function. Its values are numbered: arguments first, then the results of each operation."""

    def __init__(self, arguments: int):
        self.arguments = arguments
        self.returned: tuple[int, ...] = ()
        self.makers: list[Operation] = []
        """For each value that is no argument, the operation that makes it."""


def bodies(module: Module) -> dict[str, Body]:
    """The body of each function by its name. Raises `ArtifactError` for an operation that cannot be read."""
    contents = module._contents  # no part of the public class
    tables = contents.tables
    section = tables.sections[IR]
    functions = iter(contents.functions)
    made: dict[str, Body] = {}
    current = [Body(0)]

    def visit(name: int, at: int, attributes: int, properties: int, _location: int, depth: int) -> None:
        kind = tables.op_names[name]
        if kind == "vhlo.func_v1":
            function = next(functions)
            current[0] = made[function.name] = Body(len(function.inputs))
        elif depth == BODY:
            body = current[0]
            operands, results = _values(Cursor(section.data, at, section.end, section.name))
            if kind == "vhlo.return_v1":
                body.returned = operands
            symbol = contents.symbol(name, at, attributes, properties)
            body.makers += [Operation(kind, symbol, operands, body.arguments + len(body.makers))] * results

    tables.left = 2 * tables.most  # a walk of its own, which looks into every operation
    walk(tables, dict.fromkeys(range(len(tables.op_names)), visit), {})
    return made


def _values(cursor: Cursor) -> tuple[tuple[int, ...], int]:
    """The operands of an operation, and the number of its results. The walk has checked that they are in the file."""
    cursor.varint("a name")
    mask = cursor.byte("what an operation has")
    for part in (-1, HAS_ATTRIBUTES, HAS_PROPERTIES):  # -1: each has a location
        if mask & part:
            cursor.varint("a part of an operation")
    results = cursor.count("results") if mask & HAS_RESULTS else 0
    for _ in range(results):
        cursor.varint("a type")
    count = cursor.count("operands") if mask & HAS_OPERANDS else 0
    return tuple(cursor.varint("an operand") for _ in range(count)), results
