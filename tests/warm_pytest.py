"""A process that has imported pytest and jax and used neither: runs of pytest are forks of it.

Importing them takes longer than the rest of most runs. What differs from a new interpreter: jax is there before pytest
starts, all forks hash strings alike, their workers are forks too (warm_worker.py), and the noise of a golden is
measured as LITTLE_NOISE says, or not at all.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from warm_worker import starts

# Neither xdist nor pytest_jaxexport: pytest warns of plugins that it can no longer rewrite.
IMPORTED = ("pytest", "_pytest.junitxml", "export_core.export", "export_core.session", "scipy.optimize")

LITTLE_NOISE = """
from export_core.matrix import noise_runs

noise_runs.COMPILED = {"fast_math": noise_runs.COMPILED["fast_math"]}
"""
"""Measures noise with one setting of the compiler instead of six, whose compiling is half of writing a golden."""


NO_NOISE = """
from export_core.matrix import noise_runs

noise_runs.not_measured = lambda golden: "left out"
"""
"""Writes goldens without noise, for tests of something else."""


class WarmPytest:
    """Talks to the process: a run is a line of JSON on its stdin, and its exit code a line on its stdout."""

    def __init__(self, variables: Mapping[str, str], workers: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, workers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**variables, "OPENBLAS_NUM_THREADS": "1"},  # its threads would be lost in a fork
        )

    def run(
        self, words: Sequence[str], folder: Path, variables: Mapping[str, str], output: Path, *, noise: bool
    ) -> int:
        """The exit code of ``python -m pytest WORDS`` in a folder. What it prints goes to a file."""
        assert self._process.stdin
        assert self._process.stdout
        request = [list(words), str(folder), dict(variables), str(output), LITTLE_NOISE if noise else NO_NOISE]
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def main(workers: str) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    use_warm_workers(Path(workers))
    gc.freeze()  # or the first collection of each fork would copy every page
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            run_pytest(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def use_warm_workers(path: Path) -> None:
    from export_core.environments.environment import CELL_VARIABLES
    from export_core.worker import processes

    processes.start = starts(lambda deciding: path if deciding == CELL_VARIABLES else None)


def run_pytest(words: list[str], folder: str, variables: dict[str, str], output: str, noise: str) -> None:
    exec(noise)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1, 2)
    sys.argv, sys.path[0] = ["pytest", *words], folder
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)  # ends the process


if __name__ == "__main__":
    main(*sys.argv[1:])
