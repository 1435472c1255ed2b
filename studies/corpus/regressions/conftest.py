"""Programs of closed issues. Their files are collected where this folder is named, and never with the other tests.

`jaxexport goldens backfill --writers V -- --goldens DIR studies/corpus/regressions` writes their goldens. A writer that
gives a wrong answer itself, or cannot compile a program, writes no golden of it: what a golden expects is always right.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np
import pytest

COMPILER = ("XlaRuntimeError", "JaxRuntimeError", "INTERNAL:", "INVALID_ARGUMENT:", "UNIMPLEMENTED:")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Collect every module of this folder where the folder is an argument of pytest."""
    named = parent.session.isinitpath(file_path.parent) and not parent.session.isinitpath(file_path)
    if file_path.suffix != ".py" or file_path.name in ("__init__.py", "conftest.py", "dying.py") or not named:
        return None
    module: pytest.Module = pytest.Module.from_parent(parent, path=file_path)
    return module


@pytest.fixture
def right_golden(export_golden: Callable[..., Any]) -> Callable[..., None]:
    """A function that exports a function with arguments, and skips the test if this release gives a wrong answer.

    The right answer is a tree of NumPy's arrays. Floats are compared with a relative tolerance of 1e-4, others exactly.
    """

    def export(function: Callable[..., Any], *args: Any, right: Any) -> None:
        try:
            exported = export_golden(jax.jit(function), *args)
        except pytest.fail.Exception as error:
            if any(word in str(error) for word in COMPILER):
                pytest.skip(f"jaxlib {jaxlib.__version__} cannot run it: no golden")
            raise
        for output, answer in zip(
            exported.produced.outputs, map(np.asarray, jax.tree_util.tree_leaves(right)), strict=True
        ):
            tolerance = 1e-4 if answer.dtype.kind in "fc" else 0
            found = output.numpy().astype(answer.dtype)
            if not np.allclose(found, answer, rtol=tolerance, atol=0, equal_nan=bool(tolerance)):
                pytest.skip(f"jaxlib {jaxlib.__version__} gives a wrong answer itself: no golden")

    return export
