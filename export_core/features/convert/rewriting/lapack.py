"""Calls of LAPACK replaced by what jax lowers the same function to today: newer calls of LAPACK, or none at all.

For CPUs, jax lowers `jax.lax.linalg` to the newest functions of LAPACK's FFI; for TPUs, to operations that XLA's CPU
compiler expands itself. Each call is expressed by functions of jax, lowered for one of these platforms, and replaced.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.interpreters import mlir
from jax._src.lax import linalg
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, stablehlo
from parts import NotRewritableError, operations  # type: ignore[import-not-found]  # beside this file

TARGET = re.compile(r"(?:lapack|blas)_[sdcz](?P<family>[a-z]+?)(?P<ffi>_ffi)?")
_DTYPES = {
    "f32": "float32", "f64": "float64", "complex<f32>": "complex64", "complex<f64>": "complex128",
    "i32": "int32", "ui8": "uint8",
}  # fmt: skip
_LOWER, _LEFT, _UNIT = (ord(letter) for letter in "LLU")
_TRANSPOSED, _ADJOINT = ord("T"), ord("C")


class Call(NamedTuple):
    """A custom call of LAPACK: its operands, and the shapes and dtypes of its results.

    `is_ffi` is whether it is called through XLA's FFI, which has its parameters in `config`. `platform` is the platform
    that its replacement is lowered for, `cpu` or `tpu`.
    """

    is_ffi: bool
    operands: list[Any]
    results: list[Any]
    config: dict[str, int]
    platform: str

    def zeros(self, number: int) -> Any:
        """Return zeros in place of the result with this index, which nobody reads: scratch memory, or an error code."""
        return jnp.zeros(self.results[number].shape, self.results[number].dtype)

    def unread(self, first: int) -> list[Any]:
        """Return zeros in place of the results from index `first` on, which nobody reads."""
        return [self.zeros(number) for number in range(first, len(self.results))]

    def parameter(self, number: int) -> int:
        """Return a parameter in the old calling convention: the constant operand with this index."""
        owner = self.operands[number].owner
        if owner.name != "stablehlo.constant":
            raise NotRewritableError("a parameter of the call is not a constant")
        return int(np.asarray(ir.DenseElementsAttr(owner.attributes["value"])).reshape(-1)[0])

    def is_lower(self) -> bool:
        """Return whether the call uses the lower triangle of its matrix."""
        return self.config.get("uplo") == _LOWER if self.is_ffi else bool(self.parameter(0))


def replace_calls(module: Any, targets: Sequence[str], platform: str) -> Counter[str]:
    """Replace every call to one of these targets in place; return the number of replacements by their description.

    Raises `NotRewritableError` if a call cannot be replaced.
    """
    done: Counter[str] = Counter()
    symbols = ir.SymbolTable(module.operation)
    for operation in operations(module):
        if operation.name != "stablehlo.custom_call":
            continue
        target = ir.StringAttr(operation.attributes["call_target_name"]).value
        if target not in targets:
            continue
        try:
            _replace(module, symbols, operation, target, platform)
        except NotRewritableError as error:
            raise NotRewritableError(f"{target} cannot be replaced: {error}") from None
        free = ", which XLA expands itself" if platform == "tpu" else ""
        how = OWN.get(_family(target)) or f"jax {jax.__version__}'s lowering for {platform}"
        done[f"{target} replaced by {how}{free}"] += 1
    return done


def _family(target: str) -> str:
    """Return the LAPACK function that a custom-call target calls, without the letter of its element type."""
    match = TARGET.fullmatch(target)
    return match["family"] if match else ""


OWN = {"gtsv": "elimination with LAPACK's exchange of rows"}
"""The replacements that this file writes, by function of LAPACK, where jax's own lowering does not fit."""


def _replace(module: Any, symbols: Any, operation: Any, target: str, platform: str) -> None:
    match = TARGET.fullmatch(target)
    if match is None or match["family"] not in FAMILIES:
        raise NotRewritableError("no replacement of this custom call is known")
    results = [_shape(value.type) for value in operation.results]
    call = Call(bool(match["ffi"]), list(operation.operands), results, _config(operation), platform)
    number, function = FAMILIES[match["family"]]
    operands = call.operands[-number:]
    shapes = [_shape(value.type) for value in operands]
    wide = any(shape.dtype in (np.float64, np.complex128) for shape in shapes)
    with jax.enable_x64(wide):
        jitted = jax.jit(functools.partial(function, call))
        exported = jax.export.export(jitted, platforms=[platform])(*shapes)
    if [(x.shape, x.dtype) for x in exported.out_avals] != [(x.shape, x.dtype) for x in results]:
        raise NotRewritableError(f"expected a replacement by jax with results {results}, found {exported.out_avals}")
    part = stablehlo.deserialize_portable_artifact(module.context, exported.mlir_module_serialized)
    name = mlir.merge_mlir_modules(module, f"converted_{target}", part, dst_symtab=symbols)
    used = [value for number, value in enumerate(operands) if number in exported.module_kept_var_idx]
    with ir.InsertionPoint(operation), operation.location:
        made = func.CallOp([value.type for value in operation.results], ir.FlatSymbolRefAttr.get(name), used)
    for old, new in zip(operation.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()


def _shape(kind: Any) -> Any:
    tensor = ir.RankedTensorType(kind)
    if not tensor.has_static_shape:
        raise NotRewritableError("an operand or result of the call has a dynamic shape")
    dtype = _DTYPES.get(str(tensor.element_type))
    if dtype is None:
        raise NotRewritableError(
            f"expected operands and results of the element type {', '.join(_DTYPES)}, found {tensor.element_type}"
        )
    return jax.ShapeDtypeStruct(tuple(tensor.shape), np.dtype(dtype))


def _config(operation: Any) -> dict[str, int]:
    """Return the integer attributes of a call through XLA's FFI; empty for any other call."""
    for name in ("mhlo.backend_config", "backend_config"):
        if name in operation.attributes and isinstance(operation.attributes[name], ir.DictAttr):
            named = [(entry.name, str(entry.attr).partition(" ")[0]) for entry in operation.attributes[name]]
            return {key: int(value) for key, value in named if value.lstrip("-").isdigit()}
    return {}


# --- the families: all results of a call, by functions of jax; each gets the last operands of the call ----------------


def _adjoint(matrix: Any) -> Any:
    return jnp.swapaxes(matrix, -1, -2).conj()


def _cholesky(call: Call, matrix: Any) -> tuple[Any, ...]:
    lower = call.is_lower()
    factor = lax.linalg.cholesky(matrix if lower else _adjoint(matrix), symmetrize_input=False)
    failed = jnp.any(jnp.isnan(factor), axis=(-1, -2)).astype(call.results[1].dtype)
    return factor if lower else _adjoint(factor), failed


def _lu(call: Call, matrix: Any) -> tuple[Any, ...]:
    factors, pivots, _ = linalg._lu_python(matrix) if call.platform == "tpu" else lax.linalg.lu(matrix)
    return factors, pivots.astype(call.results[1].dtype) + 1, call.zeros(2)  # LAPACK counts from 1


def _householder_product(call: Call, matrix: Any, taus: Any) -> tuple[Any, ...]:
    return lax.linalg.householder_product(matrix, taus), *call.unread(1)


def _eigh(call: Call, matrix: Any) -> tuple[Any, ...]:
    vectors, values = lax.linalg.eigh(matrix, lower=call.is_lower(), symmetrize_input=False)
    return vectors, values.astype(call.results[1].dtype), *call.unread(2)


def _svd(call: Call, matrix: Any) -> tuple[Any, ...]:
    if call.is_ffi:
        mode = chr(call.config["mode"])
        vectors, full = mode != "N", mode == "A"
    else:
        vectors, full = bool(call.parameter(1)), bool(call.parameter(0))
    if vectors:
        left, values, right = lax.linalg.svd(matrix, full_matrices=full)
    else:
        values = lax.linalg.svd(matrix, compute_uv=False)
        left, right = call.zeros(2), call.zeros(3)
    return call.zeros(0), values, left, right, *call.unread(4)


def _triangular_solve(call: Call, matrix: Any, right: Any) -> tuple[Any, ...]:
    if call.is_ffi:
        config = call.config
        left, lower, unit = config["side"] == _LEFT, call.is_lower(), config["diag"] == _UNIT
        transposed = config["trans_x"]
    else:
        left, lower, unit = (bool(call.parameter(number)) for number in (0, 1, 3))
        transposed = {0: 0, 1: _TRANSPOSED, 2: _ADJOINT}[call.parameter(2)]
    solution = lax.linalg.triangular_solve(
        matrix,
        right,
        left_side=left,
        lower=lower,
        transpose_a=transposed in (_TRANSPOSED, _ADJOINT),
        conjugate_a=transposed == _ADJOINT,
        unit_diagonal=unit,
    )
    return (solution,)


def _tridiagonal_solve(call: Call, lower: Any, diagonal: Any, upper: Any, right: Any) -> tuple[Any, ...]:
    # With LAPACK's exchange of rows; jax's own lowering for tpu has none, and divides by a small pivot.
    solve = _solve_tridiagonal
    for _ in range(diagonal.ndim - 1):
        solve = jax.vmap(solve)
    solution, error = solve(lower, diagonal, upper, right)
    return *map(call.zeros, range(3)), solution, error.astype(call.results[4].dtype)


def _solve_tridiagonal(lower: Any, diagonal: Any, upper: Any, right: Any) -> tuple[Any, Any]:
    """Return the solution as LAPACK's gtsv computes it, and its error code: the first pivot that is 0, from 1 on."""

    def size(number: Any) -> Any:
        return jnp.abs(number.real) + jnp.abs(number.imag)

    def eliminate(row: Any, following: Any) -> tuple[Any, Any]:
        (pivot, above, known), (below, next_pivot, next_above, next_known) = row, following
        exchange = size(pivot) < size(below)
        factor = jnp.where(exchange, pivot / below, below / pivot)
        kept = (
            jnp.where(exchange, below, pivot),
            jnp.where(exchange, next_pivot, above),
            jnp.where(exchange, next_above, 0),
            jnp.where(exchange, next_known, known),
        )
        remaining = (
            jnp.where(exchange, above - factor * next_pivot, next_pivot - factor * above),
            jnp.where(exchange, -factor * next_above, next_above),
            jnp.where(exchange, known - factor * next_known, next_known - factor * known),
        )
        return remaining, kept

    def substitute(solved: Any, row: Any) -> tuple[Any, Any]:
        (next_value, second_value), (pivot, above, second_above, known) = solved, row
        value = (known - above * next_value - second_above * second_value) / pivot
        return (value, next_value), value

    upper = upper.at[-1].set(0)
    (pivot, _, known), rows = lax.scan(
        eliminate, (diagonal[0], upper[0], right[0]), (lower[1:], diagonal[1:], upper[1:], right[1:])
    )
    last = known / pivot
    _, values = lax.scan(substitute, (last, jnp.zeros_like(last)), rows, reverse=True)
    is_zero = jnp.append(rows[0], pivot) == 0
    error = jnp.where(jnp.any(is_zero), jnp.argmax(is_zero) + 1, 0)
    return jnp.concatenate([values, last[None]]), error


def _eig(call: Call, matrix: Any) -> tuple[Any, ...]:
    _needs_lapack(call)
    left, right = (chr(call.parameter(number)) == "V" for number in (2, 3))
    values, *vectors = lax.linalg.eig(matrix, compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    lefts = vectors.pop(0) if left else call.zeros(5)
    rights = vectors.pop(0) if right else call.zeros(6)
    return *map(call.zeros, range(3)), values.real, values.imag, lefts, rights, call.zeros(7)


def _schur(call: Call, matrix: Any) -> tuple[Any, ...]:
    _needs_lapack(call)
    triangular, vectors = lax.linalg.schur(matrix)
    return triangular, call.zeros(1), call.zeros(2), vectors, call.zeros(4), call.zeros(5)


def _needs_lapack(call: Call) -> None:
    if call.platform != "cpu" or call.is_ffi:
        raise NotRewritableError("jax has no lowering of it without LAPACK")


FAMILIES: dict[str, tuple[int, Callable[..., tuple[Any, ...]]]] = {
    "potrf": (1, _cholesky),
    "getrf": (1, _lu),
    "geqrf": (1, lambda call, matrix: (*linalg.geqrf(matrix), *call.unread(2))),
    "orgqr": (2, _householder_product),
    "ungqr": (2, _householder_product),
    "syevd": (1, _eigh),
    "heevd": (1, _eigh),
    "gesdd": (1, _svd),
    "trsm": (2, _triangular_solve),
    "gtsv": (4, _tridiagonal_solve),
    "geev": (1, _eig),
    "gees": (1, _schur),
}
"""How calls are replaced, by LAPACK's name without the letter of the element type.

Each entry has the number of operands that are arrays, and the function that computes all results of the call."""
