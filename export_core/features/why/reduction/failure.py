"""In which way a cell fails: what a smaller program has to share with it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens import Leaf
from export_core.judge.failure_signature import FailureSignature, failure_signature, message_class
from export_core.matrix import Outcome
from export_core.numbers.elements import to_double

KEPT_SHARE = 0.5
"""How much of the difference between two readers has to be left: with less, a program could show any rounding."""

_FATAL = re.compile(r"Check failed|LLVM ERROR|[Aa]ssertion|F\d{4} |terminate called")
"""What a native library prints before it ends its process."""


@dataclass(frozen=True)
class Failure:
    """The signature of a failure, with how its process died: `fatal` is the line of stderr by which it ended itself."""

    signature: FailureSignature
    signal: int | None = None
    fatal: str = ""

    @classmethod
    def of(cls, outcome: Outcome) -> Failure:
        """The failure that an outcome shows."""
        fatal = next((line for line in outcome.stderr.splitlines() if _FATAL.search(line)), "")
        # Since XLA's log lines begin with the time, what is before the message differs each time.
        fatal = fatal[match.start() :] if (match := _FATAL.search(fatal)) else ""
        return cls(failure_signature(outcome), outcome.signal, message_class(fatal))

    def __str__(self) -> str:
        return str(self.signature)


@dataclass(frozen=True)
class Divergence:
    """How far apart the outputs of two readers are.

    `units` are those in the last place of the largest finite element of an output, the largest of all outputs; infinite
    where one side alone is NaN or infinite. `relative` is the same error as a share of that element. `unequal`: outputs
    that are no floats differ.
    """

    units: float = 0.0
    relative: float = 0.0
    unequal: bool = False

    def is_enough_for(self, original: Divergence) -> bool:
        """Whether a smaller program still shows the difference that the original has."""
        if original.units:
            return self.units >= KEPT_SHARE * original.units
        return self.unequal


def divergence(expected: Sequence[Leaf], actual: Sequence[Leaf]) -> Divergence:
    """How far outputs are apart: those of a second reader, and those of the failing one, of the same types."""
    units, relative, unequal = 0.0, 0.0, False
    for want, got in zip(expected, actual, strict=True):
        if want.dtype in FLOATS:
            error, step = _error(want, got)
            units, relative = max(units, error / step), max(relative, error)
        else:
            unequal = unequal or want.data.tobytes() != got.data.tobytes()
    return Divergence(units, relative, unequal)


def _error(want: Leaf, got: Leaf) -> tuple[float, float]:
    """The largest error of floats as a share of the largest element, and the unit in its last place as such a share."""
    import ml_dtypes  # it comes with jax, which NumPy's narrow floats need

    step = float(ml_dtypes.finfo(want.numpy().dtype).eps)
    one, other = to_double(want.numpy()), to_double(got.numpy())
    finite = np.isfinite(one) & np.isfinite(other)
    if not (finite | (one == other) | (np.isnan(one) & np.isnan(other))).all():
        return math.inf, step
    error = float(np.abs(one[finite] - other[finite]).max(initial=0.0))
    largest = float(np.abs(one[finite]).max(initial=0.0))
    return (error / largest if largest else math.inf) if error else 0.0, step
