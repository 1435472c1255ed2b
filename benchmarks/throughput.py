"""The number of cells that a matrix runs per second on one core and on two, with one cell at a time on each core."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.line import Line
from export_core.policy import load_policy
from export_core.run.results import read_summary

ROOT = Path(__file__).parents[1]


def measure() -> list[Line]:
    """Measure a matrix of all goldens in the newest jaxlib, as a whole process without the cache of outcomes."""
    newest = load_policy(ROOT / "export_compat.yaml").calendar().newest()
    with tempfile.TemporaryDirectory() as scratch:
        _seconds(newest, 2, Path(scratch), "--cases", "*.test_sort")
        one, cells = _seconds(newest, 1, Path(scratch))
        two, _ = _seconds(newest, 2, Path(scratch))
    return [
        Line(
            f"cells per second, {cells} cells of jaxlib {newest} as a process",
            f"{cells / two:.1f} on two cores ({two:.1f} s)",
            f"{cells / one:.1f} on one ({one:.1f} s)",
            f"{one / two:.2f} times",
            "",
            True,
        )
    ]


def _seconds(reader: str, cores: int, scratch: Path, *more: str) -> tuple[float, int]:
    """Run a matrix in jaxlib `reader` on `cores` of this machine's cores; return wall seconds and number of cells."""
    command = [sys.executable, "-m", "export_core", "matrix", "--readers", reader, "--jobs", str(cores), "--no-cache"]
    command += ["--quiet", "--results", str(scratch / "results"), *more]
    here = os.sched_getaffinity(0)
    started = time.perf_counter()
    try:
        os.sched_setaffinity(0, sorted(here)[:cores])  # inherited by the process that is started next
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    finally:
        os.sched_setaffinity(0, here)
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return seconds, read_summary(scratch / "results").results
