"""The cost of a marked test whose goldens have not changed, against a plain export of the same function.

`benchmarks.daily_plugin` measures both in the same run of this project's marked tests. It exports and calls each
function once to warm up. Then it measures a plain export and the marked test in turn, each time with jax's caches
emptied. Every case has five generations of goldens: its own, and copies of the newest under names of other writers.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec import structs

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from export_core.goldens import GoldenStore
from export_core.goldens.manifest_file import dump_manifest
from export_core.releases import load_calendar

ROOT = Path(__file__).parents[1]
GENERATIONS = 5
BUDGET = BUDGETS["daily"].limit


def measure() -> list[Line]:
    """Run all marked tests twice, and measure the second run.

    One budget limits the median ratio of a marked test's seconds to a plain export's. The other says that the first
    run replays each golden at most once, and the second run replays no golden.
    """
    with tempfile.TemporaryDirectory() as scratch:
        goldens = with_generations(Path(scratch) / "golden")
        first = run(Path(scratch), goldens)
        again = run(Path(scratch), goldens)
    ratios = [marked / plain for plain, marked in again.seconds]
    plain, marked = (1000 * statistics.median(side) for side in zip(*again.seconds, strict=True))
    ratio = statistics.median(ratios)
    total, cells = again.goldens, first.goldens - first.stored
    return [
        Line(
            f"a marked test, goldens of {GENERATIONS} generations, nothing changed ({len(ratios)} cases)",
            f"{marked:.0f} ms",
            f"{plain:.0f} ms for export, serialize and one call",
            f"{ratio:.2f} times",
            f"{BUDGET} times",
            ratio <= BUDGET,
        ),
        Line(
            "cells that run: the first time, and again",
            f"{cells} and {total - again.stored}",
            f"{total} goldens",
            f"{cells / total:.2f} and {1 - again.stored / total:.2f} a golden",
            "1 and 0",
            cells <= total and again.stored == total,
        ),
    ]


class Run:
    """The figures of a run of pytest, read from its output.

    `seconds` has a pair for each case: of the plain export, and of the marked test. `goldens` counts the goldens that
    were checked, and `stored` those whose stored outcome of an earlier run was used.
    """

    def __init__(self, seconds: list[tuple[float, float]], text: str) -> None:
        self.seconds = seconds
        self.goldens = _number(r"checked against ([\d,]+) goldens", text)
        self.stored = _number(r"([\d,]+) of them by the outcome of an earlier run", text)


def _number(pattern: str, text: str) -> int:
    """Return the number in the first match of a pattern, which is the pattern's first group.

    Raises:
        SystemExit: the pattern does not match; the message has the whole text.
    """
    found = re.search(pattern, text)
    if not found:
        raise SystemExit(f"expected {pattern!r} in what pytest has printed:\n{text}")
    return int(found[1].replace(",", ""))


def run(scratch: Path, goldens: Path) -> Run:
    """Run this project's marked tests against these goldens, with a cache in the folder `scratch`."""
    rows = scratch / "rows.json"
    command = [sys.executable, "-m", "pytest", "-v", "-p", "benchmarks.daily_plugin", "-p", "no:xdist", "tests/compat"]
    variables = {"JAXEXPORT_CACHE": str(scratch / "cache"), "DAILY_ROWS": str(rows), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [*command, "--goldens", str(goldens)],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        check=False,
    )
    if not rows.exists():
        raise SystemExit(f"{command} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return Run(json.loads(rows.read_text()), done.stdout.decode())


def with_generations(folder: Path) -> Path:
    """Copy this project's goldens into a folder, and return the folder.

    A case with fewer than `GENERATIONS` goldens gets copies of its newest golden under the names of other writers.
    """
    shutil.copytree(ROOT / "golden", folder)
    store, calendar = GoldenStore(folder), load_calendar()
    for _, generations in itertools.groupby(store.goldens(), key=lambda golden: golden.manifest.case):
        found = list(generations)
        newest, taken = found[-1], {golden.manifest.writer.jaxlib for golden in found}
        missing = [version for version in reversed(calendar.versions()) if version not in taken]
        for version in missing[: max(0, GENERATIONS - len(found))]:
            release = calendar.release(version)
            writer = structs.replace(
                newest.manifest.writer, jax=release.jax, jaxlib=release.jaxlib, built=release.built
            )
            copy = Path(shutil.copytree(newest.folder, newest.folder.with_name(writer.id)))
            (copy / "golden.yaml").write_bytes(dump_manifest(structs.replace(newest.manifest, writer=writer)))
    return folder
