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
    """A function of jax and its arguments. `wrong` has, by the kind of error, keywords that plant it.

    `compare` is the marker's; "shape" where noise hides every number, so that no other golden would be stored.
    `lapack`: it calls LAPACK. `jumps`: some of its numbers are chosen, so that one last bit may choose others.
    `narrow`: "beside" where a type narrower than the outputs that are looked at is in the module, unrelated to them or
    stored; "half" for models that compute in half precision; "rounded" where the outputs depend on what is rounded.
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
        """The name of its function."""
        return self.function.__name__.strip("_")


def _rounded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with float32 arguments that passed through bfloat16."""
    import jax.numpy as jnp

    return function(*(x.astype(jnp.bfloat16).astype(x.dtype) if x.dtype == np.float32 else x for x in arguments))
