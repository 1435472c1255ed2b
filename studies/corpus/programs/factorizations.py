"""Factorizations of a matrix, for which a CPU calls LAPACK, and other platforms call libraries of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax.lax import linalg

FACTORIZATIONS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "eigh": lambda matrix: tuple(linalg.eigh(matrix)),
    "qr": lambda matrix: tuple(linalg.qr(matrix, full_matrices=False)),
    "lu": lambda matrix: tuple(linalg.lu(matrix)),
    "svd": lambda matrix: tuple(linalg.svd(matrix, full_matrices=False)),
    "schur": lambda matrix: tuple(linalg.schur(matrix)),
    "eig": lambda matrix: tuple(linalg.eig(matrix)),
}
"""Each by the name of its comparator."""
