"""The program that changes modules: serves one reduction, in the environment of the newest release.

``editing_program.py`` reads one JSON object a line from stdin, and answers each with one line on what stdout was at
the start:

    {"module": PATH, "leading": 1, "tokens": 0}
    {"names": [NAME, …], "arguments": [SOURCE, …], "results": [SOURCE, …], "edits": {KIND: [EDIT, …]}}

    {"module": PATH, "leading": 1, "tokens": 0, "apply": [EDIT, …], "stablehlo": "1.13.3", "out": PATH, "text": PATH}
    {"names": [NAME, …], "arguments": [SOURCE, …], "results": [SOURCE, …]}   or   {"refused": "why"}

`leading` is how many arguments of main come before those of the envelope, `tokens` how many results do: they are never
touched. `names` are those of all operations. A SOURCE says what an argument or result of the changed main is:

    {"was": 3}   the one with that number   or   {"operation": 7, "result": 0, "type": [[4, 8], "float32"]}   a value

Operations are numbered in the order in which they are written, those in regions too. Nothing is compiled and nothing is
run. The module is not trusted: an error of MLIR refuses the request, and MLIR may end this process: start a new one.

An EDIT is a list, its kind, then numbers:

| edit | what is done |
|---|---|
| ["inline"] | every call of a function becomes the body of that function |
| ["result", R] | main no longer returns its result R |
| ["end", O] | main ends after operation O, and returns the values that were used behind it |
| ["operand", O] | the results of operation O are operands of it that have the same types |
| ["constant", O] | the results of operation O are constants: 1, or 0 for integers |
| ["value", O] | the results of operation O, one of main's own, are arguments of main |
| ["region", O, N] | the body of region N of operation O takes its place: a branch, or a loop that runs once |
| ["size", FROM, TO] | every dimension of size FROM has size TO; no other edit goes with it |
| ["values"] | main returns every value that it computes; no other edit goes with it |
| ["double"] | the module computes in double precision, as a reference; no other edit goes with it |

Nothing proves that a changed module means what the original does: each is run. What is no longer used is removed by
`Program.clean`; until then no operation is erased, so that the numbers of others stay valid.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
from program_parts import (  # type: ignore[import-not-found]  # beside this file
    NotEditableError,
    Program,
    attributes,
    blocks_of,
    name_of,
    text_of,
)

LONGEST_REASON = 400
LARGEST_TEXT = 64  # Elements of a constant that the text of a module shows.
Edit = list[Any]

MOST_OPERATIONS = 50_000  # A module that is larger once its functions are inlined stays as it is.
LONGEST_TEXT = 400  # Characters by which an operation is named.
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
"""JAX's names of MLIR's element types, except narrow floats."""
_FIXED = ("func.func", "func.return", "stablehlo.return")

# A size in the text of a module: in the type of a tensor, as the limit of a slice, in a rule of sharding; and in lists.
_IN_TYPES = rb"(?<=[<x])%d(?=x)|(?<=:)%d(?=[\],:])|(?<==)%d(?=[,}])"
_IN_LISTS = _IN_TYPES + rb"|(?<=[\[ ])%d(?=[,\]>])"


def main() -> None:
    """Read requests as JSON lines from stdin, and print the reply to each, until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to stderr
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except NotEditableError as refused:
            reply = {"refused": str(refused)[:LONGEST_REASON]}
        except Exception as error:  # whatever MLIR raises, this candidate is not a module
            reply = {"refused": f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]}
        print(json.dumps(reply), file=replies, flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Make the edits of a request in its module, write the changed module to files, and return its signature.

    The module is written as text and as bytecode. A request without edits is answered by `described`.
    """
    with ir.Context() as context, ir.Location.unknown():
        for dialect in (stablehlo, chlo, sdy):
            dialect.register_dialect(context)
        module = stablehlo.deserialize_portable_artifact(context, Path(request["module"]).read_bytes())
        program = Program(module, request["leading"], request["tokens"])
        if "apply" not in request:
            return described(program)
        program = applied(program, request["apply"])
        program.clean()
        program.module.operation.verify()
        text = program.module.operation.get_asm(binary=True, large_elements_limit=LARGEST_TEXT)
        Path(request["text"]).write_bytes(text)
        changed: dict[str, Any] = program.signature()
        # Last, since it changes the module. Mixed: what is not StableHLO stays as it is, for readers that parse it.
        mixed = any(operation.name.startswith("sdy.") for operation in program.operations())
        code = _jax.mlir.serialize_portable_artifact(program.module, request["stablehlo"], mixed)
        Path(request["out"]).write_bytes(code)
        return changed


def described(program: Program) -> dict[str, Any]:
    """Return the signature of a module, and every edit that may be tried on it, by kind."""
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
            if all(type_of(result.type) for result in used):
                edits["value"].append(["value", number])
        if not is_constant and all(_same_typed(operation, result) is not None for result in used):
            edits["operand"].append(["operand", number])
        if all(_constant_text(result.type) for result in used) and not _is_simple(operation):
            edits["constant"].append(["constant", number])
        edits["region"] += [
            ["region", number, place] for place in range(len(operation.regions)) if _fits(operation, place)
        ]
    values = [*program.body.arguments, *(value for one in operations for value in one.results)]
    sizes = {size for value in values for size in (type_of(value.type) or ([], ""))[0]}
    for size in sorted(sizes, reverse=True):
        edits["size"] += [["size", size, to] for to in dict.fromkeys((1, 2, 3, 4, size // 2)) if 0 < to < size]
    return {**program.signature(), "edits": edits}


def applied(program: Program, edits: list[Edit]) -> Program:
    """Make edits in a program, and return the changed program, which may be a new object.

    Raises `NotEditableError` if an edit cannot be made.
    """
    if edits and edits[0][0] == "size":
        ((_, size, to),) = edits
        return _with_size(program, size, to)
    operations = program.operations()
    dropped = {edit[1] for edit in edits if edit[0] == "result"}
    for kind, *numbers in edits:
        if kind == "inline":
            _inline_calls(program)
        elif kind in ("values", "end"):
            _return_values(program, operations, *numbers)
        elif kind == "double":
            _make_double(program)
        elif kind == "region":
            number, place = numbers
            (block,) = operations[number].regions[place].blocks
            _inline_block(operations[number], block, _entering(operations[number], block))
        elif kind != "result":
            _replace_results(program, operations, kind, *numbers)
    if dropped:
        values = zip(list(program.end.operands)[program.tokens :], program.given, strict=True)
        program.set_results([pair for number, pair in enumerate(values) if number not in dropped])
    return program


# --- the edits --------------------------------------------------------------------------------------------------------


def _replace_results(program: Program, operations: list[Any], kind: str, number: int) -> None:
    """Replace all uses of the results of the operation with the index `number`.

    They are replaced with an operand of the operation (kind "operand"), a constant ("constant"), or else a new argument
    of main.
    """
    operation = operations[number]
    for place, result in enumerate(operation.results):
        if not list(result.uses):
            continue
        if kind == "operand":
            result.replace_all_uses_with(_same_typed(operation, result))
        elif kind == "constant":
            result.replace_all_uses_with(_constant(result.type, ir.InsertionPoint(operation)))
        else:
            program.sources.append(_source(number, place, result))
            result.replace_all_uses_with(program.body.add_argument(result.type, ir.Location.unknown()))
    _without_effects(operation)


def _return_values(program: Program, operations: list[Any], last: int | None = None) -> None:
    """Make main return every value that it computes.

    If the index `last` is given, main ends after that operation, and returns the values that later operations use.
    """
    numbers = {operation: number for number, operation in enumerate(operations)}
    own = program.own_operations()
    before = own if last is None else own[: own.index(operations[last]) + 1]
    inside = set(before)
    values = []
    for operation in before:
        for place, result in enumerate(operation.results):
            users = (_in_block(use.owner, program.body) for use in result.uses)
            is_returned = last is None or any(user not in inside for user in users)
            if is_returned and type_of(result.type) and operation.name != "stablehlo.constant":
                values.append((result, _source(numbers[operation], place, result)))
    program.set_results(values)
    for operation in own[len(before) :]:
        _without_effects(operation)


def _inline_calls(program: Program) -> None:
    functions = program.functions()
    while calls := [one for one in program.operations() if one.name == "func.call"]:
        if len(program.operations()) > MOST_OPERATIONS:
            raise NotEditableError(f"it has more than {MOST_OPERATIONS} operations once its functions are inlined")
        for call in calls:
            called = functions[call.attributes["callee"].value]
            copy = called.clone(ir.InsertionPoint(called)).operation
            (block,) = copy.regions[0].blocks
            _inline_block(call, block, list(call.operands))
            copy.erase()
            call.erase()


def _inline_block(operation: Any, block: Any, entering: list[Any]) -> None:
    """Replace an operation by the operations of a block; the operation stays, but its results are no longer used.

    `entering` are the values that replace the arguments of the block.
    """
    for argument, operand in zip(block.arguments, entering, strict=True):
        argument.replace_all_uses_with(operand)
    *inner, end = [one.operation for one in block.operations]
    for one in inner:
        one.move_before(operation)
    for result, value in zip(operation.results, list(end.operands), strict=True):
        result.replace_all_uses_with(value)


def _with_size(program: Program, size: int, to: int) -> Program:
    """Return the program with `to` in place of every dimension of size `size`, by editing its text.

    Raises `NotEditableError` if MLIR cannot parse the edited text.
    """
    text = program.module.operation.get_asm(binary=True)
    for pattern in (_IN_LISTS, _IN_TYPES):
        changed = re.sub(pattern.replace(b"%d", b"%d" % size), b"%d" % to, text)
        with contextlib.suppress(ir.MLIRError):
            return Program(ir.Module.parse(changed), program.leading, program.tokens)
    raise NotEditableError(f"its dimensions of size {size} cannot have size {to}")


# --- values and their types -------------------------------------------------------------------------------------------


def type_of(kind: Any) -> list[Any] | None:
    """Return the shape and dtype of a type that main may take or return; None for any other type.

    The dtype has JAX's name.
    """
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return None
    element = str(kind.element_type)
    if not _ELEMENT.fullmatch(element):
        return None
    bits, _, form = element.lstrip("f").lower().partition("e")  # of a narrow float, such as f8E4M3FN
    return [list(kind.shape), _DTYPES.get(element, f"float{bits}_e{form}")]


def _source(number: int, place: int, value: Any) -> dict[str, Any]:
    operation = value.owner
    taken, given = (", ".join(str(one.type) for one in side) for side in (operation.operands, operation.results))
    text = f"{name_of(operation)} : ({taken}) -> ({given})"
    return {"operation": number, "result": place, "type": type_of(value.type), "text": text[:LONGEST_TEXT]}


def _same_typed(operation: Any, result: Any) -> Any:
    """Return an operand of an operation with the same type as one of its results; None if there is none.

    The operand with the index of the result is preferred: in a loop it is the initial value of the result.
    """
    operands, number = list(operation.operands), result.result_number
    first = operands[number : number + 1]
    return next((value for value in (*first, *operands) if value.type == result.type), None)


def _constant_text(kind: Any) -> str:
    """Return the MLIR text of a constant of this type; empty if no constant of it can be written."""
    if str(kind) == TOKEN:
        return TOKEN
    if (typed := type_of(kind)) is None:
        return ""
    dtype = typed[1]
    number = "false" if dtype == "bool" else "(1.0, 0.0)" if "complex" in dtype else "0" if "int" in dtype else "1.0"
    return f"dense<{number}> : {kind}"


def _constant(kind: Any, at: Any) -> Any:
    text = _constant_text(kind)
    with at, ir.Location.unknown():
        if text == TOKEN:
            return ir.Operation.create("stablehlo.after_all", results=[kind]).result
        return ir.Operation.create(
            "stablehlo.constant", results=[kind], attributes={"value": ir.Attribute.parse(text)}
        ).result


def _is_simple(operation: Any) -> bool:
    """Return whether an operation cannot be simpler: a constant with equal elements, or a token without operands."""
    if operation.name == "stablehlo.after_all":
        return not list(operation.operands)
    if operation.name != "stablehlo.constant":
        return False
    value = attributes(operation).get("value")
    return not isinstance(value, ir.DenseElementsAttr) or value.is_splat


def _fits(operation: Any, place: int) -> bool:
    """Return whether an operation can be replaced by the body of its region `place`: one block, whose types match."""
    blocks = list(operation.regions[place].blocks)
    if len(blocks) != 1 or not list(blocks[0].operations):
        return False
    *_, end = blocks[0].operations
    pairs = (blocks[0].arguments, _entering(operation, blocks[0])), (end.operands, operation.results)
    return all([value.type for value in given] == [value.type for value in wanted] for given, wanted in pairs)


def _entering(operation: Any, block: Any) -> list[Any]:
    """Return the operands that replace the arguments of an operation's block: all if it has arguments, else none."""
    return list(operation.operands) if len(block.arguments) else []


def _in_block(operation: Any, block: Any) -> Any:
    """Return the operation directly in a block that is this operation, or that contains it at any depth."""
    while operation.operation.block != block:
        operation = operation.operation.parent
    return operation.operation


def _without_effects(operation: Any) -> None:
    """Set that an operation has no side effects, so that it is removed once its results are unused."""
    if "has_side_effect" in attributes(operation):
        operation.attributes["has_side_effect"] = ir.BoolAttr.get(False)


# --- double precision -------------------------------------------------------------------------------------------------

# What was float32 or narrower becomes float64; constants keep the values that they have. What the program asks of
# float32 by itself stays: a loop that ends at an error of 1e-6, a polynomial of six terms.

_NARROW = re.compile(r"(?<=[x<])(?:bf16|f16|f32)(?=[,>])")  # An element type in the text of a type.
_UNKNOWN = re.compile(r"f\d+E\d\w*|!quant\.\w+")
"""Types that double precision cannot replace, since their values were chosen for them, as in quantization."""
_CONSTANT = re.compile(r" dense<(?P<elements>.*)> : tensor<(?P<shape>(?:\d+x)*)(?P<element>[^\s,]*)>", re.DOTALL)
_LAPACK = {"s": "d", "c": "z"}
_FOR_ALL_TYPES = ("mhlo.", "stablehlo.", "Sharding", "SPMD", "annotate_device_placement")
"""The beginnings of custom-call targets that XLA replaces by operations of any type."""
_SIGNIFICANT = {"exponent_bits": 11, "mantissa_bits": 52}


def _make_double(program: Program) -> None:
    """Change the types of a program so that it computes in double precision.

    Raises `NotEditableError` if it already does, has no floats, or has a type, constant or operation with no known
    double form.
    """
    operations = program.operations()
    kept = [result for operation in operations for result in _change(operation)]
    blocks = [block for operation in operations for block in blocks_of(operation)]
    values = [result for operation in operations for result in operation.results]
    values += [argument for block in blocks for argument in block.arguments]
    if not any(_NARROW.search(str(value.type)) for value in values):
        raise NotEditableError("it computes in double precision already, or has no floats")
    for value in values:
        if value not in kept:
            value.set_type(_double(value.type))
    for function in program.functions().values():
        kind = ir.TypeAttr(function.attributes["function_type"]).value
        function.attributes["function_type"] = ir.TypeAttr.get(_double(kind))


def _double(kind: Any) -> Any:
    text = str(kind)
    if match := _UNKNOWN.search(text):
        raise NotEditableError(f"it computes in {match[0]}")
    return ir.Type.parse(_NARROW.sub("f64", text)) if _NARROW.search(text) else kind


def _change(operation: Any) -> list[Any]:
    """Change the attributes of an operation for double precision, and return those results whose types must not change.

    The caller changes the types of all other results.
    """
    own = attributes(operation)
    match operation.name.removeprefix("stablehlo."):
        case "constant":
            _widen(operation)
        case "bitcast_convert":
            return _keep_bits(operation)
        case "dot_general" if "algorithm" in own:
            del operation.attributes["algorithm"]
        case "reduce_precision":
            for name, bits in _SIGNIFICANT.items():
                operation.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), bits)
        case "custom_call" if any(
            _NARROW.search(str(value.type)) for value in (*operation.operands, *operation.results)
        ):
            target = text_of(own["call_target_name"])
            other = re.sub(r"^lapack_([sc])", lambda match: f"lapack_{_LAPACK[match[1]]}", target)
            if other == target and not target.startswith(_FOR_ALL_TYPES):
                raise NotEditableError(f"it calls {target}, which has no known counterpart in double precision")
            operation.attributes["call_target_name"] = ir.StringAttr.get(other)
    return []


def _widen(constant: Any) -> None:
    """Replace the value of a constant by the same numbers in double precision; leave constants of other types."""
    kind = constant.result.type
    if not _NARROW.search(str(kind)):
        return
    # As it is printed: MLIR for Python reads no bfloat16 and nothing complex. Unverified: a module that is half changed
    # would be printed in another form.
    if not (match := _CONSTANT.search(constant.get_asm(assume_verified=True))):
        raise NotEditableError(f"it has a constant of {kind} that cannot be read")
    name, elements = _DTYPES[match["element"]], match["elements"]
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    shape = tuple(map(int, match["shape"].split("x")[:-1]))
    if elements.startswith('"0x'):
        values = np.frombuffer(bytes.fromhex(elements[3:-1]), dtype)
    else:
        part = np.dtype("float32") if dtype.kind == "c" else dtype
        numbers = [_number(word, part) for word in re.findall(r"[-+.\w]+", elements)]
        values = np.array(numbers, part).view(dtype)
    wide = values.astype(np.complex128 if dtype.kind == "c" else np.float64)
    whole = np.full(shape, wide[0]) if wide.size == 1 else wide.reshape(shape)
    constant.attributes["value"] = ir.DenseElementsAttr.get(whole, type=_double(kind))


def _number(word: str, dtype: np.dtype[Any]) -> Any:
    """Return the number that a word in a constant's text means: a decimal number, or the bits in hexadecimal."""
    return np.array(int(word, 16), f"u{dtype.itemsize}").view(dtype)[()] if word.startswith("0x") else float(word)


def _keep_bits(cast: Any) -> list[Any]:
    """Make a bit cast from or to a narrow float use the same bits as before.

    Returns a list with the cast's result if that keeps the narrow type, else an empty list.
    """
    (operand,), (result,) = cast.operands, cast.results
    if _NARROW.search(str(operand.type)):
        with ir.InsertionPoint(cast):
            narrow = ir.Operation.create("stablehlo.convert", results=[operand.type], operands=[operand])
        cast.operands[0] = narrow.result
    if not _NARROW.search(str(result.type)):
        return []
    with ir.InsertionPoint.after(cast):
        wide = ir.Operation.create("stablehlo.convert", results=[_double(result.type)], operands=[result])
    result.replace_all_uses_except(wide.result, wide)
    return [result]


if __name__ == "__main__":
    main()
