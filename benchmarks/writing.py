"""The cost of noise: a project's goldens written with it, and without.

Both sides are whole processes, `pytest --update-goldens` in a project that has no goldens yet, in turn. Without noise,
the plugin's measurement is replaced by one that finds nothing.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.line import Line
from export_core.goldens import GoldenStore

BUDGET = 4.0

TESTS = '''
"""Ordinary programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.export_compat

RANDOM = np.random.default_rng(0)
A, B, C = (RANDOM.normal(size=(64, 64)).astype(np.float32) for _ in range(3))
IMAGE = RANDOM.normal(size=(2, 28, 28, 3)).astype(np.float32)
KERNEL = RANDOM.normal(size=(3, 3, 3, 8)).astype(np.float32)


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / 8) @ v


def test_products(export_golden):
    export_golden(jax.jit(lambda a, b, c: a @ b @ c), A, B, C)


def test_attention(export_golden):
    export_golden(jax.jit(attention), A, B, C)


def test_gradient(export_golden):
    export_golden(jax.jit(jax.grad(lambda q, k, v: jnp.sum(attention(q, k, v) ** 2), (0, 1, 2))), A, B, C)


def test_scan(export_golden):
    def steps(a, b):
        return jax.lax.scan(lambda state, _: (jnp.tanh(state @ a / 8), state.sum()), b, length=100)

    export_golden(jax.jit(steps), A, B)


def test_convolution(export_golden):
    def convolution(image, kernel):
        out = jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.nn.relu(out).mean((1, 2))

    export_golden(jax.jit(convolution), IMAGE, KERNEL)


def test_cholesky(export_golden):
    export_golden(jax.jit(lambda a: jnp.linalg.cholesky(a @ a.T + 64 * jnp.eye(64))), A)


def test_sort(export_golden):
    export_golden(jax.jit(lambda a: (jnp.sort(a), jnp.argsort(a))), A)


def test_elementwise(export_golden):
    export_golden(jax.jit(lambda a: jnp.exp(jnp.sin(a)) / (1 + a**2)), A)
'''

WITHOUT = """
from pytest_jaxexport.replayer import Replayer

Replayer.noise = lambda replayer, golden: "not measured"
"""


def measure(rounds: int) -> list[Line]:
    """The budget limits the ratio of the medians of all rounds."""
    with tempfile.TemporaryDirectory() as scratch:
        projects = [_project(Path(scratch) / name, conftest) for name, conftest in (("with", ""), ("without", WITHOUT))]
        for project in projects:
            write_goldens(project, "first")  # to warm the file cache and write the bytecode
        rows = [[write_goldens(project, str(number)) for project in projects] for number in range(rounds)]
        goldens = GoldenStore(projects[0] / "first").goldens()
    with_noise, without = (statistics.median(side) for side in zip(*rows, strict=True))
    return [
        Line(
            f"writing {len(goldens)} goldens with their noise, as a process",
            f"{with_noise:.1f} s",
            f"{without:.1f} s without",
            f"{with_noise / without:.2f} times",
            f"{BUDGET:.0f} times",
            with_noise <= BUDGET * without,
        )
    ]


def _project(folder: Path, conftest: str) -> Path:
    folder.mkdir()
    (folder / "test_programs.py").write_text(TESTS)
    (folder / "conftest.py").write_text(conftest)
    return folder


def write_goldens(project: Path, goldens: str) -> float:
    """Seconds of a run that writes them into a new folder of the project."""
    command = [sys.executable, "-m", "pytest", "--update-goldens", "--goldens", goldens, "-q"]
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=project, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return seconds
