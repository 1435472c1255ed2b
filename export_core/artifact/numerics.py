"""What decides how the numbers of a module are compared: the results of factorizations, and its narrowest float.

A linear algebra library fixes factors only up to signs, phases and order, and chooses them by its processor. LAPACK's
routines and their counterparts on GPUs give their results in a fixed order, which jax returns as they are, or NaN where
the routine failed. So the custom calls of a module tell which results come straight from a factorization.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact.bytecode.sections import IR, Cursor
from export_core.artifact.bytecode.walk import HAS_ATTRIBUTES, HAS_OPERANDS, HAS_PROPERTIES, HAS_RESULTS, walk
from export_core.artifact.errors import ArtifactError
from export_core.artifact.unread import vhlo_tables

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from export_core.artifact.artifact import Artifact
    from export_core.artifact.bytecode.module import Module
    from export_core.artifact.bytecode.walk import Operation

LAPACK = ("lapack_", "blas_")
"""How the targets of calls of LAPACK on a CPU begin."""

TARGET = re.compile(r"(?:lapack_(?P<letter>[sdcz])|cusolver_|hipsolver_)(?P<routine>[a-z0-9]+?)(?P<ffi>_ffi)?")

REQUIRED = {"eigh": 2, "svd": 3, "qr": 2, "lu": 2, "schur": 2, "eig": 1}
"""How many factors each comparator needs, the first ones of those that it takes: (w, V), (U, s, V^H), (Q, R, P), (LU,
pivots, permutation), (T, Q), (w, V, V)."""

MOST_STEPS = 100_000
"""Operations and calls that are followed from all results to what makes them: a damaged module may call in circles."""

BODY = 2
"""How deep the operations of a function's body are: below the module and the function."""

MOST_CARRIED = 8
"""Values that a loop carries, among which pivots are looked for. The loop that jax makes has four."""

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
    from export_core.artifact.numerics import bodies as bodies_of  # of no use to `jaxexport inspect`

    try:
        bodies, main = bodies_of(artifact.module), artifact.module.main
        if main is None:
            return ()
        search, body = _Search(bodies), bodies[main.name]
        outputs = zip(body.returned, main.outputs, strict=False)
        return groups_of(search.factor(_Value(body, number)) for number, kind in outputs if "token" not in kind)
    except (ArtifactError, LookupError):  # a function or a value that the module does not have
        return ()


class _Caller(NamedTuple):
    """A call of a function, the body that it is in, and the call that has led there; None for main."""

    call: Maker
    body: Body
    caller: _Caller | None


class _Value(NamedTuple):
    """A value in the body of a function that a call has led to."""

    body: Body
    number: int
    caller: _Caller | None = None

    @property
    def maker(self) -> Maker | None:
        """The operation that makes it; None for an argument."""
        made = self.number - self.body.arguments
        return self.body.makers[made] if made >= 0 else None


class _Source(NamedTuple):
    """A value that a custom call or a loop makes, that operation, and which of its results it is."""

    value: _Value
    made: Maker
    result: int
    shifted: bool

    @property
    def key(self) -> tuple[int, ...]:
        """What tells this operation from others: the calls that lead to it."""
        path, caller = [self.made.first], self.value.caller
        while caller:
            path.append(caller.call.first)
            caller = caller.caller
        return tuple(path)


class _Search:
    """Follows values to what makes them, as far as `MOST_STEPS` go."""

    def __init__(self, bodies: Mapping[str, Body]) -> None:
        self.bodies = bodies
        self.steps = iter(range(MOST_STEPS))

    def factor(self, value: _Value) -> Factor | None:
        """The factor that a value is, or None."""
        source = self.source(value)
        if source is None:
            return None
        # How jax makes a permutation of pivots: in a loop on a CPU, in a kernel on a GPU.
        if source.made.name.startswith("vhlo.while") or source.made.symbol.endswith("_lu_pivots_to_permutation"):
            operands = source.made.operands[:MOST_CARRIED]
            taken = (self.source(source.value._replace(number=operand)) for operand in operands)
            pivots = (one.key for one in taken if one and one.result == 1 and "getrf" in one.made.symbol)
            return next((Factor(key, "lu", 2) for key in pivots), None)
        target = TARGET.fullmatch(source.made.symbol)
        if target is None:
            return None
        routine, is_ffi, is_real = target["routine"], bool(target["ffi"]), target["letter"] in ("s", "d")
        if source.shifted and (routine, source.result) not in (("getrf", 1), ("geqp3", 1)):
            return None  # another matrix: only from pivots does jax itself subtract something
        if routine in ("orgqr", "ungqr"):  # Q is made of reflectors, whose lengths it takes last
            made_of = self.source(source.value._replace(number=source.made.operands[-1]))
            return made_of and Factor(made_of.key, "qr", 0)
        compare, roles = ("eig", _EIG[is_ffi, is_real]) if routine == "geev" else _ROUTINES.get(routine, ("", {}))
        if routine == "gees" and not is_ffi:
            roles = _OLD_SCHUR
        return Factor(source.key, compare, roles[source.result]) if source.result in roles else None

    def source(self, value: _Value) -> _Source | None:
        """The custom call or the loop that makes a value, through calls of functions and what jax does to results."""
        shifted = False
        for _ in self.steps:
            made, caller = value.maker, value.caller
            if made is None:
                if caller is None:
                    return None
                value = _Value(caller.body, caller.call.operands[value.number], caller.caller)
                continue
            result = value.number - made.first
            match made.name.rpartition("_v")[0]:
                case "vhlo.custom_call" | "vhlo.while":
                    return _Source(value, made, result, shifted)
                case "vhlo.call":
                    body = self.bodies[made.symbol]
                    value = _Value(body, body.returned[result], _Caller(made, value.body, caller))
                case "vhlo.select":
                    # A result or NaN, R or the zeros below it: one side is filled with one number.
                    sides = [value._replace(number=operand) for operand in made.operands[1:]]
                    followed = [side for side in sides if not (side.maker and side.maker.name.startswith(_FILLED))]
                    if len(followed) != 1:
                        return None
                    value = followed[0]
                case name if name in _SAME:
                    shifted = shifted or name == "vhlo.subtract"
                    value = value._replace(number=made.operands[0])
                case _:
                    return None
        return None


class Maker(NamedTuple):
    """An operation in the body of a function; what is inside its regions is left out."""

    name: str
    """Its name, such as vhlo.call_v1."""
    symbol: str
    """The target of a custom call, the function that a call calls; empty for others."""
    operands: tuple[int, ...]
    """The numbers of the values that it takes."""
    first: int
    """The number of its first result."""


class Body:
    """The operations of a function. Its values are numbered: arguments first, then the results of each operation."""

    def __init__(self, arguments: int):
        self.arguments = arguments
        self.returned: tuple[int, ...] = ()
        self.makers: list[Maker] = []
        """For each value that is no argument, the operation that makes it."""


def bodies(module: Module) -> dict[str, Body]:
    """The body of each function by its name. Raises `ArtifactError` for an operation that cannot be read."""
    contents = module._contents  # no part of the public class
    tables = contents.tables
    section = tables.sections[IR]
    functions = iter(contents.functions)
    made: dict[str, Body] = {}
    current = [Body(0)]

    def visit(op: Operation) -> None:
        kind = tables.op_names[op.name]
        if kind == "vhlo.func_v1":
            function = next(functions)
            current[0] = made[function.name] = Body(len(function.inputs))
        elif op.depth == BODY:
            body = current[0]
            operands, results = _values(Cursor(section.data, op.at, section.end, section.name))
            if kind == "vhlo.return_v1":
                body.returned = operands
            symbol = contents.symbol(op)
            body.makers += [Maker(kind, symbol, operands, body.arguments + len(body.makers))] * results

    tables.left = 2 * tables.most  # a walk of its own, which looks into every operation
    walk(tables, dict.fromkeys(range(len(tables.op_names)), visit), {})
    return made


def _values(cursor: Cursor) -> tuple[tuple[int, ...], int]:
    """The operands of an operation, and the number of its results. The walk has checked that they are in the file."""
    cursor.varint("a name")
    mask = cursor.byte("what an operation has")
    for part in (-1, HAS_ATTRIBUTES, HAS_PROPERTIES):  # -1: each has a location
        if mask & part:
            cursor.varint("a part of an operation")
    results = cursor.count("results") if mask & HAS_RESULTS else 0
    for _ in range(results):
        cursor.varint("a type")
    count = cursor.count("operands") if mask & HAS_OPERANDS else 0
    return tuple(cursor.varint("an operand") for _ in range(count)), results


# By significant bits, fewest first; JAX's name of each, and VHLO's without its version.
_NARROWEST_FIRST = {
    "f8E8M0FNU": "float8_e8m0fnu",
    "f4E2M1FN": "float4_e2m1fn",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3": "float8_e4m3",
    "f8E3M4": "float8_e3m4",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
}


def narrowest_float(artifact: Artifact) -> str:
    """The dtype of the fewest significant bits that a module of the artifact computes with; empty without floats.

    Raises:
        ArtifactError: a module cannot be read.
    """
    known = vhlo_tables()["types"]
    names = {
        known[str(code)][0].removesuffix("_v1")
        for module in artifact.modules
        for dialect, code in module.tables.codes(module.tables.types)
        if dialect == "vhlo" and str(code) in known
    }
    return next((dtype for name, dtype in _NARROWEST_FIRST.items() if name in names), "")
