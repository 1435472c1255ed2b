"""The cost of a cold cell in runtimes that are not jaxlib, against the same call in a warm process of that runtime.

Each runtime is measured as `cells.py` measures jaxlib, with some of the goldens that the newest jaxlib wrote. But the
warm process has called only other goldens before, since TensorFlow caches what it has compiled. A last line counts how
often a worker imports TensorFlow, which takes six seconds of processor time.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cells import ROOT, cold
from benchmarks.line import Line
from benchmarks.warm import sharing
from export_core.goldens import GoldenStore
from export_core.matrix import Cell
from export_core.policy import load_policy
from export_core.readers.cell import cannot_pass, write_calls
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.readers.worker.client import start_worker
from export_core.readers.worker.protocol import Request
from export_core.releases.runtimes import runtime_readers

READERS = ("tensorflow==2.21.0", "iree==3.13.0", "litert==2.3.0", "pjrt==0.12.0.1", "stablehlo==0.12.0.1")
GOLDENS = 40
COUNTING = """

def warm(import_all=warm):
    with open({file!r}, "a") as file:
        file.write("warm\\n")
    return import_all()
"""


def measure(rounds: int) -> list[Line]:
    """Measure about `GOLDENS` goldens of this project in each of `READERS`, a release of each other runtime."""
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    goldens = [
        golden
        for golden in GoldenStore(ROOT / "golden").goldens()
        if "cpu" in golden.manifest.replayed_on and golden.manifest.writer.jaxlib == calendar.newest()
    ]
    lines = []
    for name in READERS:
        (reader,) = runtime_readers(name, calendar)
        environment = ReaderEnvironments(calendar).build(Placement(reader))
        cells = [cell for golden in goldens if not cannot_pass(cell := Cell(golden, reader, "cpu"))]
        cells = cells[:: max(1, len(cells) // GOLDENS)]
        lines += cold(cells, environment, rounds, with_modules, caches=True)
        if reader.runtime.startswith("tensorflow"):
            lines.append(imports(cells[:4], environment))
    return lines


def with_modules(cells: Sequence[Cell], scratch: Path) -> list[Request]:
    """Return the requests of the cells that can share a warm process, and write their StableHLO modules to files."""
    requests = []
    for number, cell in enumerate(cells):
        folder = scratch / str(number)
        folder.mkdir()
        requests += [write_calls(request, cell, folder) for request in sharing([cell], folder)]
    return requests


def imports(cells: Sequence[Cell], environment: Environment) -> Line:
    """Count how often a worker that runs some cells imports its runtime; the budget is once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counted, half = folder / "counted", folder / "half.py"
        half.write_text(environment.half.read_text(encoding="utf-8") + COUNTING.format(file=str(counted)))
        requests = with_modules(cells, folder)
        worker = start_worker(dataclasses.replace(environment, half=half), 2)
        try:
            for future in [worker.submit(request) for request in requests]:
                future.result()
        finally:
            worker.close()
        count = len(counted.read_text().splitlines())
    title = environment.release.title
    return Line(f"imports of {title}", f"{count} by one worker", f"{len(requests)} cells", str(count), "1", count == 1)
