"""The environments of a machine that has none, and no downloaded package, against uv alone."""

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

from benchmarks.line import Line
from export_core.environments.build import uv_command
from export_core.environments.environment import Environment, ReaderEnvironments
from export_core.environments.installed import READY, interpreter_in
from export_core.environments.placement import Placement
from export_core.policy import load_policy

ROOT = Path(__file__).parents[1]
RELEASES = 3
BUDGET = 1.2


def measure() -> list[Line]:
    """The newest releases, as many at once as there are cores; both sides download everything.

    Ours also checks each file against its package's hash, imports jax once, and so compiles its bytecode.
    """
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    placements = [Placement(calendar.release(version)) for version in calendar.versions()[-RELEASES:]]

    def build(placement: Placement, folder: Path) -> Environment:
        with ReaderEnvironments(calendar) as environments:
            return environments.build(placement)

    def install(environment: Environment, folder: Path) -> None:
        place = folder / environment.release.jaxlib
        ready = json.loads((environment.python.parents[1] / READY).read_bytes())
        subprocess.run([uv_command(), "venv", "-q", "--python", environment.python.resolve(), place], check=True)
        command = [uv_command(), "pip", "install", "-q", "--python", interpreter_in(place), *ready["requirements"]]
        subprocess.run(command, check=True)

    with tempfile.TemporaryDirectory() as scratch:
        ours, built = _seconds(build, placements, Path(scratch) / "ours")
        alone, _ = _seconds(install, built, Path(scratch) / "uv")
    return [
        Line(
            f"environments of {RELEASES} releases on a machine that has nothing",
            f"{ours:.1f} s",
            f"{alone:.1f} s for uv alone",
            f"{ours / alone:.2f} times",
            f"{BUDGET} times",
            ours <= BUDGET * alone,
        )
    ]


def _seconds(make: Callable[[Any, Path], Any], items: Sequence[Any], folder: Path) -> tuple[float, list[Any]]:
    """Wall seconds to make something of each item, with empty caches in a folder; and what was made."""
    caches = {"JAXEXPORT_CACHE": str(folder / "jaxexport"), "UV_CACHE_DIR": str(folder / "uv")}
    with mock.patch.dict(os.environ, caches), ThreadPoolExecutor(os.cpu_count()) as pool:
        started = time.perf_counter()
        made = list(pool.map(lambda item: make(item, folder), items))
        return time.perf_counter() - started, made
