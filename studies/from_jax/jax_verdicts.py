"""JAX's own test of each of its CPU goldens, all in the same process: `python jax_verdicts.py PART [NAME…]`.

It runs in a reader's environment with absl-py, and imports nothing of this project. It tests the goldens whose names
contain PART, except those named NAME. For each golden it prints a line of JSON with its name, and, after the test, a
line with its verdict: pass, numerics, or an error with its message.

The goldens and the runner are in the wheel of jax, but the tests are not. So this file repeats their checks, with their
operands and tolerances. Source: tests/export_back_compat_test.py of JAX.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax._src.internal_test_util import export_back_compat_test_data as data
from jax._src.internal_test_util import export_back_compat_test_util as util

Arrays = Sequence[np.ndarray]

RTOL = {"f32": 1e-3, "c64": 1e-3, "f64": 1e-5, "c128": 1e-5}
ATOL = {"f32": 1e-4, "c64": 1e-4, "f64": 1e-12, "c128": 1e-12}
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
DEFAULT_RTOL = 1e-7
SYMBOLIC = {
    "stablehlo_dynamic_approx_top_k": ("b + 4,",),
    "stablehlo_dynamic_rng_bit_generator": (None, "b0, b1"),
    "stablehlo_dynamic_top_k": ("_, b",),
}
"""The symbolic shapes that JAX's tests of these goldens use. The data files have only the shapes of a call."""


class Runner(util.CompatTestBase):  # type: ignore[misc]  # mypy does not follow jax
    """JAX's runner with a golden, and the checks of JAX's tests. `kind` is the dtype of the golden, such as f32."""

    golden: util.CompatTestData
    kind: str

    def runTest(self) -> None:  # noqa: N802
        """Do nothing, since `verdict` calls the methods of the runner itself."""

    def near(self, actual: Any, expected: Any) -> None:
        self.assertAllClose(np.asarray(actual), np.asarray(expected), rtol=RTOL[self.kind], atol=ATOL[self.kind])

    def operand(self, size: int) -> np.ndarray:
        """Return the square matrix to which JAX's tests apply their function; the golden does not have it."""
        return np.arange(size * size, dtype=DTYPES[self.kind]).reshape(size, size)

    def eig(self, run: Arrays, expected: Arrays) -> None:
        operand, (values, left, right) = self.operand(4), run
        for mine, others in ((values, expected[0]), (expected[0], values)):
            for value in mine:
                self.near(np.abs(others - value).min(), 0 * np.abs(value))
        eps = np.finfo(operand.dtype).eps
        for matrix, eigenvalues, vectors in ((operand.conj().T, values.conj(), left), (operand, values, right)):
            residual = np.linalg.norm(matrix @ vectors - vectors * eigenvalues)
            assert residual / (5 * eps) < 100

    def eigh(self, run: Arrays, expected: Arrays) -> None:
        vectors, values = run
        operand = self.operand(8)
        operand = (operand + operand.conj().T) / 2
        rtol = RTOL[self.kind]
        assert np.linalg.norm(np.eye(8) - vectors.conj().T @ vectors) <= rtol
        residual = operand @ vectors - vectors * values.astype(vectors.dtype)
        assert np.linalg.norm(residual) <= rtol * np.linalg.norm(operand)
        self.near(values, expected[1])

    def lu(self, run: Arrays, _expected: Arrays) -> None:
        factors, pivots, _ = run
        rows = self.operand(3)
        for row, pivot in enumerate(pivots):
            rows[[row, pivot]] = rows[[pivot, row]]
        lower = np.tril(factors, -1) + np.eye(3, dtype=factors.dtype)
        self.near(lower @ np.triu(factors), rows)

    def schur(self, run: Arrays, _expected: Arrays) -> None:
        triangle, vectors = run
        self.near(vectors @ triangle @ vectors.conj().T, self.golden.inputs[0])

    def svd(self, run: Arrays, _expected: Arrays) -> None:
        (operand,) = self.golden.inputs
        left, values, right = run
        tolerance = 80 * np.finfo(operand.dtype).eps
        rebuilt = (left * values.astype(left.dtype)[..., None, :]) @ right
        for matrix, again in zip(operand, rebuilt, strict=True):
            assert np.linalg.norm(matrix - again) / np.linalg.norm(matrix) < 2 * tolerance
        for vectors in (left, right):
            gram = np.real(vectors.conj().swapaxes(-1, -2) @ vectors)
            identity = np.broadcast_to(np.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)
            self.assertAllClose(gram, identity, rtol=tolerance, atol=tolerance)

    def triangular(self, run: Arrays, _expected: Arrays) -> None:
        matrix, right = self.golden.inputs
        self.near(np.tril(matrix) @ run[0], right)

    def top_k(self, run: Arrays, expected: Arrays) -> None:
        values, indices = run
        self.assertAllClose(values, np.take_along_axis(self.golden.inputs[0], indices, -1))
        self.assertAllClose(np.sort(values), np.sort(expected[0]))

    def plain(self, run: Arrays, expected: Arrays, **tolerances: float | None) -> None:
        self.assertAllClose(tuple(run), tuple(expected), **{"rtol": DEFAULT_RTOL, **tolerances})

    def check_of(self, name: str) -> Callable[[Arrays, Arrays], None]:
        """Return the check of outputs and expected outputs that JAX's test makes of the golden with this name."""
        operation = name.split(".")[0].split("_")[1]
        if "top_k" in name:
            return self.top_k
        if operation == "qr":  # without an absolute tolerance
            return lambda run, expected: self.plain(run, expected, rtol=RTOL[self.kind])
        if operation in ("cholesky", "hessenberg", "tridiagonal"):
            return lambda run, expected: self.plain(run, expected, rtol=RTOL[self.kind], atol=ATOL[self.kind])
        return getattr(self, operation, self.plain)


def named(value: Any, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the goldens in the value of a variable, each with its name, to which the keys of dicts are added."""
    if isinstance(value, dict) and "testdata_version" in value:
        yield name, value
    elif isinstance(value, dict):
        for key, inside in value.items():
            yield from named(inside, f"{name}.{key}")


def main() -> None:
    """Test the chosen goldens in order, and print their verdicts."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_legacy_prng_key", "allow")
    for info in sorted(pkgutil.walk_packages(data.__path__), key=lambda info: info.name):
        for variable, value in vars(importlib.import_module(f"{data.__name__}.{info.name}")).items():
            for name, golden in named(value, f"{info.name}.{variable}"):
                runner = Runner()
                runner.golden, runner.kind = runner.load_testdata(golden), name.rpartition(".")[2]
                if runner.golden.platform != "cpu" or sys.argv[1] not in name or name in sys.argv[2:]:
                    continue
                print(json.dumps({"name": name}), flush=True)
                print(json.dumps({"name": name, **verdict(runner, name)}), flush=True)


def verdict(runner: Runner, name: str) -> dict[str, str]:
    """Run a golden by JAX's runner, and return its verdict and message.

    JAX's own test also lowers the golden's function again. This is left out, since the function is in the test.
    """
    try:
        shapes = SYMBOLIC.get(name.split(".")[0])
        results = tuple(np.array(result) for result in runner.run_serialized(runner.golden, polymorphic_shapes=shapes))
    except Exception as error:  # whatever jax raises is the verdict
        return {"verdict": "error", "message": f"{type(error).__name__}: {error}"}
    try:
        runner.check_of(name)(results, runner.golden.expected_outputs)
    except AssertionError as error:
        return {"verdict": "numerics", "message": str(error)}
    return {"verdict": "pass", "message": ""}


if __name__ == "__main__":
    main()
