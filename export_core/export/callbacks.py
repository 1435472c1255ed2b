"""The calls in a function that call back into Python, which no artifact can hold, and the source lines they are on."""

from __future__ import annotations

import os
import sys
from typing import Any

from export_core.export.source_lines import call_text, equations

_SHOWN = 5
"""Calls that a message lists."""

_FUNCTIONALIZE = (
    "Export jax.jit(lambda *args: checkify.checkify(f)(*args)[1]): the error beside the result has other codes in each "
    "process."
)
_EQUINOX = (
    "The variable EQX_ON_ERROR=off leaves equinox's checks out, and throw=False those of the solvers that use it."
)
_HIDDEN = "No equation of the function makes the call: a primitive does where it is lowered, or a derivative."


def describe_callbacks(jaxpr: Any) -> str:
    """A line for each call of a function that calls back into Python, and what to do.

    Args:
        jaxpr: of the function, closed, in any release since 0.4.24.
    """
    calls = list(equations(jaxpr, _calls_back))
    if not calls:  # such as the linear_solve of lineax
        return "\n".join([_HIDDEN, *([_EQUINOX] if "equinox" in sys.modules else [])])
    lines = list(dict.fromkeys(call_text(primitive, frames) for primitive, frames in calls))  # no duplicates, in order
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    # Other libraries are called through equinox too: it has made a call only where its own line is the innermost.
    files = {frames[0].file for _, frames in calls if frames}
    if any(name == "check" for name, _ in calls):
        more.append(_FUNCTIONALIZE)
    if any(f"{os.sep}equinox{os.sep}" in file for file in files):
        more.append(_EQUINOX)
    return "\n".join([*lines[:_SHOWN], *more])


def _calls_back(equation: Any) -> bool:
    name = equation.primitive.name
    return "callback" in name or name in ("debug_print", "outside_call", "check")
