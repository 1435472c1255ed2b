"""The changes that a reduction tries, each a list: its kind, then numbers.

| edit | what is done |
|---|---|
| ["inline"] | every call of a function becomes the body of that function |
| ["result", R] | main no longer returns its result R |
| ["end", O] | main ends after operation O, and returns the values that were used behind it |
| ["operand", O] | the results of operation O are operands of it that have the same types |
| ["constant", O] | the results of operation O are constants: 1, or 0 for integers |
| ["value", O] | the results of operation O, one of main's own, are arguments of main |
| ["region", O, N] | the body of region N of operation O takes its place: a branch, or a loop that runs once |
| ["size", FROM, TO] | every dimension of one size has another one; stands alone |
| ["values"] | main returns every value that it computes; stands alone |
| ["double"] | the module computes in double precision: no smaller program, but a reference; stands alone |

Nothing proves that a changed module is as good as the original: each is run. What is no longer used is removed by
`Program.clean`; until then no operation is erased, so that the numbers of others stay valid.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

from in_double import make_double  # type: ignore[import-not-found]  # beside this file, as the next one
from jaxlib.mlir import ir
from program_parts import Program, RefusedError, attributes, name_of  # type: ignore[import-not-found]

Edit = list[Any]

MOST_OPERATIONS = 50_000
"""A module that is larger once its functions are inlined stays as it is."""
LONGEST_TEXT = 400
"""Characters by which an operation is named."""
TOKEN = "!stablehlo.token"
_ELEMENT = re.compile(r"u?i\d+|b?f\d+\w*|complex<f\d+>")
_DTYPES = {
    "i1": "bool",
    "bf16": "bfloat16",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"{sign}i{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)},
}
"""JAX's names of the element types of MLIR, but for narrow floats."""
_FIXED = ("func.func", "func.return", "stablehlo.return")

# A size in the text of a module: in the type of a tensor, as the limit of a slice, in a rule of sharding; and in lists.
_IN_TYPES = rb"(?<=[<x])%d(?=x)|(?<=:)%d(?=[\],:])|(?<==)%d(?=[,}])"
_IN_LISTS = _IN_TYPES + rb"|(?<=[\[ ])%d(?=[,\]>])"


def described(program: Program) -> dict[str, Any]:
    """How large a module is, and every edit that may be tried on it, by kind."""
    operations = program.operations()
    ordered = program.own_operations()
    own, last = set(ordered), ordered[-1] if ordered else None
    edits: dict[str, list[Edit]] = {
        "inline": [["inline"]] if any(one.name == "func.call" for one in operations) else [],
        "result": [["result", number] for number in range(len(program.given))],
        **{kind: [] for kind in ("end", "operand", "constant", "value", "region", "size")},
    }
    for number, operation in enumerate(operations):
        if operation.name in _FIXED:
            continue
        is_own = operation in own
        is_constant = operation.name == "stablehlo.constant"
        used = [result for result in operation.results if list(result.uses)]
        if is_own and not is_constant:
            if operation != last:
                edits["end"].append(["end", number])
            if all(map(type_of, used)):
                edits["value"].append(["value", number])
        if not is_constant and all(_same_typed(operation, result) is not None for result in used):
            edits["operand"].append(["operand", number])
        if all(_constant_text(result.type) for result in used) and not _is_simple(operation):
            edits["constant"].append(["constant", number])
        edits["region"] += [
            ["region", number, place] for place in range(len(operation.regions)) if _fits(operation, place)
        ]
    values = [*program.body.arguments, *(value for one in operations for value in one.results)]
    sizes = {size for value in values for size in (type_of(value) or ([], ""))[0]}
    for size in sorted(sizes, reverse=True):
        edits["size"] += [["size", size, to] for to in dict.fromkeys((1, 2, 3, 4, size // 2)) if 0 < to < size]
    return {**program.signature(), "edits": edits}


def applied(program: Program, edits: list[Edit]) -> Program:
    """Make these changes. Returns the changed program, which may be another one. Raises `RefusedError`."""
    if edits and edits[0][0] == "size":
        ((_, size, to),) = edits
        return _with_size(program, size, to)
    operations = program.operations()
    dropped = {edit[1] for edit in edits if edit[0] == "result"}
    for kind, *numbers in edits:
        if kind == "inline":
            _inline_calls(program)
        elif kind == "values":
            _return_all_values(program, operations)
        elif kind == "double":
            make_double(program)
        elif kind == "end":
            _end_after(program, operations, *numbers)
        elif kind == "region":
            _replace_by_region(operations, *numbers)
        elif kind != "result":
            _replace_results(program, operations, kind, *numbers)
    if dropped:
        program.set_results([result for number, result in enumerate(program.results()) if number not in dropped])
    return program


# --- the edits --------------------------------------------------------------------------------------------------------


def _replace_results(program: Program, operations: list[Any], kind: str, number: int) -> None:
    """Let operands of an operation, constants or arguments of main take the place of its results."""
    operation = operations[number]
    for place, result in enumerate(operation.results):
        if not list(result.uses):
            continue
        if kind == "operand":
            result.replace_all_uses_with(_same_typed(operation, result))
        elif kind == "constant":
            result.replace_all_uses_with(_constant(result.type, ir.InsertionPoint(operation)))
        else:
            program.add_argument(result, _source(number, place, result))
    _without_effects(operation)


def _end_after(program: Program, operations: list[Any], number: int) -> None:
    numbers = {operation: place for place, operation in enumerate(operations)}
    last = operations[number]
    own = program.own_operations()
    before = own[: own.index(last) + 1]
    inside = set(before)
    live = []
    for operation in before:
        for place, result in enumerate(operation.results):
            users = [_in_block(use.owner, program.body) for use in result.uses]
            if type_of(result) and operation.name != "stablehlo.constant" and any(user not in inside for user in users):
                live.append((result, _source(numbers[operation], place, result)))
    program.set_results(live)
    for operation in own[len(before) :]:
        _without_effects(operation)


def _return_all_values(program: Program, operations: list[Any]) -> None:
    numbers = {operation: place for place, operation in enumerate(operations)}
    values = []
    for operation in program.own_operations():
        for place, result in enumerate(operation.results):
            if type_of(result) and operation.name != "stablehlo.constant":
                values.append((result, _source(numbers[operation], place, result)))
    program.set_results(values)


def _replace_by_region(operations: list[Any], number: int, place: int) -> None:
    operation = operations[number]
    (block,) = operation.regions[place].blocks
    _put_in_place_of(operation, block, _entering(operation, block))


def _inline_calls(program: Program) -> None:
    functions = program.functions()
    while calls := [one for one in program.operations() if one.name == "func.call"]:
        if len(program.operations()) > MOST_OPERATIONS:
            raise RefusedError(f"it has more than {MOST_OPERATIONS} operations once its functions are inlined")
        for call in calls:
            called = functions[call.attributes["callee"].value]
            copy = called.clone(ir.InsertionPoint(called)).operation
            (block,) = copy.regions[0].blocks
            _put_in_place_of(call, block, list(call.operands))
            copy.erase()
            call.erase()


def _put_in_place_of(operation: Any, block: Any, entering: list[Any]) -> None:
    """Let the operations of a block do what one operation did, of whose results no use is left."""
    for argument, operand in zip(block.arguments, entering, strict=True):
        argument.replace_all_uses_with(operand)
    *inner, end = [one.operation for one in block.operations]
    for one in inner:
        one.move_before(operation)
    for result, value in zip(operation.results, list(end.operands), strict=True):
        result.replace_all_uses_with(value)


def _with_size(program: Program, size: int, to: int) -> Program:
    """The module with another size for every dimension of one: in its text, where MLIR checks that all of it fits."""
    text = program.module.operation.get_asm(binary=True)
    for pattern in (_IN_LISTS, _IN_TYPES):
        changed = re.sub(pattern.replace(b"%d", b"%d" % size), b"%d" % to, text)
        with contextlib.suppress(ir.MLIRError):
            return Program(ir.Module.parse(changed), program.leading, program.tokens)
    raise RefusedError(f"what has the size {size} cannot have the size {to}")


# --- values and their types -------------------------------------------------------------------------------------------


def type_of(value: Any) -> list[Any] | None:
    """The shape and dtype, by JAX's name, of a value that main may take or return; None for any other."""
    if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
        return None
    element = str(value.type.element_type)
    if not _ELEMENT.fullmatch(element):
        return None
    bits, _, form = element.lstrip("f").lower().partition("e")  # of a narrow float, such as f8E4M3FN
    return [list(value.type.shape), _DTYPES.get(element, f"float{bits}_e{form}")]


def _source(number: int, place: int, value: Any) -> dict[str, Any]:
    operation = value.owner
    taken, given = (", ".join(str(one.type) for one in side) for side in (operation.operands, operation.results))
    text = f"{name_of(operation)} : ({taken}) -> ({given})"
    return {"operation": number, "result": place, "type": type_of(value), "text": text[:LONGEST_TEXT]}


def _same_typed(operation: Any, result: Any) -> Any:
    """An operand with the type of a result, that of the same number first, as loops have it; None for none."""
    operands, number = list(operation.operands), result.result_number
    first = operands[number : number + 1]
    return next((value for value in (*first, *operands) if value.type == result.type), None)


def _constant_text(kind: Any) -> str:
    """A constant of a type, as it is written; empty where there is none."""
    if str(kind) == TOKEN:
        return TOKEN
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return ""
    element = str(kind.element_type)
    if not _ELEMENT.fullmatch(element):
        return ""
    if element == "i1":
        return f"dense<false> : {kind}"
    number = "(1.0, 0.0)" if element.startswith("complex") else "0" if element.lstrip("u").startswith("i") else "1.0"
    return f"dense<{number}> : {kind}"


def _constant(kind: Any, at: Any) -> Any:
    text = _constant_text(kind)
    with at, ir.Location.unknown():
        if text == TOKEN:
            return ir.Operation.create("stablehlo.after_all", results=[kind]).result
        if not text:
            raise RefusedError(f"there is no constant of type {kind}")
        return ir.Operation.create(
            "stablehlo.constant", results=[kind], attributes={"value": ir.Attribute.parse(text)}
        ).result


def _is_simple(operation: Any) -> bool:
    """Whether an operation is a constant already: one of equal elements."""
    if operation.name == "stablehlo.after_all":
        return not list(operation.operands)
    if operation.name != "stablehlo.constant":
        return False
    value = attributes(operation).get("value")
    return not isinstance(value, ir.DenseElementsAttr) or value.is_splat


def _fits(operation: Any, place: int) -> bool:
    """Whether the body of a region can take the place of its operation."""
    blocks = list(operation.regions[place].blocks)
    if len(blocks) != 1 or not list(blocks[0].operations):
        return False
    end = list(blocks[0].operations)[-1]
    entering = _entering(operation, blocks[0])
    return [value.type for value in blocks[0].arguments] == [value.type for value in entering] and [
        value.type for value in end.operands
    ] == [value.type for value in operation.results]


def _entering(operation: Any, block: Any) -> list[Any]:
    """The operands that enter a region: all of a loop, none of a branch."""
    return list(operation.operands) if len(block.arguments) else []


def _in_block(operation: Any, block: Any) -> Any:
    """The operation of a block in which another one is."""
    while operation.operation.block != block:
        operation = operation.operation.parent
    return operation.operation


def _without_effects(operation: Any) -> None:
    """Let an operation be removed once nobody uses its results."""
    if "has_side_effect" in attributes(operation):
        operation.attributes["has_side_effect"] = ir.BoolAttr.get(False)
