"""The cost of `export_core.capture` in a server: of the many calls that are not captured, and of one that is."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

import export_core
from benchmarks.line import Line

CALLS = 2000  # of each kind in a round, in turn
BUDGET_US = 2.0
CAPTURED_BUDGET_MS = 5.0
SHAPE = (256, 256)


def measure(rounds: int) -> list[Line]:
    """Calls of one artifact with 256 kB of inputs: direct ones, wrapped ones, captured ones."""
    exported = jax.export.export(jax.jit(jax.numpy.sin))(jax.ShapeDtypeStruct(SHAPE, "float32"))
    artifact = bytes(exported.serialize())
    direct = jax.jit(jax.export.deserialize(bytearray(artifact)).call)
    x = np.ones(SHAPE, np.float32)
    small = jax.jit(lambda y: y)  # the cheapest function that a server can call
    with tempfile.TemporaryDirectory() as folder:
        idle = export_core.capture(artifact, folder, "idle", call=small, writer=version("jaxlib"))
        idle._next = float("inf")  # as after a capture, until the next one
        pairs = [(_microseconds(idle, x[0, 0]), _microseconds(small, x[0, 0])) for _ in range(5 * rounds)]
        plain = statistics.median(_milliseconds(lambda: direct(x)) for _ in range(20 * rounds))
        captured = statistics.median(_captured(artifact, Path(folder), direct, x + n) for n in range(20 * rounds))
    wrapped, bare = (statistics.median(side) for side in zip(*pairs, strict=True))
    extra = statistics.median(one - other for one, other in pairs)
    return [
        Line(
            "export_core.capture: a call that is not captured",
            f"{wrapped:.2f} µs",
            f"{bare:.2f} µs for the call itself",
            f"+{extra:.2f} µs",
            f"+{BUDGET_US:.0f} µs",
            extra <= BUDGET_US,
        ),
        Line(
            "export_core.capture: a call that is, until it returns",
            f"{captured:.2f} ms",
            f"{plain:.2f} ms for the call itself",
            f"+{captured - plain:.2f} ms",
            f"+{CAPTURED_BUDGET_MS:.0f} ms",
            captured - plain <= CAPTURED_BUDGET_MS,
        ),
    ]


def _microseconds(call: Callable[..., Any], x: Any) -> float:
    started = time.perf_counter()
    for _ in range(CALLS):
        call(x)
    return 1e6 * (time.perf_counter() - started) / CALLS


def _milliseconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - started)


def _captured(artifact: bytes, folder: Path, direct: Callable[..., Any], x: Any) -> float:
    """Milliseconds until a captured call returns; its golden is written afterwards."""
    with export_core.capture(
        artifact, folder, "served", call=direct, at_most=10**6, max_bytes=10**12, writer=version("jaxlib")
    ) as serve:
        return _milliseconds(lambda: serve(x))
