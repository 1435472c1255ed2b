"""The results of a module that are factors of a matrix, and are compared as factors.

A factorization fixes its factors only up to signs, phases and order, which a linear algebra library chooses by the
processor. LAPACK's routines and their counterparts on GPUs give their results in a fixed order. jax returns them as
they are, or NaN if the routine failed. So the custom calls of a module tell which results are factors.
"""

import re
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from export_core.artifact.artifact import Artifact
from export_core.artifact.errors import ArtifactError
from export_core.artifact.tracing import Trace, Value

TARGET = re.compile(r"(?:lapack_(?P<letter>[sdcz])|cusolver_|hipsolver_)(?P<routine>[a-z0-9]+?)(?P<ffi>_ffi)?")

REQUIRED = {"eigh": 2, "svd": 3, "qr": 2, "lu": 2, "schur": 2, "eig": 1}
"""The number of factors that each comparator needs at least, of those that it takes in order.

They are (w, V), (U, s, V^H), (Q, R, P), (LU, pivots, permutation), (T, Q), and w with left and right V.
"""

MOST_CARRIED = 8  # values that a loop carries, among which pivots are looked for. The loop that jax makes has four.
_Roles = dict[int, int]

_ROUTINES: dict[str, tuple[str, _Roles]] = {
    **dict.fromkeys(("syevd", "heevd"), ("eigh", {0: 1, 1: 0})),
    **dict.fromkeys(("gesdd", "gesvd"), ("svd", {1: 1, 2: 0, 3: 2})),
    "geqrf": ("qr", {0: 1}),
    "geqp3": ("qr", {0: 1, 1: 2}),
    "getrf": ("lu", {0: 0, 1: 1}),
    "gees": ("schur", {0: 0, 1: 1}),
}
"""The comparator for each LAPACK routine, and the number of the factor that each result of its call is."""

_OLD_SCHUR: _Roles = {0: 0, 3: 1}
_EIG: dict[tuple[bool, bool], _Roles] = {  # by whether it is a call of the FFI, and of real matrices
    (True, True): {0: 0, 2: 1, 3: 2},
    (True, False): {0: 0, 1: 1, 2: 2},
    (False, True): {3: 0, 5: 1, 6: 2},
    (False, False): {2: 0, 3: 1, 4: 2},
}


class Factor(NamedTuple):
    """A result of a function that is a factor of a matrix factorization, such as Q of a QR factorization."""

    of: Hashable  # A key of the factorization: the same for all its factors.
    compare: str  # The comparator for the factorization.
    role: int  # The number of this factor among those that the comparator takes.


def has_factorization(targets: Iterable[str]) -> bool:
    """Return whether the name of one of these custom-call targets may be that of a factorization."""
    return any(map(TARGET.fullmatch, targets))


def groups_of(factors: Iterable[Factor | None]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return, for each factorization, its comparator and the indexes of its outputs in the comparator's order.

    `factors` has an entry for each output: the factor that it is, or None. A factorization that lacks a required factor
    is left out.
    """
    groups: dict[tuple[Hashable, str], dict[int, int]] = {}
    for output, factor in enumerate(factors):
        if factor is not None:
            groups.setdefault((factor.of, factor.compare), {}).setdefault(factor.role, output)
    whole = ((compare, of) for (_, compare), of in groups.items() if of.keys() >= set(range(REQUIRED[compare])))
    return tuple((compare, tuple(of[role] for role in sorted(of))) for compare, of in whole)


def factored_outputs(artifact: Artifact) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the factorizations that an artifact's function returns, each as (comparator, indexes of its outputs).

    The result is empty if the module cannot be read.
    """
    try:
        trace = _Factors(artifact.module)
        return groups_of(map(trace.factor, trace.outputs))
    except (ArtifactError, LookupError):  # a function or a value that the module does not have
        return ()


class _Factors(Trace):
    """The search in one module for the values that are factors of a matrix, such as Q and R of a QR factorization."""

    def factor(self, value: Value) -> Factor | None:
        """Return which factor a value is, or None if the value does not come straight from a factorization."""
        if (source := self._source(value)) is None:
            return None
        value, is_shifted = source
        # How jax makes a permutation of pivots: in a loop on a CPU, in a kernel on a GPU.
        if value.made_by.name == "while" or value.target.endswith("_lu_pivots_to_permutation"):
            operands = value.made_by.values[:MOST_CARRIED]
            sources = [source for operand in operands if (source := self._source(value._replace(number=operand)))]
            pivots = (made.key for made, _ in sources if made.result == 1 and "getrf" in made.target)
            return next((Factor(key, "lu", 2) for key in pivots), None)
        if (target := TARGET.fullmatch(value.target)) is None:
            return None
        routine, is_ffi, is_real = target["routine"], bool(target["ffi"]), target["letter"] in ("s", "d")
        if is_shifted and (routine, value.result) not in (("getrf", 1), ("geqp3", 1)):
            return None  # another matrix: only from pivots does jax itself subtract something
        if routine in ("orgqr", "ungqr"):  # Q is made of reflectors, whose lengths it takes last
            made_of = self._source(value._replace(number=value.made_by.values[-1]))
            return made_of and Factor(made_of[0].key, "qr", 0)
        compare, roles = ("eig", _EIG[is_ffi, is_real]) if routine == "geev" else _ROUTINES.get(routine, ("", {}))
        if routine == "gees" and not is_ffi:
            roles = _OLD_SCHUR
        return Factor(value.key, compare, roles[value.result]) if value.result in roles else None

    def _source(self, value: Value) -> tuple[Value, bool] | None:
        """Return the result of a custom call or loop from which a value is made, and whether something was subtracted.

        Only operations such as jax itself adds, for example a slice, may come in between. None if the value is made
        otherwise.
        """
        is_shifted = False
        while made := self.past_calls(value):
            match made.made_by.name:
                case "custom_call" | "while":
                    return made, is_shifted
                case "select":
                    # A result or NaN, R or the zeros below it: one side is filled with one number.
                    sides = [made._replace(number=operand) for operand in made.made_by.values[1:]]
                    fills = ("broadcast_in_dim", "constant")
                    followed = [side for side in sides if side.is_argument or side.made_by.name not in fills]
                    if len(followed) != 1:
                        return None
                    value = followed[0]
                # Pivots are counted from 0, the eigenvalues of LAPACK have real and imaginary parts, R is a slice.
                case "subtract" | "complex" | "slice" as name:
                    is_shifted = is_shifted or name == "subtract"
                    value = made._replace(number=made.made_by.values[0])
                case _:
                    return None
        return None
