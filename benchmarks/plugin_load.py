"""What does the plugin cost a pytest run that has no marked test?"""

from __future__ import annotations

import os
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
    with_plugin, without = [], []
    for number in range(runs + 1):
        one, other = _seconds(arguments, folder), _seconds([*arguments, "-p", "no:jaxexport"], folder)
        if number:  # the first pair warms the file cache
            with_plugin.append(one)
            without.append(other)
    # The fastest runs: whatever else a machine does only ever adds.
    extra = 1000 * (min(with_plugin) - min(without))
    return Line(
        f"plugin load, processor time: {what}",
        f"{1000 * min(with_plugin):.0f} ms",
        f"{1000 * min(without):.0f} ms with -p no:jaxexport",
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
