"""The outputs of a module whose numbers have bounds, since tanh, erf, a sigmoid, a softmax or a clamp made them."""

import math
import re
import struct
from collections.abc import Collection, Mapping
from itertools import permutations
from typing import Literal, NamedTuple

from export_core.artifact.artifact import Artifact
from export_core.artifact.errors import ArtifactError
from export_core.artifact.tracing import Trace, Value

_SHAPES = {
    "broadcast_in_dim", "convert", "dynamic_broadcast_in_dim", "dynamic_reshape", "dynamic_slice", "gather",
    "optimization_barrier", "reduce_precision", "reshape", "reverse", "sharding_constraint", "slice", "transpose",
}  # fmt: skip
"""Operations that keep the numbers of an operand, and change at most its shape or its float type."""

_STEPS = {"ceil", "floor", "round_nearest_afz", "round_nearest_even", "sign"}  # Operations that give whole numbers.
_FLOATS = re.compile(r"tensor<(?:[\d?]+x)*(?:bf|f)\d")
_CONSTANT = re.compile(r"dense<([^\[\]>]+)> : tensor<(?:[\d?]+x)*(\w+)")

Bounds = Literal["tanh", "erf", "a sigmoid", "a softmax", "a clamp"]


class Bounded(NamedTuple):
    """The function that computes an output, with the smallest and the largest number that it can return."""

    by: Bounds  # The function.
    bounds: tuple[float, float]  # The least and the greatest number.
    fills: tuple[float, ...]  # The numbers that select operations put in place of some of its results.


def bounded_outputs(artifact: Artifact, numbers: Collection[int]) -> Mapping[int, Bounded]:
    """Return the bounds of the artifact's outputs with the indexes `numbers`, by index.

    An output without bounds is left out. The result is empty if the module cannot be read.
    """
    try:
        trace = _Bounds(artifact.module)
        made = {number: trace.bounded(trace.outputs[number]) for number in numbers}
    except (ArtifactError, LookupError, ValueError):  # a function, a value or an operand that the module does not have
        return {}
    return {number: bounded for number, bounded in made.items() if bounded is not None}


class _Bounds(Trace):
    """The search for the bounds of values in one module."""

    def bounded(self, value: Value) -> Bounded | None:
        """Return the operation, such as tanh or a clamp, that limits a value to a range; None if there is none.

        The operation is found through a mask (`where`) after it. The constants that the mask puts in place of elements
        are returned as `fills`.
        """
        fills: list[float] = []
        while made := self._made(value):
            if made.made_by.name != "select":
                by = self._bounding_function(made)
                bounds = (-1.0, 1.0) if by in ("tanh", "erf") else (0.0, 1.0)
                return Bounded(by, bounds, tuple(fills)) if by else self._clamp(made, tuple(fills))
            _, *sides = made.operands
            numbers = [self._constant(side) for side in sides]
            changing = [side for side, number in zip(sides, numbers, strict=True) if number is None]
            if len(changing) != 1:
                return None
            (value,) = changing
            fills += [number for number in numbers if number is not None]
        return None

    def _bounding_function(self, made: Value) -> Bounds | None:
        """Return the name of the function with known bounds that computes a value; None for any other function."""
        match made.made_by.name:
            case "tanh":
                return "tanh"
            case "logistic":
                return "a sigmoid"
            case "composite" if dict(made.made_by.attributes).get("name") == "'chlo.erf'":
                return "erf"
            case "custom_call" if made.target in ("mhlo.erf", "chlo.erf"):
                return "erf"
            case "divide":
                above, below = made.operands
                if self._is_made_by("exponential", above):
                    return "a softmax"
                if self._constant(above) is not None and self._is_sum_with_exponential(below):
                    return "a sigmoid"
            case "exponential":  # of a log_softmax
                scaled = self._made(made.operands[0])
                if scaled and scaled.made_by.name == "subtract" and self._is_logarithm(scaled.operands[1]):
                    return "a softmax"
        return None

    def _is_sum_with_exponential(self, value: Value) -> bool:
        made = self._made(value)
        if made is None or made.made_by.name != "add":
            return False
        sides = permutations(made.operands)
        return any(self._constant(one) is not None and self._is_made_by("exponential", two) for one, two in sides)

    def _is_logarithm(self, value: Value) -> bool:
        """Return whether a value is a logarithm, or the sum of a logarithm and another value.

        A log_softmax may subtract such a sum: the logarithm of the summed exponentials, plus the maximum.
        """
        made = self._made(value)
        if made and made.made_by.name == "add":
            return any(self._is_made_by("log", operand) for operand in made.operands)
        return made is not None and made.made_by.name == "log"

    def _clamp(self, made: Value, fills: tuple[float, ...]) -> Bounded | None:
        """Return the bounds of a clamp, or of a minimum of a maximum; None for other operations.

        None, too, if the numbers are whole before they are clamped.

        `fills` are the numbers that masks after the clamp put in place of elements.
        """
        if made.made_by.name == "clamp":
            least, inside, most = made.operands
            lower, upper = self._constant(least), self._constant(most)
        else:
            limits: dict[str, float | None] = {}
            inside = made
            for _ in range(2):
                step = self._made(inside)
                if step is None or step.made_by.name not in ("minimum", "maximum"):
                    return None
                one, other = step.operands
                number, inside = self._constant(one), other
                if number is None:
                    number, inside = self._constant(other), one
                limits[step.made_by.name] = number
            lower, upper = limits.get("maximum"), limits.get("minimum")
        if lower is None or upper is None or not lower < upper or self._is_whole(inside):
            return None
        return Bounded("a clamp", (lower, upper), fills)

    def _is_whole(self, value: Value) -> bool:
        if (made := self._unshaped(value)) is None:
            return False
        is_chosen = made.made_by.name == "select" and None not in map(self._constant, made.operands[1:])
        return is_chosen or made.made_by.name in _STEPS or not _is_float(made)

    def _is_made_by(self, name: str, value: Value) -> bool:
        made = self._made(value)
        while made and made.made_by.name == "select":  # a mask
            _, *sides = made.operands
            masked = [side for side in sides if self._constant(side) is None]
            made = self._made(masked[0]) if len(masked) == 1 else None
        return made is not None and made.made_by.name == name

    def _made(self, value: Value) -> Value | None:
        """Return the float value from which `value` is made by nothing but changes of shape and float type.

        None if this is an argument of main, or not a float.
        """
        made = self._unshaped(value)
        return made if made and _is_float(made) else None

    def _unshaped(self, value: Value, *, is_any: bool = False) -> Value | None:
        """Return the value before all operations that change only its shape or float type.

        None if this is an argument of main.

        Only floats are followed, unless `is_any` is true.
        """
        while (made := self.past_calls(value)) and made.made_by.name in _SHAPES and (is_any or _is_float(made)):
            value = made.operands[made.result]
        return made

    def _constant(self, value: Value) -> float | None:
        """Return the number that all elements of a constant have, or NaN if they differ; None for other values."""
        made = self._unshaped(value, is_any=True)
        if made is None or made.made_by.name != "constant":
            return None
        match = _CONSTANT.match(dict(made.made_by.attributes).get("value", ""))
        return math.nan if match is None else _number(*match.groups())


def _is_float(value: Value) -> bool:
    return _FLOATS.match(value.made_by.types[value.result]) is not None


def _number(text: str, kind: str) -> float:
    """Return the float that a constant's text in a module's listing stands for, or NaN if it cannot be read.

    `kind` is the element type; the listing writes bfloat16 as the hexadecimal digits of its bytes.
    """
    try:
        if kind == "bf16" and text.startswith("0x"):
            (number,) = struct.unpack("<f", bytes(2) + bytes.fromhex(text[2:]))
            return float(number)
        return float(text)
    except (ValueError, struct.error):
        return math.nan
