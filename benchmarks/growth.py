"""The cost of the coordinator as the number of planned cells grows, with stubs instead of readers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from export_core.goldens import GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS, sha256
from export_core.policy import load_policy
from export_core.run.results import read_summary

ROOT = Path(__file__).parents[1]
READERS = 40
SIZES = (1_000, 10_000, 100_000)
"""The numbers of planned cells."""
MEMORY_BUDGET = BUDGETS["coordinator"].limit
"""The most memory, in MB, that the coordinator may take for the largest of `SIZES`."""
SHARDED = 1_000_000
"""The planned cells of a matrix that is split into `READERS` shards, of which one is run."""
SHARD_MEMORY_BUDGET = 1000.0
"""The most memory, in MB, that the run of this shard may take. It plans the whole matrix."""
LINEAR = 1.2
"""The growth of time counts as linear if a cell takes at most this many times as long as in a plan a tenth as large."""


@dataclass(frozen=True)
class Run:
    """The cost of one run of the coordinator: its cells, wall and processor seconds, and peak memory in MB."""

    cells: int
    wall: float
    processor: float
    memory: float


def measure() -> list[Line]:
    """Measure the coordinator with plans of growing size, each in a new process and without the cache of outcomes."""
    with tempfile.TemporaryDirectory() as scratch:
        runs = [_run(Path(scratch) / str(cells), cells) for cells in SIZES]
        shard = _run(Path(scratch) / "sharded", SHARDED, READERS)
    lines = []
    for before, run in zip((None, *runs), runs, strict=False):
        milliseconds = 1000 * run.processor / run.cells
        ratio = milliseconds / (1000 * before.processor / before.cells) if before else 1.0
        last = run is runs[-1]
        lines.append(
            Line(
                f"the coordinator, {run.cells:,} planned cells with stub workers: time",
                f"{run.processor:.1f} s of processor time, {run.wall:.1f} s of wall time",
                f"{milliseconds:.2f} ms a cell",
                f"{ratio:.2f} times a cell of {before.cells:,}" if before else "",
                f"linear: {LINEAR} times" if last else "",
                not last or ratio <= LINEAR,
            )
        )
    largest = runs[-1]
    lines.append(
        Line(
            f"the coordinator, {largest.cells:,} planned cells with stub workers: memory",
            f"{largest.memory:.0f} MB",
            f"{runs[-2].memory:.0f} MB with {runs[-2].cells:,}, {runs[0].memory:.0f} MB with {runs[0].cells:,}",
            f"{largest.memory:.0f} MB",
            f"{MEMORY_BUDGET:.0f} MB",
            largest.memory <= MEMORY_BUDGET,
        )
    )
    each = 1000 * shard.processor / shard.cells
    lines.append(
        Line(
            f"the coordinator, shard 1/{READERS} of {SHARDED:,} planned cells with stub workers",
            f"{shard.memory:.0f} MB, {shard.processor:.1f} s of processor time",
            f"{shard.cells:,} cells, {each:.2f} ms a cell",
            f"{shard.memory:.0f} MB",
            f"{SHARD_MEMORY_BUDGET:.0f} MB",
            shard.memory <= SHARD_MEMORY_BUDGET,
        )
    )
    return lines


def _run(folder: Path, cells: int, shards: int = 1) -> Run:
    write_goldens(folder / "golden", cells // READERS)
    readers = load_policy(ROOT / "export_compat.yaml").calendar().versions()[-READERS:]
    command = [sys.executable, "-m", "benchmarks.coordinator", "matrix", "--readers", ",".join(readers), "--quiet"]
    command += ["--goldens", str(folder / "golden"), "--results", str(folder / "results"), "--no-cache"]
    command += ["--shard", f"1/{shards}"] if shards > 1 else []
    started = time.perf_counter()
    with (folder / "log").open("wb") as log:
        variables = {**os.environ, "STATUS": str(folder / "status")}
        process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=log, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode not in (0, 1):
        log_end = (folder / "log").read_text()[-4000:]
        raise SystemExit(f"{command}: expected exit code 0 or 1, found {process.returncode}:\n{log_end}")
    summary = read_summary(folder / "results")
    cells //= shards
    assert summary.planned == summary.results == summary.verdicts["pass"] == cells, summary.verdicts
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", (folder / "status").read_text(), re.MULTILINE)
    assert peak
    return Run(cells, wall, used.ru_utime + used.ru_stime, int(peak[1]) * 1024 / 1e6)


def write_goldens(folder: Path, count: int) -> None:
    """Write `count` goldens that have the same artifact and different inputs, so that no two cells are the same.

    Which release wrote the artifact does not matter, since stubs do not read it.
    """
    store = GoldenStore(folder)
    template = next(
        golden
        for golden in GoldenStore(ROOT / "golden").goldens()
        if golden.manifest.case.endswith("test_dtype[float32]")
    )
    artifact = (template.folder / ARTIFACT).read_bytes()
    for number in range(count):
        arrays = to_npz([leaf_of(np.full(4, number, np.float32))])
        content = {ARTIFACT: artifact, INPUTS: arrays, OUTPUTS: arrays}
        case = f"tests.test_growth.test_case_{number:05}"
        hashes = {name: sha256(data) for name, data in content.items()}
        of_case = {"case": case, "test": case, "files": hashes, "checks": (), "out_shardings": (), "noise": None}
        store.write(msgspec.structs.replace(template.manifest, **of_case), content)
