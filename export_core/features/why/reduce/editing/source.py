"""A reduced module as a program of JAX, with one line for each operation of main."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from edits import type_of  # type: ignore[import-not-found]  # beside this file, as the next ones
from element_types import dtype_of  # type: ignore[import-not-found]
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from literals import (  # type: ignore[import-not-found]
    SMALL,
    array_text,
    dense_elements,
    dtype_text,
    numpy_dtype,
)
from program_parts import Program, RefusedError, attributes, name_of, text_of  # type: ignore[import-not-found]

MOST_OPERATIONS = 100
"""A program with more of them is no easier to read than its module."""


def source_of(program: Program, inputs: Path) -> str:
    """The text of a program that jax traces to the types of a module.

    Args:
        program: the module.
        inputs: the arguments of main, an .npz. The text shows small ones, and loads others from a file of this name
            beside it.

    Raises:
        RefusedError: an operation has no line, or something is not in the operations.
    """
    _check_is_plain(program)
    arguments = list(program.body.arguments)[program.leading :]
    names = {value: f"x{number}" for number, value in enumerate(arguments)}
    body = [f"def function({', '.join(names.values())}):"]
    for operation in program.own_operations():
        given = [f"v{len(names) - len(arguments) + place}" for place in range(len(operation.results))]
        body.append(f"    {', '.join(given)}{' = ' * bool(given)}{Line(operation, names).expression()}")
        names |= zip(operation.results, given, strict=True)
    ends = [names[value] for value in program.end.operands]
    body += [f"    return {', '.join(ends) or '()'}", "", "", *_arguments(arguments, inputs), ""]
    body += ['if __name__ == "__main__":', "    print(jax.jit(function)(*ARGS))", ""]
    text = "\n".join((*_head("\n".join(body)), *body))
    _check(program, text, inputs)
    return text


def _head(body: str) -> list[str]:
    """The imports that a text needs, and 64 bits where it has such types."""
    imports = {"import jax": "", "import jax.numpy as jnp": "jnp.", "import numpy as np": "np."}
    imports["from jax import lax"] = "lax."
    head = ["from pathlib import Path", ""] if "Path(" in body else []
    head += [line for line, used in imports.items() if re.search(rf"\b{re.escape(used)}", body)]
    if re.search(r"\.(u?int64|float64|complex128)\b", body):
        head += ["", 'jax.config.update("jax_enable_x64", True)']
    return [*head, "", ""]


def _arguments(arguments: list[Any], inputs: Path) -> list[str]:
    """The lines of ARGS: arrays that are small or of equal elements as they are written, others from the .npz."""
    expressions = []
    with np.load(inputs) as archive:
        members = sorted(archive.files, key=lambda name: int(name.partition(".")[0]))
        for value, member in zip(arguments, members, strict=True):
            stored, dtype = archive[member], numpy_dtype(kind_of(value)[1])
            view = "" if stored.dtype == dtype else f".view({dtype_text(dtype.name)})"
            expressions.append(array_text(stored.view(dtype)) or f'inputs["{member}"]{view}')
    lines = ["ARGS = (", *(f"    {each}," for each in expressions), ")"]
    if not any(each.startswith("inputs[") for each in expressions):
        return lines
    return [f'with np.load(Path(__file__).with_name("{inputs.name}")) as inputs:', *(f"    {line}" for line in lines)]


def _check_is_plain(program: Program) -> None:
    """Raise `RefusedError` for what is not in the operations: several devices, shardings, effects; and for many."""
    own = attributes(program.module.operation)
    if any(str(own.get(f"mhlo.num_{kind}", 1)).split()[0] != "1" for kind in ("partitions", "replicas")):
        raise RefusedError("it runs on several devices")
    if len(program.own_operations()) > MOST_OPERATIONS:
        raise RefusedError(f"it has more than {MOST_OPERATIONS} operations")
    if any(list(value.uses) for value in list(program.body.arguments)[: program.leading]):
        raise RefusedError("its operations depend on the platform or on symbolic sizes")
    declared = attributes(program.main)
    for side in ("arg_attrs", "res_attrs"):
        for entry in (entry for each in ir.ArrayAttr(declared[side]) for entry in each) if side in declared else ():
            if entry.name not in ("jax.result_info", "jax.global_constant"):
                raise RefusedError(f"{entry.name} has no line of its own")


def _check(program: Program, text: str, inputs: Path) -> None:
    """Raise `RefusedError` where jax does not trace a text, or to other types."""
    import jax  # here only: edits do without

    jax.config.update("jax_enable_x64", False)  # as in a new process; the text may change it
    names: dict[str, Any] = {"__name__": "source", "__file__": str(inputs.with_name("source.py"))}
    try:
        exec(text, names)
        traced = jax.tree_util.tree_leaves(jax.eval_shape(names["function"], *names["ARGS"]))
    except Exception as error:  # whatever jax raises
        raise RefusedError(f"jax does not trace it: {type(error).__name__}: {error}") from error
    if [(each.shape, each.dtype.name) for each in traced] != [kind_of(value) for value in program.end.operands]:
        raise RefusedError("jax traces it to other types")


SHAPE, DTYPE = "=shape", "=dtype"

_SAME = (
    "abs add atan2 cbrt ceil clamp complex floor imag is_finite log logistic real rsqrt select shift_left "
    "shift_right_arithmetic shift_right_logical sign sqrt tan tanh"
)
_OTHER = (
    "and=bitwise_and or=bitwise_or xor=bitwise_xor not=bitwise_not subtract=sub multiply=mul divide=div remainder=rem "
    "power=pow negate=neg exponential=exp exponential_minus_one=expm1 log_plus_one=log1p sine=sin cosine=cos "
    "maximum=max minimum=min popcnt=population_count count_leading_zeros=clz"
)
_PLAIN: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in _SAME.split()},
    **{name: (function,) for name, function in (pair.split("=") for pair in _OTHER.split())},
    "bitcast_convert": ("bitcast_convert_type", DTYPE),
    "broadcast_in_dim": ("broadcast_in_dim", SHAPE, "broadcast_dimensions"),
    "convert": ("convert_element_type", DTYPE),
    "iota": ("broadcasted_iota", DTYPE, SHAPE, "iota_dimension"),
    "reduce_precision": ("reduce_precision", "exponent_bits", "mantissa_bits"),
    "reshape": ("reshape", SHAPE),
    "reverse": ("rev", "dimensions"),
    "round_nearest_afz": ("round", "lax.RoundingMethod.AWAY_FROM_ZERO"),
    "round_nearest_even": ("round", "lax.RoundingMethod.TO_NEAREST_EVEN"),
    "slice": ("slice", "start_indices", "limit_indices", "strides"),
    "transpose": ("transpose", "permutation"),
}
"""Functions of jax.lax that take the operands of an operation of StableHLO and then these: its attributes, by name."""

_COMPOSITES = "acos acosh asin asinh atan atanh cosh digamma erf erfc erf_inv lgamma sinh square top_k"
"""Functions of jax.lax that take the operands of a composite of CHLO, and then its attributes."""

_OF_SHARDINGS = {"num_batch_dims", "xla.sdy.sharding_rule"}
"""Attributes of a custom call for XLA that say how it may be sharded."""


class Line:
    """The line of one operation. `left` are the attributes that it does not say yet."""

    def __init__(self, operation: Any, names: dict[Any, str]) -> None:
        self.operation = operation
        self.left = attributes(operation)
        self.operands = [names[value] for value in operation.operands]
        self.results = [kind_of(value) for value in operation.results]
        self.shape, self.dtype = self.results[0] if self.results else ((), "")

    def expression(self) -> str:
        """What computes the results. Raises `RefusedError` where jax has no plain function for it."""
        name = self.operation.name.removeprefix("stablehlo.")
        if name in _PLAIN:
            function, *further = _PLAIN[name]
            text = self.call(f"lax.{function}", *map(self.further, further))
        elif name in _SPECIAL:
            text = _SPECIAL[name](self)
        else:
            raise self.refused()
        if self.left:
            raise self.refused(f" with {min(self.left)}")
        return text

    def further(self, name: str) -> object:
        """An argument behind the operands."""
        if name in (SHAPE, DTYPE):
            return self.shape if name == SHAPE else dtype_text(self.dtype)
        if name.startswith("lax."):
            return name
        value = self.left.pop(name)
        return ir.IntegerAttr(value).value if isinstance(value, ir.IntegerAttr) else tuple(ir.DenseI64ArrayAttr(value))

    def call(self, function: str, *further: object) -> str:
        """A call with the operands."""
        return f"{function}({', '.join((*self.operands, *map(str, further)))})"

    def refused(self, why: str = "") -> RefusedError:
        """The error of an operation that has no line."""
        return RefusedError(f"{name_of(self.operation)}{why} has no line of its own")


def kind_of(value: Any) -> tuple[tuple[int, ...], str]:
    """The shape and dtype of a value. Raises `RefusedError` where it is no array of known size."""
    found = type_of(value)
    if found is None:
        raise RefusedError(f"{value.type} is no array of known size")
    return tuple(found[0]), dtype_of(found[1])


def _composite(line: Line) -> str:
    name = text_of(line.left.pop("name")).removeprefix("chlo.")
    if name not in _COMPOSITES.split():
        raise line.refused(f" {name}")
    del line.left["decomposition"]
    line.left.pop("version", None)
    attributes = {each.name: each.attr for each in line.left.pop("composite_attributes", ())}
    # Since 0.12 top_k says that it is stable, which it is without a word.
    if "is_stable" in attributes and not ir.BoolAttr(attributes.pop("is_stable")).value:
        raise line.refused(f" {name} that is not stable")
    return line.call(f"lax.{name}", *(ir.IntegerAttr(attribute).value for attribute in attributes.values()))


def _constant(line: Line) -> str:
    line.left.pop("value", None)  # MLIR for Python has no complex ones, so that all are read as they are printed
    dense = re.search(r" dense<(.*)> : ", line.operation.get_asm(large_elements_limit=SMALL))
    text = array_text(dense_elements(dense[1], line.dtype, line.shape)) if dense else ""
    if not text:
        raise line.refused(f" of {line.operation.result.type}")
    return text


def _dot_general(line: Line) -> str:
    numbers = stablehlo.DotDimensionNumbers(line.left.pop("dot_dimension_numbers"))
    contracting, batching = (
        tuple(tuple(getattr(numbers, f"{side}_{kind}_dimensions")) for side in ("lhs", "rhs"))
        for kind in ("contracting", "batching")
    )
    further = [f"({contracting}, {batching})"]
    precisions = [f"lax.Precision.{_word(each)}" for each in line.left.pop("precision_config", ())]
    if set(precisions) - {"lax.Precision.DEFAULT"}:
        further.append(f"precision=({', '.join(precisions)})")
    return line.call("lax.dot_general", *further, f"preferred_element_type={dtype_text(line.dtype)}")


def _reduce(line: Line) -> str:
    (block,) = line.operation.regions[0].blocks
    inner, *end = [each.operation for each in block.operations]
    function = _PLAIN.get(inner.name.removeprefix("stablehlo."), ())
    is_simple = len(line.operands) == 2 and len(function) == len(end) == 1 and not attributes(inner)
    if not is_simple or list(inner.operands) != list(block.arguments) or list(end[0].operands) != list(inner.results):
        raise line.refused(" by more than one function")
    return line.call("lax.reduce", f"lax.{function[0]}", line.further("dimensions"))


def _compare(line: Line) -> str:
    if _word(line.left.pop("compare_type", "")) == "TOTALORDER":
        raise line.refused(" in a total order")
    return line.call(f"lax.{_word(line.left.pop('comparison_direction')).lower()}")


def _pad(line: Line) -> str:
    sides = [line.left.pop(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    return line.call("lax.pad", list(zip(*map(ir.DenseI64ArrayAttr, sides), strict=True)))


def _listed(line: Line, first: int, function: str, *further: object) -> str:
    """A call whose operands from `first` on are a list."""
    line.operands[first:] = [f"[{', '.join(line.operands[first:])}]"]
    return line.call(function, *further)


def _custom_call(line: Line) -> str:
    """A call by the FFI, without what is for shardings alone."""
    left = line.left
    if text_of(left["call_target_name"]).startswith("lapack_"):  # jax loads LAPACK for functions of its own alone
        raise RefusedError("a call of LAPACK by jax.ffi crashes in every release")
    left.pop("sdy.sharding_rule", None)
    if {each.name for each in left.get("mhlo.frontend_attributes", ())} <= _OF_SHARDINGS:
        left.pop("mhlo.frontend_attributes", None)
    if "mhlo.backend_config" not in left:
        raise line.refused(", which is no call of the FFI,")
    kinds = [f"jax.ShapeDtypeStruct({shape}, {dtype_text(dtype)})" for shape, dtype in line.results]
    head = [_text(line, left.pop("call_target_name")), kinds[0] if len(kinds) == 1 else f"[{', '.join(kinds)}]"]
    if str(left.pop("has_side_effect", "false")) == "true":
        head.append("has_side_effect=True")
    for name, given in (("input_layouts", "operand_layouts"), ("output_layouts", "result_layouts")):
        layouts = [[*map(int, re.findall(r"\d+", str(each).partition(":")[0]))] for each in left.pop(given, ())]
        if any(layout != sorted(layout, reverse=True) for layout in layouts):
            orders = [tuple(reversed(layout)) for layout in layouts]  # from major to minor
            is_one = given == "result_layouts" and len(orders) == 1
            head.append(f"{name}={orders[0] if is_one else orders}")
    aliases = [stablehlo.OutputOperandAlias(each) for each in left.pop("output_operand_aliases", ())]
    if aliases:
        pairs = {each.operand_index: [*each.output_tuple_indices, 0][0] for each in aliases}
        head.append(f"input_output_aliases={pairs}")
    config = [_named(line, each.name, each.attr) for each in left.pop("mhlo.backend_config")]
    return line.call(f"jax.ffi.ffi_call({', '.join(head)})", *config)


def _named(line: Line, name: str, value: Any) -> str:
    """An attribute of a call by the FFI, as a value of which jax makes the same attribute."""
    if name.isidentifier() and not keyword.iskeyword(name):
        if isinstance(value, ir.StringAttr):
            return f"{name}={_text(line, value)}"
        if str(value) in ("true", "false"):
            return f"{name}={str(value).capitalize()}"
        if isinstance(value, ir.IntegerAttr):
            return f"{name}={dtype_text(dtype_of(str(value.type)))}({value.value})"
    raise line.refused(f" with {name}")


def _text(line: Line, value: Any) -> str:
    """A text of the module as a literal; refused where it is not UTF-8, since jax takes no other."""
    try:
        return repr(ir.StringAttr(value).value_bytes.decode())
    except ValueError:
        raise line.refused() from None


def _word(attribute: Any) -> str:
    """A value of an enumeration, such as GT of `#stablehlo<comparison_direction GT>`."""
    return str(attribute).rpartition(" ")[2].rstrip(">")


_SPECIAL: dict[str, Callable[[Line], str]] = {
    "compare": _compare,
    "composite": _composite,
    "concatenate": lambda line: _listed(line, 0, "lax.concatenate", line.further("dimension")),
    "constant": _constant,
    "custom_call": _custom_call,
    "dot_general": _dot_general,
    "dynamic_slice": lambda line: _listed(
        line, 1, "lax.dynamic_slice", line.further("slice_sizes"), "allow_negative_indices=False"
    ),
    "dynamic_update_slice": lambda line: _listed(line, 2, "lax.dynamic_update_slice", "allow_negative_indices=False"),
    "optimization_barrier": lambda line: (
        line.call("lax.optimization_barrier")
        if len(line.operands) == 1
        else _listed(line, 0, "lax.optimization_barrier")
    ),
    "pad": _pad,
    "reduce": _reduce,
}
