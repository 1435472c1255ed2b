"""Which results of a function come straight from a factorization: read from the custom calls of its module.

A linear algebra library fixes factors only up to signs, phases and order, and chooses them by its processor. LAPACK's
routines and their counterparts on GPUs give their results in a fixed order, which jax returns as they are, or NaN where
the routine failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact.errors import ArtifactError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from export_core.artifact.artifact import Artifact
    from export_core.artifact.bytecode.flow import Body, Operation

LAPACK = ("lapack_", "blas_")
"""How the targets of calls of LAPACK on a CPU begin."""

TARGET = re.compile(r"(?:lapack_(?P<letter>[sdcz])|cusolver_|hipsolver_)(?P<routine>[a-z0-9]+?)(?P<ffi>_ffi)?")

REQUIRED = {"eigh": 2, "svd": 3, "qr": 2, "lu": 2, "schur": 2, "eig": 1}
"""How many factors each comparator needs, the first ones of those that it takes: (w, V), (U, s, V^H), (Q, R, P), (LU,
pivots, permutation), (T, Q), (w, V, V)."""

MOST_STEPS = 1000
"""Operations and calls that are followed from a result to what makes it: a damaged module may call in circles."""

_Roles = dict[int, int]

_ROUTINES: dict[str, tuple[str, _Roles]] = {
    "syevd": ("eigh", {0: 1, 1: 0}),
    "heevd": ("eigh", {0: 1, 1: 0}),
    "gesdd": ("svd", {1: 1, 2: 0, 3: 2}),
    "gesvd": ("svd", {1: 1, 2: 0, 3: 2}),
    "geqrf": ("qr", {0: 1}),
    "geqp3": ("qr", {0: 1, 1: 2}),
    "getrf": ("lu", {0: 0, 1: 1}),
    "gees": ("schur", {0: 0, 1: 1}),
}
"""For each routine the comparator, and by the number of a result of the call which factor it is."""

_OLD_SCHUR: _Roles = {0: 0, 3: 1}
_EIG: dict[tuple[bool, bool], _Roles] = {  # by whether it is a call of the FFI, and of real matrices
    (True, True): {0: 0, 2: 1, 3: 2},
    (True, False): {0: 0, 1: 1, 2: 2},
    (False, True): {3: 0, 5: 1, 6: 2},
    (False, False): {2: 0, 3: 1, 4: 2},
}
_SAME = ("vhlo.subtract", "vhlo.complex", "vhlo.slice")
"""Operations by which jax makes results of its first operand: pivots are counted from 0, the eigenvalues of LAPACK have
real and imaginary parts, R is a slice."""
_FILLED = ("vhlo.broadcast_in_dim", "vhlo.constant")


class Factor(NamedTuple):
    """A result that is a factor: of which factorization, by what comparator, and which factor."""

    of: Hashable
    compare: str
    role: int


def has_factorization(targets: Iterable[str]) -> bool:
    """Whether one of these custom calls may be a factorization."""
    return any(map(TARGET.fullmatch, targets))


def groups_of(factors: Iterable[Factor | None]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The comparator and the outputs of each factorization that has all factors that its comparator needs."""
    found: dict[tuple[Hashable, str], dict[int, int]] = {}
    for output, factor in enumerate(factors):
        if factor is not None:
            found.setdefault((factor.of, factor.compare), {}).setdefault(factor.role, output)
    return tuple(
        (compare, tuple(roles[role] for role in sorted(roles)))
        for (_, compare), roles in found.items()
        if roles.keys() >= set(range(REQUIRED[compare]))
    )


def factored_outputs(artifact: Artifact) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The comparator and the numbers of the outputs of each factorization that the function returns, factors in order.

    Empty where the module cannot be read, which its audit says.
    """
    from export_core.artifact.bytecode.flow import bodies as bodies_of  # of no use to `jaxexport inspect`

    try:
        bodies, main = bodies_of(artifact.module), artifact.module.main
        if main is None:
            return ()
        outputs = zip(bodies[main.name].returned, main.outputs, strict=False)
        values = [_Value(bodies[main.name], value) for value, kind in outputs if "token" not in kind]
        return groups_of(_factor(bodies, value) for value in values)
    except (ArtifactError, LookupError):  # a function or a value that the module does not have
        return ()


class _Value(NamedTuple):
    """A value in the body of a function that these calls have led to, each with the body that it is in."""

    body: Body
    number: int
    calls: tuple[tuple[Body, Operation], ...] = ()

    @property
    def maker(self) -> Operation | None:
        """The operation that makes it; None for an argument."""
        made = self.number - self.body.arguments
        return self.body.makers[made] if made >= 0 else None


class _Source(NamedTuple):
    """A custom call, the number of its result that a value is, and what tells this call from others."""

    value: _Value
    call: Operation
    result: int

    @property
    def key(self) -> tuple[int, ...]:
        """The operations that lead to it."""
        return *(call.first for _, call in self.value.calls), self.call.first


def _factor(bodies: Mapping[str, Body], value: _Value) -> Factor | None:
    """The factor that a value is, or None."""
    source = _source(bodies, value)
    if source is None:
        return None
    # How jax makes a permutation of pivots: in a loop on a CPU, in a kernel on a GPU.
    if source.call.name.startswith("vhlo.while") or source.call.symbol.endswith("_lu_pivots_to_permutation"):
        takes = (_source(bodies, source.value._replace(number=operand)) for operand in source.call.operands)
        lu = next((taken for taken in takes if taken and _routine(taken) == "getrf" and taken.result == 1), None)
        return lu and Factor(lu.key, "lu", 2)
    target = TARGET.fullmatch(source.call.symbol)
    if target is None:
        return None
    routine, is_ffi, is_real = target["routine"], bool(target["ffi"]), target["letter"] in ("s", "d")
    if routine in ("orgqr", "ungqr"):  # Q is made of reflectors, whose lengths it takes last
        made_of_qr = _source(bodies, source.value._replace(number=source.call.operands[-1]))
        return made_of_qr and Factor(made_of_qr.key, "qr", 0)
    compare, roles = ("eig", _EIG[is_ffi, is_real]) if routine == "geev" else _ROUTINES.get(routine, ("", {}))
    if routine == "gees" and not is_ffi:
        roles = _OLD_SCHUR
    return Factor(source.key, compare, roles[source.result]) if source.result in roles else None


def _routine(source: _Source) -> str:
    """The routine that a custom call names; empty for another call."""
    target = TARGET.fullmatch(source.call.symbol)
    return target["routine"] if target else ""


def _source(bodies: Mapping[str, Body], value: _Value) -> _Source | None:
    """The custom call or the loop that makes a value, through calls of functions and what jax does to results."""
    for _ in range(MOST_STEPS):
        operation = value.maker
        if operation is None:
            if not value.calls:
                return None
            *calls, (body, call) = value.calls
            value = _Value(body, call.operands[value.number], tuple(calls))
            continue
        result = value.number - operation.first
        match operation.name.rpartition("_v")[0]:
            case "vhlo.custom_call" | "vhlo.while":
                return _Source(value, operation, result)
            case "vhlo.call":
                body = bodies[operation.symbol]
                value = _Value(body, body.returned[result], (*value.calls, (value.body, operation)))
            case "vhlo.select":
                # A result or NaN, R or the zeros below it: one side is filled with one number.
                sides = [value._replace(number=operand) for operand in operation.operands[1:]]
                followed = [side for side in sides if not (side.maker and side.maker.name.startswith(_FILLED))]
                if len(followed) != 1:
                    return None
                value = followed[0]
            case name if name in _SAME:
                value = value._replace(number=operation.operands[0])
            case _:
                return None
    return None
