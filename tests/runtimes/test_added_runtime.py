"""The example of an added runtime: examples/add-runtime."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cold_half import call_half
from jax import export

EXAMPLE = Path(__file__).parents[2] / "examples" / "add-runtime"
MOST_LINES = 100
FILES = ("pyproject.toml", "numpyref/__init__.py", "numpyref/numpyref.yaml", "numpyref/worker.py")
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def installed(tmp_path):
    """The variables of a process in which the example is installed."""
    folder = tmp_path / "numpyref-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: numpyref\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[jaxexport.runtimes]\nnumpyref = numpyref:runtime\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(EXAMPLE)])}


def called(function, tmp_path):
    artifact = export.export(jax.jit(function))(X).serialize()
    return call_half(EXAMPLE / "numpyref" / "worker.py", artifact, X, folder=tmp_path)


def test_the_example_runtime_is_short():
    assert sum(len((EXAMPLE / name).read_text().splitlines()) for name in FILES) <= MOST_LINES


def test_the_example_runs_its_operations_without_a_thread(tmp_path):
    answer = called(lambda x: jnp.tanh(x) * 2 + x, tmp_path)
    np.testing.assert_allclose(answer.outputs[0], np.tanh(X) * 2 + X, rtol=1e-6)
    assert (answer.threads, answer.late) == (1, [])


def test_the_example_names_an_operation_that_it_lacks(tmp_path):
    answer = called(jnp.sin, tmp_path)
    assert answer.stage == "run"
    assert "numpyref has no operation sine" in answer.error


def test_the_examples_entry_point_makes_it_a_reader(installed):
    code = "from export_core.releases.runtimes import runtime_of; print(runtime_of('numpyref==0.12.0.1').half)"
    done = subprocess.run([sys.executable, "-c", code], env=installed, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == EXAMPLE / "numpyref" / "worker.py"


@pytest.mark.matrix
def test_the_examples_matrix_has_the_verdicts_of_its_readme(installed, tmp_path):
    command = [sys.executable, "-m", "export_core", "matrix", "--results", str(tmp_path / "results")]
    done = subprocess.run(command, cwd=EXAMPLE, env=installed, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "numpyref 0.12.0.1: 1 pass, 1 refused" in done.stdout
