"""Rewrites a lowered call so that what is rounded inside it can be moved: the worker's half of measuring noise.

jaxlib_worker.py loads this file by its path, in the interpreter of the release that measures; like the worker it
imports nothing of this project.

Every result whose last digits IEEE 754 leaves open is moved by some units in the last place. Such results are a sum of
several terms, a product of matrices, a transcendental function, a custom call, and a product that an addition may
swallow. How far, and which way, follows from a hash of the value's own bits, of the place in the program, and of three
numbers. The call takes these as one more argument: seed, shift, moving int32; see `moves` in protocol.py. One
compilation therefore serves runs in all directions, and XLA cannot fold the moves away. Values of few significant bits
(masks, counts, halves), zeros, infinities and NaN stay as they are: they are exact.

The error of a sum is bounded by its terms, not by its result, which may be much smaller. So terms are moved too, each
by one unit, if nothing has moved them before: if whole numbers and stored matrices are multiplied and summed up (see
`Operands`). Sums of many terms also move farther, since each order of summation rounds otherwise: see `doublings`.

Complex results are moved part by part. Symbolic dimensions are refined before. Results of 8 bits and fewer stay: what
is rounded to them is moved before.
"""

from __future__ import annotations

import itertools
import math
import re

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
MANTISSA = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}
MULTIPLIERS = {64: 0x9E3779B97F4A7C15, 32: 0x9E3779B1, 16: 0x9E3B}
"""Odd numbers near the golden ratio of each width, by which a multiplicative hash spreads its bits."""
PLACE = 0xC2B2AE35  # The factor of each place's number in the program, which keeps places apart.
SMALL = 16  # Arrays with more elements are computed once before they move: else XLA computes them again for each use.

OPEN = {
    *("dot", "dot_general", "convolution", "fft", "cholesky", "triangular_solve", "custom_call", "composite"),
    *("exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "tan", "sine", "cosine"),
    *("rsqrt", "cbrt", "power", "atan2", "divide"),
}
"""Operations whose last digits differ between correct implementations; `divide`, since XLA divides by a constant by
multiplying."""
SUMS = {"reduce", "reduce_window", "scatter", "select_and_scatter", "all_reduce", "reduce_scatter"}
"""Operations that are open if their body adds or multiplies, and exact if it chooses, such as a maximum."""
EXACT_CALLS = re.compile(
    "Sharding|SPMDFull|shape_assertion|annotate_device_placement|callback|top_?k|sdy|xla.sdy|cu_|LayoutConstraint", re.I
)
"""Custom calls and composites whose results are not rounded."""
PRODUCTS = {"dot", "dot_general", "convolution"}
EXACT_OF_NEAR = {"fft", "cholesky", "triangular_solve", "custom_call"}
"""Operations whose results are, at best, exact for operands a unit off: one near zero has an error of that size."""
REFERENCES = {"stablehlo.custom_call": ("called_computations",), "stablehlo.composite": ("decomposition",)}
"""Attributes by which operations other than a call refer to functions, which must not get another argument."""
ADDING = {"stablehlo.add", "stablehlo.subtract"}
OPEN_IF_COMPLEX = {"multiply", "sqrt", "abs", "sign"}
"""Operations that IEEE 754 fixes for real numbers, and that are made of several operations for complex ones."""
SAME_NUMBERS = {
    *("reshape", "transpose", "broadcast_in_dim", "slice", "dynamic_slice", "gather", "reverse", "copy", "negate"),
    *("abs", "real", "imag", "pad", "optimization_barrier", "sort", "reduce_precision", "all_gather", "tuple"),
}
"""Operations whose results consist of elements of an operand: the one with the result's number, or else the first."""
OF_ALL_OPERANDS = {
    *("add", "subtract", "multiply", "maximum", "minimum", "select", "clamp", "concatenate", "complex"),
    "dynamic_update_slice",
}
"""Operations whose result counts as moved only if all their operands are moved.

A product, too: equal numbers move alike, so their products with a stored row would not move independently.
"""
EXACT = {"constant", "iota", "floor", "ceil", "round_nearest_even", "round_nearest_afz", "sign", "bitcast_convert"}
"""Operations whose results do not move with their operands."""
NOTHING_ROUNDED_BETWEEN = {"reshape", "transpose", "broadcast_in_dim", "slice", "reverse", "copy", "negate"}
"""Operations through which a product may be taken up by an addition before it is rounded."""
BODIES = {"reduce", "reduce_window", "scatter", "sort", "select_and_scatter", "map", "all_reduce", "reduce_scatter"}
"""Operations in whose bodies nothing is moved, since XLA expects bodies of known forms."""

TERMS = 64  # Sums of fewer terms move by one unit, sums of up to four times as many by two, and so on: `doublings`.

ARRAY = re.compile(r"tensor<((?:[1-9]\d*x)*)(complex<)?(f64|f32|f16|bf16)>{1,2}")
"""Types of arrays that move: not empty, of static shape."""
WIDENED = re.compile(r"tensor<((?:[1-9]\d*x)*)(f64|f32|f16|bf16)>")
FLOAT = re.compile(r"[x<](f64|f32|bf16|f\d+E\d+\w*|f16)>")
EIGHT_BITS = re.compile(r"[x<]f\d+E\d+\w*>")
NARROW = re.compile(r"tensor<((?:[1-9]\d*x)*)(f16|bf16|f\d+E\d+M\d+\w*)>")
"""Types of arrays whose products are added in a wider type."""
ONE_NUMBER = re.compile(r"dense<[^\[\"]*>")  # The printed form of a constant whose elements are all the same number.


class UnreducedError(Exception):
    """An error for a program with values that are still to be summed over devices: moving one part changes the sum."""


class NotMovedError(Exception):
    """An error for a program in which nothing can be moved."""


def lower_moved(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Lower a call and rewrite its module so that rounded results inside are off by some units in the last place.

    The lowered call takes the numbers that `moves` returns, then `args` and `kwargs`. Raises `NotMovedError` if nothing
    in the module can be moved, and `UnreducedError`.
    """

    def moved(numbers: Any, args: Any, kwargs: Any) -> Any:
        return call(*args, **kwargs)

    lowered = jax.jit(moved, keep_unused=True).lower(np.zeros(3, np.int32), args, kwargs)
    module = refined(lowered)
    if not Rewriting(module).rewrite():
        raise NotMovedError("the program has no result that is rounded")
    return lowered


def refined(lowered: Any) -> Any:
    """Return the StableHLO module of a lowered call, with static shapes.

    Changes that are made in this module are compiled with the call. Raises `UnreducedError` for a module with
    unreduced values.
    """
    module = lowered.compiler_ir("stablehlo")
    text = str(module.operation.get_asm(large_elements_limit=8))
    if "unreduced={" in text:
        raise UnreducedError("the program has unreduced values: each device has only its part of a sum over devices")
    if "?x" in text:
        module = mlir.refine_polymorphic_shapes(module)
        lowered._lowering._hlo = module
    return module


class Rewriting:
    """The rewriting of a StableHLO module, in place, so that the results of its operations are moved.

    To move a result means to add some units in the last place to its elements. A new argument of `main` says how many.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.places = 0
        self.helpers: dict[tuple[str, int, bool, bool], tuple[str, str]] = {}

    def rewrite(self) -> int:
        """Rewrite the module so that rounded results and terms of sums are moved; return how many values are moved.

        Moved are the results for which `_is_open` is true, and the terms of sums that would otherwise all stay exact
        (`Operands`).
        """
        with self.module.context, ir.Location.unknown():
            self.numbers_type = ir.Type.parse("tensor<3xi32>")
            ops = [item.operation for item in self.module.body.operations]
            defined = (op for op in ops if op.name == "func.func" and len(op.regions[0].blocks))
            functions = {str(op.attributes["sym_name"]).strip('"'): op for op in defined}
            self.called = self._called(functions)
            for name in self.called:
                functions[name] = self._with_argument(functions[name])
            main = functions["main"].regions[0].blocks[0]
            self.operands = Operands(functions=functions, called=self.called)
            # The argument of `main` that nothing uses and that has the type of the numbers.
            unused = (one for one in main.arguments if one.type == self.numbers_type and not list(one.uses))
            blocks = [(main, next(unused))]
            for name in sorted(self.called):
                block = functions[name].regions[0].blocks[0]
                blocks.append((block, block.arguments[len(block.arguments) - 1]))
            # All are asked before any is changed: what moves already is followed through the whole program.
            plan = [self._planned(block) for block, _ in blocks]
            for (block, numbers), terms in zip(blocks, plan, strict=True):
                self._walk(block, numbers, iter(terms))
            helpers = ir.Module.parse("\n".join(text for _, text in self.helpers.values()))
            for op in helpers.body.operations:
                op.operation.clone(ir.InsertionPoint(self.module.body))
        return self.places

    def _called(self, functions: dict[str, Any]) -> set[str]:
        """Return the names of the functions that `main` reaches only by calls for which `is_walked` is true."""
        called, reached, elsewhere = set(), ["main"], set()
        for function in functions.values():
            for op in operations(function):
                if not is_walked(op):
                    elsewhere |= {callee(op), *map(callee, operations(op))}
                # By name: some releases' bindings cannot read every attribute.
                for name in REFERENCES.get(op.name, ()):
                    if name in op.attributes:
                        elsewhere |= set(re.findall(r"@([\w.$-]+)", str(op.attributes[name])))
        while reached:
            for name in map(callee, filter(is_walked, operations(functions[reached.pop()], into=is_walked))):
                if name in functions and name not in called and name not in elsewhere:
                    called.add(name)
                    reached.append(name)
        return called

    def _with_argument(self, function: Any) -> Any:
        """Replace a function by a copy that takes the numbers of `moves` as another last argument; return the copy.

        A copy is needed, since until jaxlib 0.4.28 an existing block cannot get more arguments.
        """
        given = {item.name: item.attr for item in attributes(function)}
        old = ir.FunctionType(ir.TypeAttr(given["function_type"]).value)
        inputs = [*old.inputs, self.numbers_type]
        given["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))
        if "arg_attrs" in given:
            given["arg_attrs"] = ir.ArrayAttr.get([*ir.ArrayAttr(given["arg_attrs"]), ir.DictAttr.get({})])
        with ir.InsertionPoint(function):
            made = ir.Operation.create("func.func", attributes=given, regions=1)
        before = function.regions[0].blocks[0]
        block = ir.Block.create_at_start(made.regions[0], inputs)
        for replaced, argument in zip(before.arguments, list(block.arguments)[: len(inputs) - 1], strict=True):
            replaced.replace_all_uses_with(argument)
        for op in list(before.operations):
            block.append(op)
        function.erase()
        return made

    def _planned(self, block: Any) -> list[list[int]]:
        """Return, for each operation that `_walk` visits in a block, the indexes of the operands to move as terms."""
        planned = []
        for op in [item.operation for item in block.operations][:-1]:
            if is_walked(op):
                for region in op.regions:
                    for inner in region.blocks:
                        planned += self._planned(inner)
            planned.append(self.operands.terms_to_move(op) if self._is_open(op, short_name(op)) else [])
        return planned

    def _walk(self, block: Any, numbers: Any, planned: Iterator[list[int]]) -> None:
        """Move rounded results and terms of sums in a block, and in the bodies of its loops and branches.

        `numbers` is the value in the module that holds what `moves` returns; `planned` yields what `_planned` returned.
        """
        ops = [item.operation for item in block.operations]
        for op, following in itertools.pairwise(ops):  # the last one is a terminator
            if is_walked(op):
                for region in op.regions:
                    for inner in region.blocks:
                        self._walk(inner, numbers, planned)
            terms = next(planned)
            if callee(op) in self.called:
                with ir.InsertionPoint(op):
                    again = ir.Operation.create(
                        "func.call",
                        results=[result.type for result in op.results],
                        operands=[*op.operands, numbers],
                        attributes={item.name: item.attr for item in attributes(op)},
                    )
                for old, new in zip(op.results, again.results, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()
            elif self._is_open(op, short_name(op)):
                doubled = doublings(self._terms(op))
                results = [(result, following) for result in op.results]
                if wide := self._in_wider_type(op, terms):
                    op, narrowed = wide
                    results = [(op.results[0], narrowed or following)]
                    results += [(narrowed.results[0], following)] if narrowed else []
                for result, at in results:
                    self._move(result, at, numbers, doubled)
                for number in terms:
                    self._move_operand(op, number, numbers)

    def _in_wider_type(self, op: Any, terms: list[int]) -> tuple[Any, Any] | None:
        """Replace a product with terms of a narrow type by an equal product with operands in float32.

        Returns the new product, and the operation that converts its result back to the narrow type, or None if no
        conversion is needed. Any other operation stays unchanged, and None is returned.
        """
        types = [NARROW.fullmatch(str(value.type)) for value in op.operands]
        result = WIDENED.fullmatch(str(op.results[0].type)) if op.results else None
        if short_name(op) not in PRODUCTS or "algorithm" in op.attributes or not result:
            return None
        if not any(types[number] for number in terms):
            return None

        def converted(value: Any, shape: str, kind: str) -> Any:
            wide = ir.Type.parse(f"tensor<{shape}{kind}>")
            return ir.Operation.create("stablehlo.convert", results=[wide], operands=[value])

        with ir.InsertionPoint(op):
            pairs = zip(op.operands, types, strict=True)
            operands = [converted(value, kind[1], "f32").results[0] if kind else value for value, kind in pairs]
            is_narrow = BITS[result[2]] < BITS["f32"]
            kind = ir.Type.parse(f"tensor<{result[1]}f32>") if is_narrow else op.results[0].type
            given = {item.name: item.attr for item in attributes(op)}
            made = ir.Operation.create(op.name, results=[kind], operands=operands, attributes=given)
            narrowed = converted(made.results[0], result[1], result[2]) if is_narrow else None
            op.results[0].replace_all_uses_with((narrowed or made).results[0])
        op.erase()
        return made, narrowed

    def _move_operand(self, op: Any, number: int, numbers: Any) -> None:
        """Replace an operand of an operation by its moved form, unless its type is one that is never moved."""
        value = op.operands[number]
        match = ARRAY.fullmatch(str(value.type))
        if match:
            # Products of narrow numbers are exact in float32, and their sums are not.
            all_move = short_name(op) in EXACT_OF_NEAR or self.operands.is_widened(value)
            with ir.InsertionPoint(op):
                op.operands[number] = self._moved(value, match, numbers, doubled=0, of_terms=True, all_move=all_move)

    def _is_open(self, op: Any, name: str) -> bool:
        """Return whether IEEE 754 allows different last digits in the results of an operation."""
        if op.name == "sdy.manual_computation":
            return True
        if op.name.startswith("chlo."):
            return not EXACT_CALLS.search(name) and name not in ("constant", "constant_like")
        if not op.name.startswith("stablehlo."):
            return False
        if name in SUMS:
            return is_sum(op)
        if name in ("custom_call", "composite"):
            return not EXACT_CALLS.search(str(op.attributes["call_target_name" if name == "custom_call" else "name"]))
        if name in OPEN_IF_COMPLEX and "complex<" in str(op.operands[0].type):
            return True
        if name == "multiply":  # an addition may take the product before it is rounded
            return is_added(op.results[0])
        return name in OPEN

    def _terms(self, op: Any) -> int:
        """Return how many numbers an operation sums for each element of its result; 1 if it is not a plain sum."""
        name = op.name.rpartition(".")[2]
        if name not in ("dot", "dot_general", "convolution", "reduce", "reduce_window", "scatter"):
            return 1
        values = op.operands[0], op.operands[-1], op.results[0]
        left, right, result = ([int(size) for size in ir.RankedTensorType(value.type).shape] for value in values)
        if name in ("reduce", "scatter"):  # on average, of as many updates as there are
            return math.prod(left if name == "reduce" else right) // max(1, math.prod(result))
        if name == "reduce_window":  # `array<i64: 9, 1>`; in old releases `dense<9> : tensor<2xi64>`
            sizes = re.findall(r"\b\d+\b", str(op.attributes["window_dimensions"]).partition(" : ")[0])
            product: int = math.prod(map(int, sizes))
            return product if len(sizes) == len(result) else product ** len(result)
        if name == "convolution":
            kernel = re.search(r"x\[([^]]*)\]->", str(op.attributes["dimension_numbers"]))
            features = [part.strip() for part in kernel[1].split(",")].index("o") if kernel else 0
            return math.prod(right) // max(1, right[features])
        if name == "dot":
            return int(left[-1])
        summed = re.search(r"lhs_contracting_dimensions = \[([^]]*)\]", str(op.attributes["dot_dimension_numbers"]))
        return math.prod(left[int(part)] for part in summed[1].split(",")) if summed else 1

    def _move(self, result: Any, following: Any, numbers: Any, doubled: int) -> None:
        """Add a call that moves a result by some units in the last place, and replace the result by it in all its uses.

        The call is inserted before the operation `following`. A result of a type that is never moved stays unchanged.
        """
        match = ARRAY.fullmatch(str(result.type))
        if not match:
            return
        # Sums of 16 bits are made with more of them, and rounded once.
        doubled = doubled if BITS[match[3]] > 16 else 0
        uses = [(use.owner, use.operand_number) for use in result.uses]
        with ir.InsertionPoint(following):
            moved = self._moved(result, match, numbers, doubled=doubled)
        for owner, number in uses:
            owner.operands[number] = moved

    def _moved(
        self, value: Any, match: Any, numbers: Any, *, doubled: int, of_terms: bool = False, all_move: bool = False
    ) -> Any:
        """Add a call of a helper function that moves a value, at the insertion point; return the call's result.

        A helper function is made on first use for each type and choice of the parameters, which are those of
        `helper_text`. `match` is the match of `ARRAY` with the value's type.
        """
        key = match[0], doubled, of_terms, all_move
        if key not in self.helpers:
            name = f"jaxexport_moved_{len(self.helpers)}"
            text = helper_text(
                name,
                match[1],
                match[3],
                is_complex=bool(match[2]),
                doubled=doubled,
                of_terms=of_terms,
                all_move=all_move,
            )
            self.helpers[key] = name, text
        self.places += 1
        scalar = ir.Type.parse("tensor<i32>")
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), signed(self.places * PLACE | 1))
        place = ir.DenseElementsAttr.get_splat(scalar, number)
        constant = ir.Operation.create("stablehlo.constant", results=[scalar], attributes={"value": place})
        return ir.Operation.create(
            "func.call",
            results=[value.type],
            operands=[value, constant.results[0], numbers],
            attributes={"callee": ir.FlatSymbolRefAttr.get(self.helpers[key][0])},
        ).results[0]


class Operands:
    """The search for terms of sums that would be the same in every run, and so must be moved before they are summed.

    These are terms that are computed exactly from constants or integers. Floating-point arguments differ between runs,
    which change the inputs, and so do results that are moved.
    """

    def __init__(self, functions: dict[str, Any], called: set[str]) -> None:
        self.functions = functions
        self.known: dict[Any, bool] = {}
        self.calls: dict[str, list[Any]] = {}
        for function in functions.values():
            for op in operations(function):
                if callee(op) in called:
                    self.calls.setdefault(callee(op), []).append(op)

    def terms_to_move(self, op: Any) -> list[int]:
        """Return the indexes of the operands of an operation that must be moved themselves, as its terms.

        These are the operands of a sum that stay exact otherwise, and all factors of a complex product or quotient.
        """
        name, count = short_name(op), len(op.operands)
        if name in ("multiply", "divide"):  # of complex numbers: what cancels in them has the error of its terms
            # In a product with its own conjugate both factors move alike, and what cancels still does.
            return list(range(count)) if "complex<" in str(op.operands[0].type) else []
        if name in ("reduce", "reduce_window"):  # the terms, then as many numbers with which their sums begin
            terms = range(count // 2)
        elif name == "select_and_scatter":
            terms = range(1, 2)
        elif name in SUMS | PRODUCTS | EXACT_OF_NEAR:
            terms = range(count)
        else:
            return []
        return [number for number in terms if not self._moves(op.operands[number])]

    def is_widened(self, value: Any) -> bool:
        """Return whether a value is the result of a conversion from a narrow type."""
        if isinstance(value.owner, ir.Block):
            return False
        maker = getattr(value.owner, "operation", value.owner)
        return short_name(maker) == "convert" and bool(NARROW.fullmatch(str(maker.operands[0].type)))

    def _moves(self, value: Any) -> bool:
        """Return whether a value differs between runs: it is moved itself, or computed from values that are moved."""
        if value not in self.known:
            self.known[value] = True  # of what a loop makes of itself, the rest decides
            self.known[value] = self._found(value)
        return self.known[value]

    def _found(self, value: Any) -> bool:
        if not FLOAT.search(str(value.type)):
            return False
        if isinstance(value.owner, ir.Block):
            return self._argument(ir.BlockArgument(value))
        op = getattr(value.owner, "operation", value.owner)
        name, operands = short_name(op), list(op.operands)
        number = ir.OpResult(value).result_number
        if name in SAME_NUMBERS:
            return self._moves(operands[number] if number < len(operands) else operands[0])
        if name == "convert":
            # Of numbers that are rounded to few bits, only those near a tie move; the others are exact afterwards.
            return not EIGHT_BITS.search(str(value.type)) and self._moves(operands[0])
        if name in OF_ALL_OPERANDS:
            parts = [part for part in operands if FLOAT.search(str(part.type)) and not self._is_one_number(part)]
            return bool(parts) and all(map(self._moves, parts))
        if name == "multiply" and is_added(op.results[0]):
            return True
        if name in EXACT:
            return False
        if name in ("reduce", "reduce_window"):
            return is_sum(op) or self._moves(operands[number])
        if name == "call" and callee(op) in self.calls:
            block = self.functions[callee(op)].regions[0].blocks[0]
            last = [item.operation for item in block.operations][-1]
            return self._moves(last.operands[number])
        if name == "while":  # what a loop carries and never changes is as it was
            returned = self._returned(op, 1)[number]
            if returned == op.regions[1].blocks[0].arguments[number]:
                return self._moves(operands[number])
            return self._moves(operands[number]) or self._moves(returned)
        if name in ("case", "if"):
            return all(self._moves(self._returned(op, region)[number]) for region in range(len(op.regions)))
        return True

    def _returned(self, op: Any, region: int) -> list[Any]:
        last = [item.operation for item in op.regions[region].blocks[0].operations][-1]
        return list(last.operands)

    def _argument(self, value: Any) -> bool:
        owner = value.owner.owner
        owner = getattr(owner, "operation", owner)
        number = value.arg_number
        if owner.name == "func.func":
            given = self._passed_values(value)
            return all(map(self._moves, given)) if given else not EIGHT_BITS.search(str(value.type))
        if short_name(owner) == "while":
            given = owner.operands[number]
            body = owner.regions[1].blocks[0]
            returned = self._returned(owner, 1)[number]
            if returned == body.arguments[number]:
                return self._moves(given)
            return self._moves(given) or self._moves(returned)
        return True

    def _is_one_number(self, value: Any) -> bool:
        """Return whether all elements of a value are the same constant, such as a bound or the zero of a mask."""
        while not isinstance(value.owner, ir.Block):
            op = getattr(value.owner, "operation", value.owner)
            if short_name(op) == "constant":
                return bool(ONE_NUMBER.search(op.get_asm(large_elements_limit=4)))
            if short_name(op) not in ("broadcast_in_dim", "reshape", "convert"):
                return False
            value = op.operands[0]
        given = self._passed_values(value)
        return bool(given) and all(map(self._is_one_number, given))

    def _passed_values(self, argument: Any) -> list[Any]:
        """Return the values that are passed for an argument of a function, one for each call of the function.

        Empty if the function is never called, as `main`, and for an argument of a loop or a branch.
        """
        owner = getattr(argument.owner.owner, "operation", argument.owner.owner)
        if owner.name != "func.func":
            return []
        calls = self.calls.get(str(owner.attributes["sym_name"]).strip('"'), [])
        number = ir.BlockArgument(argument).arg_number
        return [call.operands[number] for call in calls if number < len(call.operands)]


def doublings(terms: int) -> int:
    """Return how often to double the units by which the result of a sum is moved, for this number of terms.

    Each of the n roundings in a sum of n terms is off by up to half a unit of the sum so far. For terms of the same
    sign, the result is off by about 0.17 √n units. So it is moved by √n / 4 units, rounded to a power of two.
    """
    return max(0, (terms // TERMS).bit_length() + 1) // 2


def short_name(op: Any) -> str:
    """Return the name of an operation without its dialect."""
    return str(op.name).rpartition(".")[2]


def is_sum(op: Any) -> bool:
    """Return whether the body of an operation, such as a reduction, contains an addition or a multiplication."""
    return any(inner.name in (*ADDING, "stablehlo.multiply") for inner in operations(op))


def is_added(value: Any, depth: int = 4) -> bool:
    """Return whether an addition uses a product directly, or after operations that do not round it.

    At most `depth` operations are followed between the product and the addition.
    """
    for use in value.uses:
        if use.owner.name in ADDING:
            return True
        if depth and short_name(use.owner) in NOTHING_ROUNDED_BETWEEN and is_added(use.owner.results[0], depth - 1):
            return True
    return False


def attributes(op: Any) -> list[Any]:
    """Return the attributes of an operation, each with its name.

    Iteration over `op.attributes` gives names in some releases of jaxlib, and names with attributes in others.
    """
    return [op.attributes[index] for index in range(len(op.attributes))]


def callee(op: Any) -> str:
    """Return the name of the function that an operation calls; "" if it is not a call."""
    return str(op.attributes["callee"]).lstrip("@").strip('"') if op.name == "func.call" else ""


def is_walked(op: Any) -> bool:
    """Return whether values inside an operation, or inside the function that it calls, may be moved.

    They may not in the body of a `shard_map`: it takes no value from outside, and so not the numbers of `moves`.
    """
    if op.name == "func.call":  # until 0.6.2 the body of a `shard_map` is called, with values that were split by hand
        makers = [getattr(value.owner, "operation", value.owner) for value in op.operands]
        custom = [maker for maker in makers if getattr(maker, "name", "") == "stablehlo.custom_call"]
        return not any("SPMDFullToShardShape" in str(maker.attributes["call_target_name"]) for maker in custom)
    return op.name.rpartition(".")[2] not in BODIES and not op.name.startswith("sdy.")


def operations(op: Any, into: Callable[[Any], bool] = lambda op: True) -> Iterator[Any]:
    """Yield the operations inside an operation, at every depth.

    Only operations for which `into` returns True are searched for operations inside them.
    """
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                if into(inner.operation):
                    yield from operations(inner.operation, into)


def helper_text(
    name: str,
    shape: str,
    element: str,
    *,
    is_complex: bool = False,
    doubled: int = 0,
    of_terms: bool = False,
    all_move: bool = False,
) -> str:
    """Return the StableHLO text of a function that moves the elements of an array by some units in the last place.

    A hash of an element's bits decides how far it moves. The hash has a single step, since a program calls hundreds of
    such functions: the highest bits of i·(i + salt), where i are the bits of the element. Without the square of i, the
    moves of evenly spaced numbers would be evenly spread, and sums of them too small.

    Args:
        name: the name of the function.
        shape: the sizes of the array, each followed by x, such as ``2x3x``.
        element: the element type, such as ``f32``; for a complex array, the type of its parts.
        is_complex: whether elements are complex numbers.
        doubled: how often to double the distance that the numbers of `moves` give.
        of_terms: whether equal elements move differently, as terms of a sum must: a signal that repeats itself would
            do so after the moves too.
        all_move: whether elements with few significant bits move too.
    """
    width, mantissa = BITS[element], MANTISSA[element]
    part, bits, flags = (f"tensor<{shape}{kind}>" for kind in (element, f"i{width}", "i1"))
    whole = f"tensor<{shape}complex<{element}>>" if is_complex else part
    scalar, wide = "tensor<i32>", f"tensor<i{width}>"
    size = math.prod(map(int, shape.split("x")[:-1]))
    lines: list[str] = []

    def op(text: str, kind: str = bits) -> str:
        lines.append(f"%{len(lines)} = stablehlo.{text} : {kind}")
        return f"%{len(lines) - 1}"

    def constant(value: int, kind: str = bits, width: int = width) -> str:
        return op(f"constant dense<{signed(value, width)}>", kind)

    def in_each(value: str) -> str:
        """Return an array of the helper's shape whose elements are all this number, converted to their width."""
        if width != 32:
            value = op(f"convert {value}", f"({scalar}) -> {wide}")
        return op(f"broadcast_in_dim {value}, dims = []", f"({wide}) -> {bits}") if shape else value

    def differs(value: str, other: int) -> str:
        return op(f"compare NE, {value}, {constant(other)}", f"({bits}, {bits}) -> {flags}")

    def moved(values: str) -> str:
        integers = op(f"bitcast_convert {values}", f"({part}) -> {bits}")
        hashed = op(f"multiply {op(f'add {integers}, {salt}')}, {integers}")
        highest = op(f"add {op(f'shift_right_arithmetic {hashed}, {shift}')}, {one}")
        there = op(f"add {integers}, {op(f'shift_right_arithmetic {highest}, {one}')}")
        # Tiny numbers below the normal ones stay: some steps down they would change their sign, and zero with them.
        all_ones = ((1 << (width - 1 - mantissa)) - 1) << mantissa
        exponents = op(f"and {integers}, {constant(all_ones)}")
        moves = differs(exponents, 0)
        if all_move:
            moves = op(f"and {moves}, {differs(exponents, all_ones)}", flags)
        else:  # what is not finite has no last bits
            is_long = differs(op(f"and {integers}, {constant((1 << mantissa // 2) - 1)}"), 0)
            moves = op(f"and {moves}, {is_long}", flags)
        chosen = op(f"select {moves}, {there}, {integers}", f"{flags}, {bits}")
        return op(f"bitcast_convert {chosen}", f"({bits}) -> {part}")

    rows = [op(f"slice %numbers [{n}:{n + 1}]", "(tensor<3xi32>) -> tensor<1xi32>") for n in range(3)]
    seed, bit, moving = (op(f"reshape {row}", f"(tensor<1xi32>) -> {scalar}") for row in rows)
    salt = in_each(op(f"multiply {seed}, %place", scalar))
    if of_terms and shape:
        flat = f"tensor<{size}xi{width}>"
        number = op(f"reshape {op('iota dim = 0', flat)}", f"({flat}) -> {bits}")
        mixed = op(f"multiply {op(f'add {number}, {salt}')}, {constant(MULTIPLIERS[width])}")
        high = op(f"shift_right_logical {mixed}, {constant(width // 2 - 1)}")
        salt = op(f"multiply {op(f'xor {mixed}, {high}')}, {constant(MULTIPLIERS[width])}")
    if doubled:  # only what moves at all
        more = op(f"multiply {moving}, {constant(doubled, scalar, 32)}", scalar)
        bit = op(f"subtract {bit}, {more}", scalar)
    if width != 32:
        bit = op(f"add {bit}, {constant(width - 32, scalar, 32)}", scalar)
    shift, one = in_each(bit), constant(1)
    # Terms are computed on their own: XLA until 0.10.2 takes a stored matrix that is transposed, and then moved where
    # it is multiplied, for one that is not transposed.
    given = "%x"
    if size > SMALL or of_terms:
        given = op("optimization_barrier %x", whole)
    if is_complex:
        parts = [moved(op(f"{name} {given}", f"({whole}) -> {part}")) for name in ("real", "imag")]
        result = op(f"complex {', '.join(parts)}", whole)
    else:
        result = moved(given)
    arguments = f"%x: {whole}, %place: {scalar}, %numbers: tensor<3xi32>"
    body = "\n".join(lines)
    return f"func.func private @{name}({arguments}) -> {whole} {{\n{body}\nreturn {result} : {whole}\n}}"


def signed(value: int, width: int = 32) -> int:
    """Return the signed integer that has the lowest `width` bits of a number, in two's complement."""
    value %= 1 << width
    return value - (1 << width) if value >> (width - 1) else value
