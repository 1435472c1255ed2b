"""The cost of the same matrix again, when nothing has changed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from export_core.policy import load_policy
from export_core.readers.build import cache_folder
from tools.stored_results import read_results

ROOT = Path(__file__).parents[1]
BUDGET = BUDGETS["again"].limit
RUNS = 3


def measure(readers: int) -> list[Line]:
    """Measure a matrix of this project's goldens in its newest readers, first with an empty cache and then again.

    Each run is a whole process. The environments are the user's: if an environment is missing, the first run builds
    it, and the ratio looks too good. Then run the benchmark a second time.

    Args:
        readers: how many of the newest jaxlib releases read.
    """
    versions = load_policy(ROOT / "export_compat.yaml").calendar().versions()[-readers:]
    with tempfile.TemporaryDirectory() as scratch:
        environments = cache_folder() / "environments"
        environments.mkdir(parents=True, exist_ok=True)
        (Path(scratch) / "cache").mkdir()
        (Path(scratch) / "cache" / "environments").symlink_to(environments)
        first = _seconds(scratch, versions)
        again = min(_seconds(scratch, versions) for _ in range(RUNS))
        cells = len(read_results(Path(scratch) / "results"))
    return [
        Line(
            f"the same matrix again ({cells} cells, {len(versions)} readers), as a process",
            f"{again:.2f} s",
            f"{first:.0f} s the first time",
            f"{first / again:.0f} times faster",
            f"{BUDGET:.0f} times",
            first >= BUDGET * again,
        )
    ]


def _seconds(scratch: str, versions: list[str]) -> float:
    command = [sys.executable, "-m", "export_core", "matrix", "--readers", ",".join(versions), "--quiet"]
    started = time.perf_counter()
    done = subprocess.run(
        [*command, "--results", f"{scratch}/results"],
        cwd=ROOT,
        env={**os.environ, "JAXEXPORT_CACHE": f"{scratch}/cache"},
        capture_output=True,
        check=False,
    )
    if done.returncode in (2, 3):
        raise SystemExit(f"{command} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return time.perf_counter() - started
