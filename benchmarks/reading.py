"""The cost of reading an artifact by this program, against reading it by jax and jaxlib."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import jax
import jax.export
import jaxlib
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

import export_core
from benchmarks import known
from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from export_core.artifact import Artifact, read_bytes

ARTIFACT = Path(__file__).parents[1] / "tests" / "artifact" / "data" / "0.12.0.1" / "mlp.jaxexport"
PROCESS_BUDGET = BUDGETS["inspect"].limit
CHECK_BUDGET = BUDGETS["check"].limit
NO_COPY = 1_000_000  # bytes of memory that reading 50 MB may take
SIDE = 3536  # a float32 matrix of this side is 50.0 MB
ENTRIES = 50
POLICY = "known_failures:\n" + "".join(
    f"""\
  - cases: ["*.test_{number}"]
    writers: ["*"]
    readers: ["0.9.*"]
    verdict: error
    stage: compile
    message: no such target
    reason: it is known
    owner: us
    issue: https://example.com/{number}
    added: 2026-11-01
    expires: 2026-12-01
"""
    for number in range(ENTRIES)
)
_JAX = "import sys, jax.export; jax.export.deserialize(bytearray(open(sys.argv[1], 'rb').read())).mlir_module()"


def measure(runs: int) -> list[Line]:
    """Measure `jaxexport inspect` against jax, as processes; then reading in this process, against jaxlib."""
    small, large = ARTIFACT.read_bytes(), _with_a_large_constant()
    return [
        *_processes(runs),
        *_in_process(small, BUDGETS["reading"].limit, 20 * runs),
        _checked(small, 20 * runs),
        *known.measure(ARTIFACT, jaxlib.__version__, 10 * runs),
        *_in_process(large, BUDGETS["large"].limit, runs),
        _copied(large),
    ]


def _processes(runs: int) -> list[Line]:
    plain, with_policy, load = [], [], []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as project:
        Path(project, "export_compat.yaml").write_text(POLICY)
        for number in range(runs + 1):
            seconds = [
                _process(folder, "-m", "export_core", "inspect", str(ARTIFACT)),
                _process(project, "-m", "export_core", "inspect", str(ARTIFACT)),
                _process(folder, "-c", _JAX, str(ARTIFACT)),
            ]
            if number:  # the first ones warm the file cache, and store what they read of the policy
                for times, one in zip((plain, with_policy, load), seconds, strict=True):
                    times.append(one)
    return [
        _ratio("jaxexport inspect as a process", min(plain), min(load)),
        _ratio(f"jaxexport inspect, with a policy of {ENTRIES} entries", min(with_policy), min(load)),
    ]


def _ratio(what: str, inspect: float, load: float) -> Line:
    """Return the line that compares the fastest run of `inspect` with the fastest load by jax, both in seconds."""
    ratio = load / inspect
    return Line(
        what,
        f"{1000 * inspect:.0f} ms",
        f"{1000 * load:.0f} ms for jax.export.deserialize and mlir_module()",
        f"{ratio:.1f} times faster",
        f"{PROCESS_BUDGET:.0f} times",
        ratio >= PROCESS_BUDGET,
    )


def _process(folder: str, *arguments: str) -> float:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, check=False, cwd=folder)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{arguments} failed:\n{done.stderr.decode()}")
    return seconds


def _in_process(data: bytes, budget: float, runs: int) -> list[Line]:
    """Measure two ways of reading an artifact against jaxlib's deserialize, which reads every operation.

    The first reads the header and the tables only, as `read` does at first. The second reads every operation.
    """
    first, whole, theirs = [], [], []
    modules = [module.serialized() for module in read_bytes(data).modules]
    for _ in range(runs):
        first.append(_milliseconds(lambda: _read_tables(read_bytes(data))))
        whole.append(_milliseconds(lambda: _read_all(read_bytes(data))))
        theirs.append(_milliseconds(lambda: _jaxlib_reads(modules)))
    what = f"reading {len(data) / 1e3:.1f} kB" if len(data) < 1e6 else f"reading {len(data) / 1e6:.0f} MB"
    at_once, all_of_it, jaxlib = min(first), min(whole), min(theirs)
    against = f"{jaxlib:.2f} ms for jaxlib's deserialize"
    return [
        Line(
            what,
            f"{at_once:.2f} ms",
            against,
            f"{at_once / jaxlib:.3f} times",
            f"{budget} times",
            at_once <= budget * jaxlib,
        ),
        Line(
            f"{what}, every operation",
            f"{all_of_it:.2f} ms",
            against,
            f"{jaxlib / all_of_it:.1f} times faster",
            "faster",
            all_of_it < jaxlib,
        ),
    ]


def _checked(data: bytes, runs: int) -> Line:
    """Measure `export_core.check`, which a server calls before it loads an artifact, against reading all operations."""
    check, read = [], []
    for _ in range(runs):
        check.append(_milliseconds(lambda: export_core.check(data)))
        read.append(_milliseconds(lambda: _read_all(read_bytes(data))))
    ratio = min(check) / min(read)
    return Line(
        f"export_core.check of {len(data) / 1e3:.1f} kB",
        f"{min(check):.2f} ms",
        f"{min(read):.2f} ms for reading every operation",
        f"{ratio:.2f} times",
        f"{CHECK_BUDGET} times",
        ratio <= CHECK_BUDGET,
    )


def _copied(data: bytes) -> Line:
    tracemalloc.start()
    try:
        _read_all(read_bytes(data))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return Line(
        f"memory to read {len(data) / 1e6:.0f} MB",
        f"{peak / 1e6:.2f} MB",
        f"{len(data) / 1e6:.0f} MB of artifact",
        f"{peak / 1e6:.2f} MB",
        f"{NO_COPY / 1e6:.0f} MB: no copy",
        peak <= NO_COPY,
    )


def _read_tables(artifact: Artifact) -> None:
    """Read the header and the tables of every StableHLO module in an artifact."""
    for module in artifact.modules:
        assert module.op_names


def _read_all(artifact: Artifact) -> None:
    """Read the operations of every StableHLO module in an artifact."""
    assert artifact.custom_calls is not None
    for module in artifact.modules:
        assert module.op_counts


def _jaxlib_reads(modules: list[bytes]) -> None:
    with ir.Context() as context:
        for register in (stablehlo, chlo, sdy):
            register.register_dialect(context)
        for module in modules:
            stablehlo.deserialize_portable_artifact(context, module)


def _milliseconds(do: Callable[[], object]) -> float:
    gc.disable()  # as timeit does: collecting the objects of jax is no part of reading
    try:
        started = time.perf_counter()
        do()
        return 1000 * (time.perf_counter() - started)
    finally:
        gc.enable()


def _with_a_large_constant() -> bytes:
    constant = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    function = jax.jit(lambda x: x @ constant)
    data = bytes(jax.export.export(function)(jax.ShapeDtypeStruct((2, SIDE), np.float32)).serialize())
    assert len(data) > 4 * SIDE * SIDE
    return data
