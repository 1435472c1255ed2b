"""What does the plugin cost a pytest run that has no marked test?"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.line import Line

BUDGET_MS = 20.0
_BASE = ["-q", "-p", "no:cacheprovider"]
_KINDS = {"a run with no marked test": [], "pytest --help": ["--help"], "pytest --markers": ["--markers"]}


def measure(runs: int) -> list[Line]:
    """Run pytest with and without the plugin in turn, so that a machine whose speed drifts hits both alike."""
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder) / "test_nothing.py"
        test.write_text("def test_nothing():\n    pass\n")
        return [_measure(what, [str(test), *_BASE, *extra], runs, folder) for what, extra in _KINDS.items()]


def _measure(what: str, arguments: list[str], runs: int, folder: str) -> Line:
    without = [*arguments, "-p", "no:jaxexport"]
    _seconds(arguments, folder), _seconds(without, folder)  # what warms the file cache
    pairs = []
    for number in range(runs):
        # In turn, and each first in half of the pairs.
        first, second = (arguments, without)[:: 1 - 2 * (number % 2)]
        pair = _seconds(first, folder), _seconds(second, folder)
        pairs.append(pair[:: 1 - 2 * (number % 2)])
    # The pair in the middle: the speed of a machine drifts by more than this from one second to the next.
    extra = 1000 * statistics.median(one - other for one, other in pairs)
    return Line(
        f"plugin load, processor time: {what}",
        f"{1000 * statistics.median(one for one, _ in pairs):.0f} ms",
        f"{1000 * statistics.median(other for _, other in pairs):.0f} ms with -p no:jaxexport",
        f"{extra:+.1f} ms",
        f"+{BUDGET_MS:.0f} ms",
        extra <= BUDGET_MS,
    )


def _seconds(arguments: list[str], folder: str) -> float:
    """Processor seconds of one pytest process, user and system: on a shared machine wall time says more of the neighbours."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout
    said = process.stdout.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"pytest {arguments} failed:\n{said}")
    return used.ru_utime + used.ru_stime
