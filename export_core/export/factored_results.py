"""Which results of a function come straight from a factorization: read from the primitives of its jaxpr.

The jaxpr has them on every platform, also where jax makes a factorization of other operations (QDWH).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from export_core.artifact.numerics import Factor, groups_of
from export_core.export.jaxprs import inner_jaxprs

_PRIMITIVES: dict[str, tuple[str, tuple[int, ...]]] = {
    "eigh": ("eigh", (1, 0)),
    "svd": ("svd", (1, 0, 2)),
    "qr": ("qr", (0, 1, 2)),
    "lu": ("lu", (0, 1, 2)),
    "schur": ("schur", (0, 1)),
    "eig": ("eig", (0, 1, 2)),
}
"""For each primitive of `jax.lax.linalg` the comparator, and which factor each of its results is."""

_CALLS = frozenset(
    (
        *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2"),
        *("custom_jvp_call", "custom_jvp_call_jaxpr", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    )
)
"""Primitives that give the results of the jaxpr that they hold for the arguments that they take, under all names that
releases since 0.4.24 have for them."""
_SAME = frozenset(("copy", "copy_p", "optimization_barrier", "sharding_constraint", "reshard"))
"""Primitives that give each operand as it is."""


def factored_results(closed_jaxpr: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The comparator and the numbers of the results of each factorization that the function returns, factors in order.

    Args:
        closed_jaxpr: as `describe_jaxpr` takes it.
    """
    jaxpr = getattr(closed_jaxpr, "jaxpr", closed_jaxpr)
    makers = functools.cache(_makers)  # of jaxprs, which are the same while they are held here
    return groups_of(_factor(jaxpr, var, makers) for var in jaxpr.outvars)


def _makers(jaxpr: Any) -> dict[int, tuple[Any, int]]:
    """By the id of each variable the equation that makes it, and the number of the result; None for an argument."""
    made = {id(var): (None, number) for number, var in enumerate(jaxpr.invars)}
    return made | {id(var): (eqn, number) for eqn in jaxpr.eqns for number, var in enumerate(eqn.outvars)}


def _factor(jaxpr: Any, var: Any, makers: Callable[[Any], dict[int, tuple[Any, int]]]) -> Factor | None:
    """The factor that a variable of a jaxpr is, or None."""
    calls: list[tuple[Any, Any]] = []
    while made := makers(jaxpr).get(id(var)):  # a constant has none
        equation, number = made
        if equation is None:
            if not calls:  # an argument of the function itself
                return None
            jaxpr, call = calls.pop()
            var = call.invars[number]
            continue
        name, inner = equation.primitive.name, inner_jaxprs(equation.params)
        if name in _PRIMITIVES:
            compare, roles = _PRIMITIVES[name]
            # By their places: one inner jaxpr that is called twice is two factorizations.
            place = (*(id(call) for _, call in calls), id(equation))
            return Factor(place, compare, roles[number]) if number < len(roles) else None
        if name in _SAME and len(equation.invars) == len(equation.outvars):
            var = equation.invars[number]
        elif name in _CALLS and len(inner) == 1 and len(inner[0].invars) == len(equation.invars):
            calls.append((jaxpr, equation))
            jaxpr = inner[0]
            var = jaxpr.outvars[number]
        else:
            return None
    return None
