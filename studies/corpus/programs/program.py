"""A record of a program: a function, fixed arguments, and the errors that can be planted in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

BF16 = "bf16"
DROPPED = "dropped-term"
OFF_BY_ONE = "off-by-one"
SWAPPED = "swapped-axis"
EPSILON = "lost-epsilon"
SEED = "another-seed"
LOW = "low-accumulation"
CONSTANT = "constant"
TF32 = "tf32"
TABLE = "table-entry"
APPROXIMATED = "approximated"
HALF = "half-activations"
RATIO = "wrong-ratio"


@dataclass(frozen=True)
class Program:
    """A function of jax and its arguments.

    Args:
        wrong: The keywords that plant an error in the function, by the kind of the error.
        compare: The marker's `compare`; "shape" if noise hides every number, as no golden would be stored otherwise.
        x64: Whether the function runs with 64-bit types.
        lapack: Whether the function calls LAPACK.
        jumps: Whether the last bit of an inner value may make an output jump, since outputs are chosen by comparisons.
        narrow: "beside" if the module has a type narrower than the compared outputs, in constants or in values that
            these outputs do not depend on; "half" if the model computes in half precision; "rounded" if the outputs
            depend on a value that was rounded to a narrow type.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    wrong: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    compare: str = "allclose"
    x64: bool = False
    lapack: bool = False
    jumps: bool = False
    narrow: str = ""

    @property
    def variants(self) -> dict[str, Callable[..., Any]]:
        """The function with each error planted, by the kind of error."""
        planted = {kind: partial(self.function, **knobs) for kind, knobs in self.wrong.items()}
        if any(argument.dtype == np.float32 for argument in self.arguments):
            planted.setdefault(BF16, partial(_rounded, self.function))
        return planted

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__.strip("_")


def _rounded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with float32 arguments that passed through bfloat16."""
    import jax.numpy as jnp

    return function(*(x.astype(jnp.bfloat16).astype(x.dtype) if x.dtype == np.float32 else x for x in arguments))
