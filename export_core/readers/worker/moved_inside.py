"""Rewrites a lowered call so that what is rounded inside it can be moved: the worker's half of measuring noise.

jaxlib_worker.py loads this file by its path, in the interpreter of the release that measures; like the worker it
imports nothing of this project. Every result whose last digits IEEE 754 leaves open (a sum of several terms, a product
of matrices, a transcendental function, a custom call, a product that an addition may swallow) is moved by some units in
the last place. How far, and which way, follows from a hash of the value's own bits, of the place in the program, and of
three numbers that the call takes as one more argument:

    seed, bits, offset        uint32; see `moves`

One compilation therefore serves runs in all directions, and XLA cannot fold the moves away. Values of few significant
bits (masks, counts, halves), zeros and what is not finite stay: they are exact.

Sums of many terms move farther, since each order of summation rounds otherwise: see `doublings`. Complex results are
moved part by part. Symbolic dimensions are refined before. Types of 8 bits and fewer stay.
"""

from __future__ import annotations

import itertools
import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
MANTISSA = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}
MULTIPLIERS = {64: 0x9E3779B97F4A7C15, 32: 0x9E3779B1, 16: 0x9E3B}
"""Odd numbers near the golden ratio of each width, by which a multiplicative hash spreads its bits."""
PLACE = 0xC2B2AE35  # What tells places in the program apart: each one's number is multiplied by it.

OPEN = {
    *("dot", "dot_general", "convolution", "fft", "cholesky", "triangular_solve", "custom_call", "composite"),
    *("exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "tan", "sine", "cosine"),
    *("rsqrt", "cbrt", "power", "atan2", "divide"),
}
"""Operations whose last digits differ between correct implementations. XLA divides by a constant by multiplying."""
SUMS = {"reduce", "reduce_window", "scatter", "select_and_scatter", "all_reduce", "reduce_scatter"}
"""Those that are open where they add or multiply, and exact where they choose: their bodies say which."""
EXACT_CALLS = re.compile(
    "Sharding|SPMDFull|shape_assertion|annotate_device_placement|callback|top_?k|sdy|xla.sdy|cu_|LayoutConstraint", re.I
)
"""Custom calls and composites whose results are not rounded."""
REFERENCES = {"stablehlo.custom_call": ("called_computations",), "stablehlo.composite": ("decomposition",)}
"""Attributes by which operations other than a call refer to functions, whose arguments must stay what they are."""
ADDING = {"stablehlo.add", "stablehlo.subtract"}
BODIES = {"reduce", "reduce_window", "scatter", "sort", "select_and_scatter", "map", "all_reduce", "reduce_scatter"}
"""Operations in whose bodies nothing moves: XLA wants them to be what it knows."""

TERMS = 64  # Sums of fewer terms move by one unit; of four times as many by two, and so on. See `doublings`.

ARRAY = re.compile(r"tensor<((?:[1-9]\d*x)*)(complex<)?(f64|f32|f16|bf16)>{1,2}")
"""Types of arrays that move: not empty, of static shape."""


class UnreducedError(Exception):
    """Moving the bits of a part of a sum gives another sum."""


class NotMovedError(Exception):
    """Nothing in this program can be moved."""


def moves(seed: int, ulps: int) -> list[int]:
    """The argument for moves of -`ulps` to `ulps` units, a power of two or 0: of one unit, half of the values stay.

    The highest bits of a hash, 2 for one unit and one more for each doubling, plus one, halved, less the middle. With
    no bits at all nothing moves.
    """
    return [seed, ulps.bit_length() + (ulps > 0), ulps]


def lower_moved(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Lower a call with the numbers of `moves`, args and kwargs. Raises `NotMovedError` where nothing can move."""
    import jax
    import numpy as np

    def moved(numbers: Any, args: Any, kwargs: Any) -> Any:
        return call(*args, **kwargs)

    lowered = jax.jit(moved, keep_unused=True).lower(np.zeros(3, np.uint32), args, kwargs)
    module = refined(lowered)
    if not Rewriting(module).rewrite():
        raise NotMovedError("it has no result that is rounded")
    return lowered


def refined(lowered: Any) -> Any:
    """The module that a lowered call will compile, with static shapes; what is done to it is compiled."""
    from jax._src.interpreters import mlir

    module = lowered.compiler_ir("stablehlo")
    text = str(module.operation.get_asm(large_elements_limit=8))
    if "unreduced={" in text:
        raise UnreducedError("it has sums over devices that are not made, of which one device has only a part")
    if "?x" in text:
        module = mlir.refine_polymorphic_shapes(module)
        lowered._lowering._hlo = module
    return module


class Rewriting:
    """The rewriting of one module, in place."""

    def __init__(self, module: Any) -> None:
        from jax._src.lib.mlir import ir

        self.ir = ir
        self.module = module
        self.places = 0
        self.helpers: dict[tuple[str, int], tuple[str, str]] = {}

    def rewrite(self) -> int:
        """Move everything that is open. The number of places."""
        with self.module.context, self.ir.Location.unknown():
            self.numbers_type = self.ir.Type.parse("tensor<3xui32>")
            ops = [item.operation for item in self.module.body.operations]
            defined = (op for op in ops if op.name == "func.func" and len(op.regions[0].blocks))
            functions = {str(op.attributes["sym_name"]).strip('"'): op for op in defined}
            self.called = self._called(functions)
            for name in self.called:
                functions[name] = self._with_argument(functions[name])
            main = functions["main"].regions[0].blocks[0]
            # The argument of `main` that nothing uses and that has the type of the numbers.
            unused = (one for one in main.arguments if one.type == self.numbers_type and not list(one.uses))
            self._walk(main, next(unused))
            for name in sorted(self.called):
                block = functions[name].regions[0].blocks[0]
                self._walk(block, block.arguments[len(block.arguments) - 1])
            helpers = self.ir.Module.parse("\n".join(text for _, text in self.helpers.values()))
            for op in helpers.body.operations:
                op.operation.clone(self.ir.InsertionPoint(self.module.body))
        return self.places

    def _called(self, functions: dict[str, Any]) -> set[str]:
        """The functions that `main` reaches by calls that are walked, and that nothing else refers to."""
        called, reached, elsewhere = set(), ["main"], set()
        for function in functions.values():
            for op in operations(function):
                if not is_walked(op):
                    elsewhere |= {callee(op), *map(callee, operations(op))}
                # By name: some releases' bindings die of an attribute that they cannot read, such as a complex one.
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
        """A function made anew, with the numbers as its last argument: until 0.4.28 a block takes no other ones."""
        ir = self.ir
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

    def _walk(self, block: Any, numbers: Any) -> None:
        """Move the results in a block and in the bodies of its loops and branches."""
        ops = [item.operation for item in block.operations]
        for op, following in itertools.pairwise(ops):  # the last one is a terminator
            if is_walked(op):
                for region in op.regions:
                    for inner in region.blocks:
                        self._walk(inner, numbers)
            if callee(op) in self.called:
                with self.ir.InsertionPoint(op):
                    again = self.ir.Operation.create(
                        "func.call",
                        results=[result.type for result in op.results],
                        operands=[*op.operands, numbers],
                        attributes={item.name: item.attr for item in attributes(op)},
                    )
                for old, new in zip(op.results, again.results, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()
            elif self._is_open(op, op.name.rpartition(".")[2]):
                doubled = doublings(self._terms(op))
                for result in op.results:
                    self._move(result, following, numbers, doubled)

    def _is_open(self, op: Any, name: str) -> bool:
        """Whether IEEE 754 leaves open what the last digits of its results are."""
        if op.name == "sdy.manual_computation":
            return True
        if op.name.startswith("chlo."):
            return not EXACT_CALLS.search(name) and name not in ("constant", "constant_like")
        if not op.name.startswith("stablehlo."):
            return False
        if name in SUMS:
            return any(inner.name in (*ADDING, "stablehlo.multiply") for inner in operations(op))
        if name in ("custom_call", "composite"):
            return not EXACT_CALLS.search(str(op.attributes["call_target_name" if name == "custom_call" else "name"]))
        if name == "multiply":  # an addition may take the product before it is rounded
            return any(use.owner.name in ADDING for use in op.results[0].uses)
        return name in OPEN

    def _terms(self, op: Any) -> int:
        """How many numbers are summed up for one element of the result; 1 where it is no plain sum."""
        name = op.name.rpartition(".")[2]
        if name not in ("dot", "dot_general", "convolution", "reduce", "reduce_window", "scatter"):
            return 1
        values = op.operands[0], op.operands[-1], op.results[0]
        left, right, result = ([int(size) for size in self.ir.RankedTensorType(value.type).shape] for value in values)
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
        """Have everything that uses a result use the moved one; arrays of other types stay."""
        match = ARRAY.fullmatch(str(result.type))
        if not match:
            return
        # Sums of 16 bits are made with more of them, and rounded once.
        key = match[0], doubled if BITS[match[3]] > 16 else 0
        if key not in self.helpers:
            name = f"jaxexport_moved_{len(self.helpers)}"
            self.helpers[key] = name, helper_text(name, match[1], match[3], is_complex=bool(match[2]), doubled=key[1])
        ir = self.ir
        self.places += 1
        scalar = ir.Type.parse("tensor<ui32>")
        place = ir.DenseElementsAttr.get_splat(
            scalar, ir.IntegerAttr.get(ir.IntegerType.get_unsigned(32), self.places * PLACE % 2**32)
        )
        uses = [(use.owner, use.operand_number) for use in result.uses]
        with ir.InsertionPoint(following):
            constant = ir.Operation.create("stablehlo.constant", results=[scalar], attributes={"value": place})
            moved = ir.Operation.create(
                "func.call",
                results=[result.type],
                operands=[result, constant.results[0], numbers],
                attributes={"callee": ir.FlatSymbolRefAttr.get(self.helpers[key][0])},
            )
        for owner, number in uses:
            owner.operands[number] = moved.results[0]


def doublings(terms: int) -> int:
    """How many times the units are doubled by which a sum of so many terms moves.

    n terms of one sign that are added one after another are off by about 0.17 √n units: each of the n roundings is off
    by up to half a unit of what is summed up so far. They move by √n / 4 units, in powers of two.
    """
    return max(0, (terms // TERMS).bit_length() + 1) // 2


def attributes(op: Any) -> list[Any]:
    """The attributes of an operation with their names. Iterating gives names in some releases, and both in others."""
    return [op.attributes[index] for index in range(len(op.attributes))]


def callee(op: Any) -> str:
    """The name of the function that an operation calls; empty for others."""
    return str(op.attributes["callee"]).lstrip("@").strip('"') if op.name == "func.call" else ""


def is_walked(op: Any) -> bool:
    """Whether values move inside: what devices compute by hand takes no value, such as the numbers, from outside."""
    if op.name == "func.call":  # until 0.6.2 the body of a `shard_map` is called, with values that were split by hand
        makers = [getattr(value.owner, "operation", value.owner) for value in op.operands]
        custom = [maker for maker in makers if getattr(maker, "name", "") == "stablehlo.custom_call"]
        return not any("SPMDFullToShardShape" in str(maker.attributes["call_target_name"]) for maker in custom)
    return op.name.rpartition(".")[2] not in BODIES and not op.name.startswith("sdy.")


def operations(op: Any, into: Callable[[Any], bool] = lambda op: True) -> Iterator[Any]:
    """All operations inside one: inside those among them, too, for which `into` is true."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                if into(inner.operation):
                    yield from operations(inner.operation, into)


def helper_text(name: str, shape: str, element: str, *, is_complex: bool, doubled: int = 0) -> str:
    """A function that moves an array of this shape (``2x3x``) and element type, as StableHLO.

    It moves 2 to the power of `doubled` times as far as the numbers say. A value is moved by its last bits as an
    integer. Tiny numbers below the normal ones stay: some steps down they would change their sign.
    """
    width, mantissa = BITS[element], MANTISSA[element]
    part, bits, flags = (f"tensor<{shape}{kind}>" for kind in (element, f"ui{width}", "i1"))
    whole = f"tensor<{shape}complex<{element}>>" if is_complex else part
    scalar, wide = "tensor<ui32>", f"tensor<ui{width}>"
    lines: list[str] = []

    def op(text: str, kind: str = bits) -> str:
        lines.append(f"%{len(lines)} = stablehlo.{text} : {kind}")
        return f"%{len(lines) - 1}"

    def constant(value: int, kind: str = bits) -> str:
        return op(f"constant dense<{value}>", kind)

    def mixed(value: str, width: int, kind: str = bits) -> str:
        """A step of a multiplicative hash."""
        product = op(f"multiply {value}, {constant(MULTIPLIERS[width], kind)}", kind)
        high = op(f"shift_right_logical {product}, {constant(width // 2 - 1, kind)}", kind)
        return op(f"xor {product}, {high}", kind)

    def in_each(value: str) -> str:
        """A number of 32 bits for each element, as wide as they are."""
        converted = op(f"convert {value}", f"({scalar}) -> {wide}")
        return op(f"broadcast_in_dim {converted}, dims = []", f"({wide}) -> {bits}")

    def differs(value: str, other: int) -> str:
        return op(f"compare NE, {value}, {constant(other)}", f"({bits}, {bits}) -> {flags}")

    def moved(values: str) -> str:
        integers = op(f"bitcast_convert {values}", f"({part}) -> {bits}")
        hashed = mixed(mixed(op(f"xor {integers}, {salt}"), width), width)
        spread = op(f"multiply {hashed}, {constant(MULTIPLIERS[width])}")
        top = op(f"shift_right_logical {spread}, {shift}")
        steps = op(f"shift_right_logical {op(f'add {top}, {one}')}, {one}")
        there = op(f"add {integers}, {op(f'subtract {steps}, {offset}')}")
        all_ones = ((1 << (width - 1 - mantissa)) - 1) << mantissa
        exponents = op(f"and {integers}, {constant(all_ones)}")
        is_long = differs(op(f"and {integers}, {constant((1 << mantissa // 2) - 1)}"), 0)
        is_normal = op(f"and {differs(exponents, 0)}, {differs(exponents, all_ones)}", flags)
        chosen = op(f"select {op(f'and {is_long}, {is_normal}', flags)}, {there}, {integers}", f"{flags}, {bits}")
        return op(f"bitcast_convert {chosen}", f"({bits}) -> {part}")

    rows = [op(f"slice %numbers [{n}:{n + 1}]", "(tensor<3xui32>) -> tensor<1xui32>") for n in range(3)]
    seed, count, middle = (op(f"reshape {row}", f"(tensor<1xui32>) -> {scalar}") for row in rows)
    salt = in_each(mixed(op(f"xor {seed}, %place", scalar), 32, scalar))
    if doubled:  # only what moves at all
        moves_at_all = op(f"minimum {middle}, {constant(1, scalar)}", scalar)
        more = op(f"multiply {moves_at_all}, {constant(doubled, scalar)}", scalar)
        count, middle = op(f"add {count}, {more}", scalar), op(f"shift_left {middle}, {more}", scalar)
    shift = in_each(op(f"subtract {constant(width, scalar)}, {count}", scalar))
    offset, one = in_each(middle), constant(1)
    if is_complex:
        parts = [moved(op(f"{name} %x", f"({whole}) -> {part}")) for name in ("real", "imag")]
        result = op(f"complex {', '.join(parts)}", whole)
    else:
        result = moved("%x")
    arguments = f"%x: {whole}, %place: {scalar}, %numbers: tensor<3xui32>"
    body = "\n".join(lines)
    return f"func.func private @{name}({arguments}) -> {whole} {{\n{body}\nreturn {result} : {whole}\n}}"
