"""A module under change: its main, its operations, and what each argument and result of main was in the original."""

import contextlib
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

ALIAS = "tf.aliasing_output"  # This attribute of an argument of main has the number of the result that gets its memory.

_UNCOUNTED = ("func.func", "func.return", "stablehlo.return", "sdy.mesh", "sdy.return")

Source = dict[str, Any]  # What an argument or result of the changed main is: see editing_program.py.


class NotEditableError(Exception):
    """An error for an edit that cannot be made in a module."""


class Program:
    """A StableHLO module that is being edited.

    The first `leading` arguments of its main never change. Nor do the first `tokens` results, by which jax orders
    effects. `sources` has the origin of each further argument of main, `given` the origin of each further result.
    """

    def __init__(self, module: Any, leading: int, tokens: int) -> None:
        self.module = module
        self.leading = leading
        self.tokens = tokens
        function = self.functions().get("main")
        if function is None or len(function.regions[0].blocks) != 1:
            raise NotEditableError("it has no function main of one block")
        self.main = function
        self.body = function.regions[0].blocks[0]
        self.sources: list[Source] = [{"was": number} for number in range(len(self.body.arguments) - leading)]
        self.given: list[Source] = [{"was": number} for number in range(len(self.end.operands) - tokens)]

    @property
    def end(self) -> Any:
        """The operation that returns from main."""
        return list(self.body.operations)[-1].operation

    def own_operations(self) -> list[Any]:
        """Return the operations of main, without the final return, and without those in its regions and callees."""
        return [one.operation for one in self.body.operations][:-1]

    def functions(self) -> dict[str, Any]:
        """Return the functions of the module by name."""
        operations = [one.operation for one in self.module.body.operations]
        return {text_of(one.attributes["sym_name"]): one for one in operations if one.name == "func.func"}

    def operations(self) -> list[Any]:
        """Return all operations of the module, also those in functions and regions, in the order of its text."""
        listed: list[Any] = []

        def visit(operation: Any) -> ir.WalkResult:
            listed.append(operation)
            return ir.WalkResult.ADVANCE

        self.module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        return listed[1:]  # the first is the module

    def signature(self) -> dict[str, Any]:
        """Return the names of all operations, and the origins of main's arguments and results."""
        names = [name_of(one) for one in self.operations() if one.name not in _UNCOUNTED]
        return {"names": names, "arguments": self.sources, "results": self.given}

    def set_results(self, values: list[tuple[Any, Source]]) -> None:
        """Make main return its tokens and then these values; each value is given with its origin."""
        end = self.end
        kept = list(end.operands)[: self.tokens]
        with ir.InsertionPoint(end), ir.Location.unknown():
            ir.Operation.create(end.name, operands=[*kept, *(value for value, _ in values)])
        end.erase()
        self.given = [source for _, source in values]

    def clean(self) -> None:
        """Remove unused operations, functions and arguments of main, and update the declaration of main."""
        while True:
            for function in self.functions().values():
                merge_constants(function)
                remove_dead(function)
            used = {"main"}
            for operation in self.operations():
                used |= {name for attribute in attributes(operation).values() for name in symbols(attribute)}
            unused = [function for name, function in self.functions().items() if name not in used]
            for function in unused:
                function.erase()
            if not unused:
                self._declare()
                return

    def _declare(self) -> None:
        """Remove unused arguments of main, and update its type and the attributes of its arguments and results."""
        own, empty = attributes(self.main), ir.DictAttr.get({})
        taken, given = (list(ir.ArrayAttr(own[name])) if name in own else [] for name in ("arg_attrs", "res_attrs"))

        def named(declared: list[Any], number: int) -> Any:
            return ir.DictAttr(declared[number]) if number < len(declared) else empty

        for number in reversed(range(self.leading, len(self.body.arguments))):
            if not list(self.body.arguments[number].uses):
                self.body.erase_argument(number)
                del self.sources[number - self.leading]
        places = {source["was"]: place for place, source in enumerate(self.given) if "was" in source}
        arguments = [named(taken, number) for number in range(self.leading)]
        for source in self.sources:
            one = named(taken, self.leading + source["was"]) if "was" in source else empty
            arguments.append(self._without_stale_alias(one, places))
        results = [named(given, number) for number in range(self.tokens)]
        results += [named(given, self.tokens + source["was"]) if "was" in source else empty for source in self.given]
        kinds = [value.type for value in self.body.arguments], [value.type for value in self.end.operands]
        self.main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))
        for name, declared in (("arg_attrs", arguments), ("res_attrs", results)):
            if any(map(len, declared)):
                self.main.attributes[name] = ir.ArrayAttr.get(declared)
            elif name in self.main.attributes:
                del self.main.attributes[name]

    def _without_stale_alias(self, named: Any, places: dict[int, int]) -> Any:
        """Return the attributes of an argument of main, with its alias updated to the new index of the aliased result.

        The alias is removed if main no longer returns that result.
        """
        entries = {entry.name: entry.attr for entry in named}
        if ALIAS not in entries:
            return named
        place = places.get(ir.IntegerAttr(entries.pop(ALIAS)).value - self.tokens)
        if place is not None:
            entries[ALIAS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), place + self.tokens)
        return ir.DictAttr.get(entries)


def blocks_of(operation: Any) -> Iterator[Any]:
    """Yield the blocks of all regions of an operation."""
    for region in operation.regions:
        yield from region.blocks


def merge_constants(operation: Any) -> None:
    """Replace the uses of equal constants in each block by the first of them."""
    for block in blocks_of(operation):
        seen: dict[Any, Any] = {}
        for inner in block.operations:
            if inner.operation.name == "stablehlo.constant":
                (result,) = inner.operation.results
                value = attributes(inner.operation).get("value", result)
                first = seen.setdefault(value, result)
                if first is not result:  # else MLIR would replace it by itself for ever
                    result.replace_all_uses_with(first)
            else:
                merge_constants(inner.operation)


def remove_dead(operation: Any) -> None:
    """Remove all operations inside an operation that have no effects and no used results."""
    for block in blocks_of(operation):
        for inner in reversed([one.operation for one in block.operations][:-1]):
            if not any(list(result.uses) for result in inner.results) and not has_effects(inner):
                inner.erase()
            else:
                remove_dead(inner)


def has_effects(operation: Any) -> bool:
    """Return whether an operation has effects besides its results."""
    own = attributes(operation)
    if "has_side_effect" in own:
        return bool(ir.BoolAttr(own["has_side_effect"]).value)
    # A call without effects whose results nobody needs is of no use; one of a function with effects has a token.
    return operation.name in ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv")


def attributes(operation: Any) -> dict[str, Any]:
    """Return the attributes of an operation by name, except those without a class in MLIR's Python bindings."""
    known = {}
    for number in range(len(operation.attributes)):
        name = operation.attributes[number].name
        with contextlib.suppress(TypeError):  # there is no class: only asking by name says so
            known[name] = operation.attributes[name]
    return known


def name_of(operation: Any) -> str:
    """Return the name of an operation; the name of a custom call includes its target."""
    name: str = operation.name
    if name != "stablehlo.custom_call":
        return name
    return f"{name} @{text_of(operation.attributes['call_target_name'])}"


def text_of(attribute: Any) -> str:
    """Return a string attribute as text; bytes that are not UTF-8 are escaped."""
    text: bytes = ir.StringAttr(attribute).value_bytes
    return text.decode(errors="backslashreplace")


def symbols(attribute: Any) -> set[str]:
    """Return the names of the functions that an attribute refers to."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return {attribute.value}
    if isinstance(attribute, ir.ArrayAttr):
        return set().union(*map(symbols, attribute))
    if isinstance(attribute, ir.DictAttr):
        return set().union(*(symbols(entry.attr) for entry in attribute))
    return set()
