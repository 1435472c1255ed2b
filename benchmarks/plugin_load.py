"""The cost of the plugin in a pytest run that has no marked test.

`python -m benchmarks.plugin_load FOLDER PAIRS ARGUMENT ...` runs pytest with these arguments in a folder, with and
without the plugin in turn, and prints the processor seconds of each pair as JSON. The runs are forks of one process
that has imported pytest. Whole processes, of half a second each, would differ from each other by more than the plugin
costs.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line

BUDGET_MS = BUDGETS["plugin"].limit
PAIRS = 5  # for every run of the command line's --runs
_KINDS = {"a run with no marked test": [], "pytest --help": ["--help"], "pytest --markers": ["--markers"]}


def measure(runs: int) -> list[Line]:
    """Measure pairs of pytest runs, with and without the plugin; the budget limits the median of their differences.

    Args:
        runs: `PAIRS` times this number is the number of pairs for each kind of run.
    """
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder) / "test_nothing.py"
        test.write_text("def test_nothing():\n    pass\n")
        return [_line(what, [str(test), *extra], PAIRS * runs, folder) for what, extra in _KINDS.items()]


def _line(what: str, arguments: list[str], count: int, folder: str) -> Line:
    command = [sys.executable, "-m", "benchmarks.plugin_load", folder, str(count), *arguments]
    root = Path(__file__).parents[1]
    pairs = json.loads(subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True).stdout)
    with_plugin, without = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    extra = 1000 * statistics.median(one - other for one, other in pairs)
    return Line(
        f"plugin load, processor time: {what} ({count} pairs)",
        f"{with_plugin:.0f} ms",
        f"{without:.0f} ms with -p no:jaxexport",
        f"{extra:+.1f} ms",
        f"+{BUDGET_MS:.0f} ms",
        extra <= BUDGET_MS,
    )


def _main(folder: str, count: int, arguments: list[str]) -> None:
    import pytest  # noqa: F401  # before the forks, so that neither run of a pair imports it

    os.chdir(folder)
    # Plugins of other packages take ten times as long, each time another time, and that of jaxtyping imports NumPy.
    others = [plugin.name for plugin in entry_points(group="pytest11") if plugin.name != "jaxexport"]
    arguments = [*arguments, "-q", *(word for name in ("cacheprovider", *others) for word in ("-p", f"no:{name}"))]
    without = [*arguments, "-p", "no:jaxexport"]
    _seconds(arguments), _seconds(without)  # to warm the file cache and write the bytecode
    gc.collect()
    gc.freeze()
    pairs = []
    for number in range(count):
        if number % 2:  # so that each side is the first in half of the pairs
            pairs.append((_seconds(arguments), _seconds(without)))
        else:
            pairs.append((_seconds(without), _seconds(arguments))[::-1])
    print(json.dumps(pairs))


def _seconds(arguments: list[str]) -> float:
    """Run pytest in a fork, and return its processor seconds. Wall time would depend on what else the machine does."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run(arguments, writing)
    os.close(writing)
    with os.fdopen(reading) as file:
        seconds = file.read()
    _, status = os.waitpid(pid, 0)
    if status or not seconds:
        raise SystemExit(f"expected pytest {arguments} to pass without jax, but it fails: run it to see why")
    return float(seconds)


def _run(arguments: list[str], pipe: int) -> None:
    """Run pytest in this forked process, write its processor seconds to a pipe, and end the process.

    The exit status is not 0 if pytest fails, or if it imports jax or numpy.
    """
    import pytest

    status = 1
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
        status = int(pytest.main(arguments))
        if {"jax", "numpy"} & set(sys.modules):
            status = 1
        sys.stdout.flush()
        used = resource.getrusage(resource.RUSAGE_SELF)
        os.write(pipe, str(used.ru_utime + used.ru_stime).encode())
    finally:
        os._exit(status)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
