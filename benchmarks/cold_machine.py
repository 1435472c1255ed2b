"""The time to build environments when no package has been downloaded yet, against uv and the first import of jax.

The first import compiles Python's bytecode of jax. It counts as uv's time, since our environments are compiled when
they are built.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from export_core.base.processes import passed_variables
from export_core.policy import load_policy
from export_core.readers.build import uv_command
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.installed import READY, interpreter_in
from export_core.readers.placement import Placement

ROOT = Path(__file__).parents[1]
RELEASES = 3
ROUNDS = 4
BUDGET = BUDGETS["environments"].limit


def measure() -> list[Line]:
    """Measure how long the environments of the `RELEASES` newest releases take, several at once, one on each core.

    Both sides download everything. Our side also checks each file against its package's hash.
    """
    variables = passed_variables() | {"JAX_PLATFORMS": "cpu"}  # as a build has: without PYTHONDONTWRITEBYTECODE
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    placements = [Placement(calendar.release(version)) for version in calendar.versions()[-RELEASES:]]

    def build(placement: Placement, folder: Path) -> Environment:
        with ReaderEnvironments(calendar) as environments:
            return environments.build(placement)

    def install(environment: Environment, folder: Path) -> Path:
        virtual_environment = folder / environment.release.jaxlib
        ready = json.loads((environment.python.parents[1] / READY).read_bytes())
        base = environment.python.resolve()
        subprocess.run([uv_command(), "venv", "-q", "--python", base, virtual_environment], check=True)
        python = interpreter_in(virtual_environment)
        subprocess.run([uv_command(), "pip", "install", "-q", "--python", python, *ready["requirements"]], check=True)
        return python

    def first_import(python: Path, folder: Path) -> None:
        subprocess.run([python, "-c", "import jax, jax.export"], check=True, env=variables)

    def once() -> tuple[float, float, float]:
        with tempfile.TemporaryDirectory() as scratch:
            ours, built = _seconds(build, placements, Path(scratch) / "ours")
            uv, pythons = _seconds(install, built, Path(scratch) / "uv")
            imported, _ = _seconds(first_import, pythons, Path(scratch) / "uv")
        return ours, uv, imported

    # The fastest of each: the network can only add time.
    ours, uv, imported = map(min, zip(*(once() for _ in range(ROUNDS)), strict=True))
    what = f"environments of {RELEASES} releases on a machine that has nothing"
    without = f"{uv:.1f} s for uv alone, without bytecode"
    alone = Line(what, f"{ours:.1f} s", without, f"{ours / uv:.2f} times", "", True)
    theirs = uv + imported
    return [
        alone,
        Line(
            what,
            f"{ours:.1f} s",
            f"{theirs:.1f} s for uv and the first import of jax",
            f"{ours / theirs:.2f} times",
            f"{BUDGET} times",
            ours <= BUDGET * theirs,
        ),
    ]


def _seconds(make: Callable[[Any, Path], Any], items: Sequence[Any], folder: Path) -> tuple[float, list[Any]]:
    """Call `make(item, folder)` for all items at once; return the wall seconds, and what the calls returned.

    The caches of uv and of this program are empty at the start, and lie in `folder`.
    """
    caches = {"JAXEXPORT_CACHE": str(folder / "jaxexport"), "UV_CACHE_DIR": str(folder / "uv")}
    with mock.patch.dict(os.environ, caches), ThreadPoolExecutor(os.cpu_count()) as pool:
        started = time.perf_counter()
        made = list(pool.map(lambda item: make(item, folder), items))
        return time.perf_counter() - started, made
