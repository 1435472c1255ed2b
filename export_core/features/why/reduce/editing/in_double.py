"""A module in double precision: what was float32 or narrower becomes float64; constants keep the values that they have.

What the program asks of float32 by itself stays: a loop that ends at an error of 1e-6, a polynomial of six terms.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir
from program_parts import (  # type: ignore[import-not-found]  # beside this file
    Program,
    RefusedError,
    attributes,
    text_of,
)

_NARROW = re.compile(r"(?<=[x<])(?:bf16|f16|f32)(?=[,>])")
"""An element type in the text of a type."""
_UNKNOWN = re.compile(r"f\d+E\d\w*|!quant\.\w+")
"""Types whose numbers would have to be rounded all the same: what they hold was chosen for them."""
_CONSTANT = re.compile(r" dense<(?P<elements>.*)> : tensor<(?P<shape>(?:\d+x)*)(?P<element>[^\s,]*)>", re.DOTALL)
_DTYPES = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype("float16"),
    "f32": np.dtype("float32"),
    "complex<f32>": np.dtype("complex64"),
}
_LAPACK = {"s": "d", "c": "z"}
_FOR_ALL_TYPES = ("mhlo.", "stablehlo.", "Sharding", "SPMD", "annotate_device_placement")
"""How the names of custom calls begin that XLA replaces by operations of any type."""
_SIGNIFICANT = {"exponent_bits": 11, "mantissa_bits": 52}


def make_double(program: Program) -> None:
    """Make the module compute in double precision. Raises `RefusedError` where that is not known to be the same."""
    operations = program.operations()
    kept = [result for operation in operations for result in _changed(operation)]
    values = [value for operation in operations for value in _values(operation)]
    if not any(_NARROW.search(str(value.type)) for value in values):
        raise RefusedError("it computes in double precision, or without floats")
    for value in values:
        if value not in kept:
            value.set_type(_double(value.type))
    for function in program.functions().values():
        kind = ir.TypeAttr(function.attributes["function_type"]).value
        function.attributes["function_type"] = ir.TypeAttr.get(_double(kind))


def _values(operation: Any) -> list[Any]:
    """The results of an operation, and the arguments of its blocks."""
    blocks = [block for region in operation.regions for block in region.blocks]
    return [*operation.results, *(argument for block in blocks for argument in block.arguments)]


def _double(kind: Any) -> Any:
    text = str(kind)
    if match := _UNKNOWN.search(text):
        raise RefusedError(f"it computes in {match[0]}")
    return ir.Type.parse(_NARROW.sub("f64", text)) if _NARROW.search(text) else kind


def _changed(operation: Any) -> list[Any]:
    """Change what an operation is, beside the types of its values. Returns the results that keep their type."""
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
                raise RefusedError(f"it calls {target}, which is not known in double precision")
            operation.attributes["call_target_name"] = ir.StringAttr.get(other)
    return []


def _widen(constant: Any) -> None:
    """Give a constant the same values as doubles."""
    kind = constant.result.type
    if not _NARROW.search(str(kind)):
        return
    # As it is printed: MLIR for Python reads no bfloat16 and nothing complex. Unverified: a module that is half changed
    # would be printed in another form.
    if not (match := _CONSTANT.search(constant.get_asm(assume_verified=True))):
        raise RefusedError(f"it has a constant of {kind} that cannot be read")
    dtype, elements = _DTYPES[match["element"]], match["elements"]
    shape = tuple(map(int, match["shape"].split("x")[:-1]))
    if elements.startswith('"0x'):
        values = np.frombuffer(bytes.fromhex(elements[3:-1]), dtype)
    else:
        part = np.empty(0, dtype).real.dtype
        numbers = [_number(word, part) for word in re.findall(r"[-+.\w]+", elements)]
        values = np.array(numbers, part).view(dtype)
    wide = values.astype(np.complex128 if dtype.kind == "c" else np.float64)
    whole = np.full(shape, wide[0]) if wide.size == 1 else wide.reshape(shape)
    constant.attributes["value"] = ir.DenseElementsAttr.get(whole, type=_double(kind))


def _number(word: str, dtype: np.dtype[Any]) -> Any:
    """A number of a constant, or the bits of one that has no decimal form."""
    return np.array(int(word, 16), f"u{dtype.itemsize}").view(dtype)[()] if word.startswith("0x") else float(word)


def _keep_bits(cast: Any) -> list[Any]:
    """Let a cast have the bits of the narrow float that it had. Returns its result, if that is such a float."""
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
