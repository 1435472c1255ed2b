"""A module under change: its main, its operations, and what each argument and result of main was in the original."""

from __future__ import annotations

import contextlib
from typing import Any

from jaxlib.mlir import ir

ALIAS = "tf.aliasing_output"
"""Of an argument of main: the number of the result that gets its memory."""

_UNCOUNTED = ("func.func", "func.return", "stablehlo.return", "sdy.mesh", "sdy.return")

Source = dict[str, Any]
"""What an argument or result of the changed main is: see program.py."""


class RefusedError(Exception):
    """Why a module cannot be changed in this way."""


class Program:
    """A module, whose main keeps its first `leading` arguments and `tokens` results.

    `sources` and `given` say for each further argument and result of main where it comes from.
    """

    def __init__(self, module: Any, leading: int, tokens: int) -> None:
        self.module = module
        self.leading = leading
        self.tokens = tokens
        function = self.functions().get("main")
        if function is None or len(function.regions[0].blocks) != 1:
            raise RefusedError("it has no function main of one block")
        self.main = function
        self.body = function.regions[0].blocks[0]
        self.sources: list[Source] = [{"was": number} for number in range(len(self.body.arguments) - leading)]
        self.given: list[Source] = [{"was": number} for number in range(len(self.end.operands) - tokens)]

    @property
    def end(self) -> Any:
        """The operation by which main returns."""
        return list(self.body.operations)[-1].operation

    def own_operations(self) -> list[Any]:
        """The operations of main itself, without the one by which it returns."""
        return [one.operation for one in self.body.operations][:-1]

    def functions(self) -> dict[str, Any]:
        """The functions by name."""
        operations = [one.operation for one in self.module.body.operations]
        return {text_of(one.attributes["sym_name"]): one for one in operations if one.name == "func.func"}

    def operations(self) -> list[Any]:
        """All operations in the order in which they are written, those of functions and regions too."""
        found: list[Any] = []

        def walk(operation: Any) -> None:
            for region in operation.regions:
                for block in region.blocks:
                    for inner in block.operations:
                        found.append(inner.operation)
                        walk(inner.operation)

        walk(self.module.operation)
        return found

    def signature(self) -> dict[str, Any]:
        """The names of all operations, and what main takes and returns."""
        names = [name_of(one) for one in self.operations() if one.name not in _UNCOUNTED]
        return {"names": names, "arguments": self.sources, "results": self.given}

    def add_argument(self, value: Any, source: Source) -> None:
        """Let main take a value as an argument, in place of the operation that computes it."""
        argument = self.body.add_argument(value.type, ir.Location.unknown())
        value.replace_all_uses_with(argument)
        self.sources.append(source)

    def set_results(self, values: list[tuple[Any, Source]]) -> None:
        """Let main return these values behind its tokens."""
        end = self.end
        kept = list(end.operands)[: self.tokens]
        with ir.InsertionPoint(end), ir.Location.unknown():
            ir.Operation.create(end.name, operands=[*kept, *(value for value, _ in values)])
        end.erase()
        self.given = [source for _, source in values]

    def results(self) -> list[tuple[Any, Source]]:
        """What main returns behind its tokens, each with where it comes from."""
        return list(zip(list(self.end.operands)[self.tokens :], self.given, strict=True))

    def clean(self) -> None:
        """Remove operations, functions and arguments of main that nobody uses, and declare what main is now."""
        while True:
            for function in self.functions().values():
                merge_constants(function)
                remove_dead(function)
            if not self._remove_functions():
                break
        self._declare()

    def _remove_functions(self) -> bool:
        """Remove functions that nobody calls; whether there were any."""
        used = {"main"}
        for operation in self.operations():
            for attribute in attributes(operation).values():
                used |= symbols(attribute)
        unused = [function for name, function in self.functions().items() if name not in used]
        for function in unused:
            function.erase()
        return bool(unused)

    def _declare(self) -> None:
        """Drop unused arguments, and make the type of main and the attributes of its arguments and results fit."""
        own = attributes(self.main)
        taken = list(ir.ArrayAttr(own["arg_attrs"])) if "arg_attrs" in own else []
        given = list(ir.ArrayAttr(own["res_attrs"])) if "res_attrs" in own else []
        empty = ir.DictAttr.get({})
        places = {source["was"]: place for place, source in enumerate(self.given) if "was" in source}
        kept_sources, kept_attributes = [], taken[: self.leading]
        for number in reversed(range(self.leading, len(self.body.arguments))):
            if not list(self.body.arguments[number].uses):
                self.body.erase_argument(number)
                self.sources[number - self.leading] = {}
        for source in filter(None, self.sources):
            kept_sources.append(source)
            number = self.leading + source.get("was", len(taken))
            named = ir.DictAttr(taken[number]) if number < len(taken) else empty
            kept_attributes.append(self._without_stale_alias(named, places))
        self.sources = kept_sources
        results = given[: self.tokens]
        for source in self.given:
            number = self.tokens + source.get("was", len(given))
            results.append(given[number] if number < len(given) else empty)
        kinds = [value.type for value in self.body.arguments], [value.type for value in self.end.operands]
        self.main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))
        for name, declared, kind in (("arg_attrs", kept_attributes, kinds[0]), ("res_attrs", results, kinds[1])):
            padded = [*declared, *[empty] * (len(kind) - len(declared))]
            if any(len(ir.DictAttr(one)) for one in padded):
                self.main.attributes[name] = ir.ArrayAttr.get(padded)
            elif name in self.main.attributes:
                del self.main.attributes[name]

    def _without_stale_alias(self, named: Any, places: dict[int, int]) -> Any:
        """The attributes of an argument, its alias with the new number of the result, or without one that is gone."""
        entries = {entry.name: entry.attr for entry in named}
        if ALIAS not in entries:
            return named
        place = places.get(ir.IntegerAttr(entries.pop(ALIAS)).value - self.tokens)
        if place is not None:
            entries[ALIAS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), place + self.tokens)
        return ir.DictAttr.get(entries)


def merge_constants(operation: Any) -> None:
    """Use the first of equal constants of a block instead of the others, which come to many where edits make them."""
    for region in operation.regions:
        for block in region.blocks:
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
    """Remove the operations inside that nobody uses, except those that have effects."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in reversed([one.operation for one in block.operations][:-1]):
                if not any(list(result.uses) for result in inner.results) and not has_effects(inner):
                    inner.erase()
                else:
                    remove_dead(inner)


def has_effects(operation: Any) -> bool:
    """Whether an operation does something beside its results."""
    own = attributes(operation)
    if "has_side_effect" in own:
        return bool(ir.BoolAttr(own["has_side_effect"]).value)
    # A call without effects whose results nobody needs is of no use; one of a function with effects has a token.
    return operation.name in ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv")


def attributes(operation: Any) -> dict[str, Any]:
    """The attributes of an operation by name, but for those that MLIR for Python has no class for."""
    found = {}
    for number in range(len(operation.attributes)):
        name = operation.attributes[number].name
        with contextlib.suppress(TypeError):  # of complex numbers; asked for by number, it would end the process
            found[name] = operation.attributes[name]
    return found


def name_of(operation: Any) -> str:
    """What an operation is called; a custom call with its target."""
    name: str = operation.name
    if name != "stablehlo.custom_call":
        return name
    return f"{name} @{text_of(operation.attributes['call_target_name'])}"


def text_of(attribute: Any) -> str:
    """A text of the module, which may be any bytes."""
    text: bytes = ir.StringAttr(attribute).value_bytes
    return text.decode(errors="backslashreplace")


def symbols(attribute: Any) -> set[str]:
    """The names of functions in an attribute."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return {attribute.value}
    if isinstance(attribute, ir.ArrayAttr):
        return set().union(*map(symbols, attribute))
    if isinstance(attribute, ir.DictAttr):
        return set().union(*(symbols(entry.attr) for entry in attribute))
    return set()
