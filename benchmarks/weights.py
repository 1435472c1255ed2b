"""The size of a golden whose function closes over 400 MB of weights, and the memory to write and to check it.

The memory of pytest and of all processes that it starts is compared with the memory of a process that only calls
`jax.export.export` and `serialize`, as any tool must. Both begin with the same weights.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.large import watched
from benchmarks.line import Line
from export_core.goldens import GoldenStore
from export_core.goldens.store import ARTIFACT

MEGABYTES = 400
SIZE_BUDGET = 1.1
"""The most bytes that all files of the golden may take, as a multiple of its artifact and arrays."""
MEMORY_BUDGET = 3.0
"""The most memory beyond that of a plain export, as a multiple of the artifact's size."""
LOOK_SECONDS = 0.1

WEIGHTS = """
import os

import jax
import numpy as np

COLUMNS = 10_000
ROWS = int(os.environ["MEGABYTES"]) * 1_000_000 // (4 * COLUMNS)
W = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
X = np.ones(ROWS, np.float32)
model = jax.jit(lambda x: (x @ W).sum() * float(os.environ.get("FACTOR", "1")))
"""

TEST = """
import pytest
from weights import X, model


@pytest.mark.export_compat
def test_model(export_golden):
    export_golden(model, X)
"""

ALONE = "from jax import export; from weights import X, model; export.export(model)(X).serialize()"


def measure(megabytes: int = MEGABYTES) -> list[Line]:
    """Measure the golden's size, and the memory of pytest when it writes, replays and compares the golden."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        (project / "weights.py").write_text(WEIGHTS)
        (project / "test_model.py").write_text(TEST)
        (project / "pytest.ini").write_text("[pytest]\n")
        return list(_lines(project, megabytes))


def _lines(project: Path, megabytes: int) -> Iterator[Line]:
    alone = _peak(project, megabytes, "-c", ALONE)
    peaks = {
        "writing": _peak(project, megabytes, "-m", "pytest", "--update-goldens"),
        "replaying": _peak(project, megabytes, "-m", "pytest", "--no-export-cache"),
        "comparing it with a changed function": _peak(project, megabytes, "-m", "pytest", factor="2"),
    }
    (golden,) = GoldenStore(project / "golden").goldens()
    sizes = {path.name: path.stat().st_size for path in golden.folder.iterdir()}
    arrays = sum(size for name, size in sizes.items() if name == ARTIFACT or name.endswith(".npz"))
    ratio = sum(sizes.values()) / arrays
    what = f"a golden with {megabytes} MB of constants"
    yield Line(
        f"{what}: its files",
        f"{sum(sizes.values()) / 1e6:.1f} MB",
        f"{arrays / 1e6:.1f} MB of artifact and arrays",
        f"{ratio:.3f} times",
        f"{SIZE_BUDGET} times",
        ratio <= SIZE_BUDGET,
    )
    for step, peak in peaks.items():
        above = (peak - alone) / sizes[ARTIFACT]
        yield Line(
            f"{what}: memory of {step}, all processes",
            f"{peak / 1e9:.2f} GB",
            f"{alone / 1e9:.2f} GB for export and serialize",
            f"{above:.1f} artifacts above",
            f"{MEMORY_BUDGET:.0f} artifacts",
            above <= MEMORY_BUDGET,
        )


def _peak(project: Path, megabytes: int, *words: str, factor: str = "1") -> int:
    """Run Python; return the most memory, in bytes, that its process and all processes below it take together.

    Args:
        project: the folder to run in, with weights.py.
        megabytes: the size of the weights.
        words: the arguments of the interpreter.
        factor: the number by which the function multiplies its result. A different number makes a different function.
    """
    variables = {**os.environ, "MEGABYTES": str(megabytes), "FACTOR": factor, "JAX_PLATFORMS": "cpu"}
    peak, _ = watched([sys.executable, *words], cwd=project, env=variables, look=LOOK_SECONDS)
    return peak[1]
