"""What the knowledge base adds to an `inspect`, which asks about all readers, and to a check of one.

Forecasts are measured against whether the readers load an artifact that is read and audited, in processes of their own,
as `inspect` is one: where Python happens to place its objects moves the difference by a tenth from process to process.
`python -m benchmarks.known ARTIFACT JAXLIB RUNS` is such a process, and prints the `Times` of each group of readers.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.budgets import BUDGETS, Budget
from benchmarks.line import Line
from export_core.artifact import Artifact, read_bytes
from export_core.artifact.readers import Reader, loads, readers_of, readers_of_runtime
from export_core.knowledge import forecasts
from export_core.releases.calendar_entries import shipped_entries, shipped_runtimes

ROOT = Path(__file__).parents[1]
PROCESSES = 7
GROUPS = "known to inspect", "known to check"  # The budgets for all readers, and for one jaxlib.


class Times(NamedTuple):
    """Milliseconds of the processor, each the least of a process's runs."""

    known: float  # Forecasts for the readers.
    bare: float  # Whether the readers load the artifact.
    work: float  # `_work`, which counts as 1 ms: a slow or busy machine then gives nearly the same difference.

    @property
    def more(self) -> float:
        """What forecasts take longer, in times of `work`."""
        return (self.known - self.bare) / self.work


def measure(artifact: Path, jaxlib: str, runs: int) -> list[Line]:
    """Return the line of each group of readers: the process with the median difference counts."""
    command = [sys.executable, "-m", "benchmarks.known", str(artifact), jaxlib, str(runs)]
    runs_of = [subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE) for _ in range(PROCESSES)]
    printed = [json.loads(done.stdout) for done in runs_of]
    return [
        _line(BUDGETS[group], [Times(*times) for times in of_group])
        for group, of_group in zip(GROUPS, zip(*printed, strict=True), strict=True)
    ]


def _line(budget: Budget, measured: Sequence[Times]) -> Line:
    middle = statistics.median_low(times.more for times in measured)
    known, bare, work = next(times for times in measured if times.more == middle)
    return Line(
        budget.what,
        f"{known:.2f} ms",
        f"{bare:.2f} ms for {budget.against}, where what counts as 1 ms takes {work:.2f} ms",
        f"+{middle:.2f} ms",
        f"+{budget.limit:g} ms",
        middle <= budget.limit,
    )


def _measured(data: bytes, readers: Sequence[Reader], runs: int) -> Times:
    known, bare, works = [], [], []
    for _ in range(runs):
        first, second = _audited(data), _audited(data)
        known.append(_milliseconds(lambda artifact=first: [*forecasts(artifact, readers)]))
        bare.append(_milliseconds(lambda artifact=second: [*loads(artifact, readers)]))
        works.append(_milliseconds(_work))
    return Times(min(known), min(bare), min(works))


def _milliseconds(do: Callable[[], object]) -> float:
    started = time.process_time()
    do()
    return (time.process_time() - started) * 1e3


def _work() -> None:
    """Do work of plain Python that counts as a millisecond: it took 1 ms on the machine of the first measurements."""
    counts: dict[str, int] = {}
    for number in range(2_800):
        counts[str(number % 97)] = counts.get(str(number % 89), 0) + number


def _audited(data: bytes) -> Artifact:
    """Return an artifact of which what a command has read before it forecasts is read."""
    artifact = read_bytes(data)
    assert artifact.custom_calls is not None
    assert artifact.unread is not None
    return artifact


def _main(artifact: str, jaxlib: str, runs: str) -> None:
    data = Path(artifact).read_bytes()
    releases, names = shipped_entries(), shipped_runtimes()
    jaxlibs = readers_of(releases)
    runtimes = [reader for name in names for reader in readers_of_runtime(name, names, releases)]
    gc.disable()
    groups = (*jaxlibs.values(), *runtimes), (jaxlibs[jaxlib],)
    print(json.dumps([_measured(data, readers, int(runs)) for readers in groups]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
