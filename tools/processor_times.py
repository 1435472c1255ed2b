"""A pytest plugin that records the processor seconds of each test and its processes, and a table of them by file.

    python -m pytest -p tools.processor_times --processor-times=FOLDER       # also with -n
    python -m tools.processor_times FOLDER [BEFORE]                          # BEFORE: the folder of an earlier run

Other work on the same machine changes how long a test takes much more than how much processor time it needs. Time of a
process or fixture that several tests share counts for the test during which it was spent.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
TIMES = slice(11, 15)
"""The indexes, in /proc/PID/stat after the name, of the times of a process and of children that it has waited for."""
SHOWN = 60


def processor_seconds() -> float:
    """Return the processor seconds of this process and of all processes below it, whether they have ended or not."""
    total, left = 0, [str(os.getpid())]
    while left:
        process = Path("/proc", left.pop())
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended, or a thread of it
            fields = (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            total += sum(map(int, fields[TIMES]))
            # To look at all processes of a machine would take longer than most tests.
            for thread in (process / "task").iterdir():
                left += (thread / "children").read_text().split()
    return total / TICKS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--processor-times`, which names the folder for the records."""
    parser.addoption("--processor-times", type=Path, help="a folder for the processor seconds of each test")


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder if the option is given, except in the controlling process of xdist, which runs no tests."""
    folder = config.getoption("processor_times")
    if folder and not config.getoption("numprocesses", None):
        folder.mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Times(folder), "processor times")


class Times:
    """The recorder of the tests that run in this process. It writes a line of JSON for each test."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / f"{os.getpid()}.jsonl").open("w", encoding="utf-8")
        self._before = 0.0

    def _write(self, name: str) -> None:
        now = processor_seconds()
        self._file.write(json.dumps([name, round(now - self._before, 3)]) + "\n")
        self._file.flush()
        self._before = now

    def pytest_collection_finish(self) -> None:
        """Write a line for the time of imports and collection, before the first test."""
        self._write("(collection)")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run a test with its fixtures, and write a line for its time."""
        result = yield
        self._write(item.nodeid)
        return result

    def pytest_sessionfinish(self) -> None:
        """Write a line for the time that was spent after the last test."""
        self._write("(end)")


def by_file(folder: Path) -> dict[str, float]:
    """Return the processor seconds of each test file, from the records in a folder."""
    sums: dict[str, float] = defaultdict(float)
    for path in folder.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            name, seconds = json.loads(line)
            sums[name.partition("::")[0]] += seconds
    return dict(sums)


def main(*folders: Path) -> None:
    """Print a table of test files, the most expensive first, with a column for each folder of records."""
    runs = [by_file(folder) for folder in folders]
    names = sorted({name for run in runs for name in run}, key=lambda name: -max(run.get(name, 0) for run in runs))
    for name in names[:SHOWN]:
        print(*(f"{run.get(name, 0):8.1f}" for run in runs), f" {name}")
    print(*(f"{sum(run.values()):8.1f}" for run in runs), " all")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
