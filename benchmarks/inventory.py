"""The cost of an inventory of 10,000 artifacts on two cores, and how much more memory it takes than one of 1,000."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line

FILES = 10_000
JOBS = 2
BUDGET = BUDGETS["inventory"].limit
GROWTH = 1.1
# A small process starts the command: a child's peak begins with the memory of the process that forked it.
_MEASURED = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""
SMALL = FILES // 10


def measure(goldens: Path) -> list[Line]:
    """Measure inventories of files that are copied from the artifacts of `goldens`, a folder.

    Each copy is changed at its end, so that no two files have the same bytes.
    """
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        for archive, files in ((small, SMALL), (large, FILES)):
            _fill(archive, goldens, files)
        _run(small)  # warms the file cache, and compiles what a user finds compiled
        (_, less), (seconds, more) = _run(small), _run(large)
    return [
        Line(
            f"inventory of {FILES:,} artifacts, {JOBS} processes",
            f"{seconds:.1f} s",
            f"{FILES / seconds * 60:,.0f} artifacts a minute",
            f"{seconds:.1f} s",
            f"{BUDGET:.0f} s",
            seconds <= BUDGET,
        ),
        Line(
            f"memory of an inventory of {FILES:,} artifacts",
            f"{more / 1024:.0f} MB",
            f"{less / 1024:.0f} MB for {SMALL:,}",
            f"{more / less:.2f} times",
            f"{GROWTH} times",
            more <= GROWTH * less,
        ),
    ]


def _fill(archive: Path, goldens: Path, files: int) -> None:
    artifacts = [path.read_bytes() for path in sorted(goldens.glob("*/*/artifact.jaxexport"))]
    for number, data in zip(range(files), itertools.cycle(artifacts), strict=False):
        folder = archive / f"{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        # Bytes behind a flatbuffer change the file, and nothing that is read of it.
        (folder / f"{number}.bin").write_bytes(data + number.to_bytes(8, "little"))


def _run(archive: Path) -> tuple[float, int]:
    """Run an inventory of a folder; return its wall seconds, and the peak memory in kB of its largest process."""
    command = [sys.executable, "-m", "export_core", "inspect", str(archive), "--jobs", str(JOBS)]
    started = time.perf_counter()
    # In a folder without the policy of this project.
    done = subprocess.run([sys.executable, "-c", _MEASURED, *command], cwd=archive, stdout=subprocess.PIPE, check=True)
    seconds = time.perf_counter() - started
    text, _, memory = done.stdout.decode().rstrip().rpartition("\n")
    expected = f"{sum(path.is_file() for path in archive.rglob('*')):,} artifacts, "
    if not text.startswith(expected):
        raise SystemExit(f"expected an inventory of {expected}found:\n{text}")
    return seconds, int(memory)
