"""Keywords of a marker that change nothing in what is exported or checked: a mistake, so each is an error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from export_core.export.arguments import Arguments
from export_core.export.case import Case
from export_core.export.errors import ExportError


def require_use(case: Case, arguments: Arguments, exported: Any) -> None:
    """Raise `ExportError` for options of a case that change nothing. `exported` is jax's `Exported`."""
    problems = [f"{case.test}: {problem}" for problem in _problems(case, arguments, exported)]
    if problems:
        raise ExportError("\n".join(problems))


def _problems(case: Case, arguments: Arguments, exported: Any) -> Iterator[str]:
    options = case.options
    if options.constraints and options.symbolic_shapes is None:
        yield f"constraints={options.constraints!r} change nothing without symbolic_shapes. Give those, or remove them."
    # A symbolic dimension is no int.
    if options.symbolic_shapes is not None and all(
        isinstance(n, int) for aval in exported.in_avals for n in aval.shape
    ):
        yield (
            f"symbolic_shapes={options.symbolic_shapes!r} change nothing: no dimension in them is symbolic. Name one, "
            "such as 'b, 4', or remove them."
        )
    if options.in_specs and not options.mesh:
        yield (
            f"in_specs={options.in_specs!r} change nothing without a mesh. Give its axes, such as mesh={{'data': 4}}, "
            "or remove them."
        )
    if exported.nr_devices == 1 < math.prod(options.mesh.values()):
        yield f"mesh={dict(options.mesh)} changes nothing: there is no argument to be on it. Remove it."
    spread = options.spread_over
    if spread == 1 or (spread and not any(_can_be_split(leaf, spread) for leaf in arguments.flat())):
        yield (
            f"spread_over={spread} changes nothing: expected 2 devices or more, and an argument whose first dimension "
            "is a multiple of that. Give such an argument, or remove it."
        )


def _can_be_split(leaf: Any, parts: int) -> bool:
    sizes = np.shape(leaf)[:1]
    return any(size and size % parts == 0 for size in sizes)
