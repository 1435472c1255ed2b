"""The Python files that most cells import are compiled on several processors for the first new environment of a run."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from export_core.base.processes import passed_variables
from export_core.readers import compiling
from export_core.readers.compiling import FILES, compile_imported

SITE = Path("lib/python3.12/site-packages")
LISTED = FILES.read_text(encoding="utf-8").split()


@pytest.fixture
def new(tmp_path) -> Path:
    """An environment with three of the listed files, one of which is no Python, and with one that is not listed."""
    for name, text in {
        "numpy/__init__.py": "ONE = 1",
        "numpy/version.py": "TWO = 2",
        "jax/__init__.py": "def",
        "jax/other.py": "THREE = 3",
    }.items():
        (tmp_path / SITE / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / SITE / name).write_text(text)
    assert {"numpy/__init__.py", "numpy/version.py", "jax/__init__.py"} <= set(LISTED)
    return tmp_path


def compiled(folder: Path) -> set[str]:
    return {f"{path.parents[1].name}.{path.name.partition('.')[0]}" for path in folder.rglob("*.pyc")}


@pytest.mark.parametrize("processes", [2, 9])
def test_listed_files_of_a_new_environment_are_compiled(new, processes):
    compile_imported(new, Path(sys.executable), processes, threading.Event())
    assert compiled(new) == {"numpy.__init__", "numpy.version"}
    code = f"import sys; sys.path.insert(0, {str(new / SITE)!r}); import numpy.version"
    done = subprocess.run([sys.executable, "-vIc", code], capture_output=True, text=True, check=True)
    assert sum("/numpy/__pycache__/" in line and "matches" in line for line in done.stderr.splitlines()) == 2


def test_a_single_processor_leaves_compiling_to_the_worker(new):
    compile_imported(new, Path(sys.executable), 1, threading.Event())
    assert compiled(new) == set()


def test_an_interpreter_that_does_not_start_raises_nothing(new):
    compile_imported(new, new / "bin" / "python", 2, threading.Event())
    assert compiled(new) == set()


@pytest.mark.parametrize("limit", ["stopped", "time"])
def test_a_process_that_does_not_end_is_killed(new, monkeypatch, limit):
    python, stopping = new / "python", threading.Event()
    python.write_text(f"#!/bin/sh\necho $$ >> {new}/started\nexec sleep 1000\n")
    python.chmod(0o755)
    monkeypatch.setattr(compiling, "SECONDS", 0.5 if limit == "time" else 1000.0)
    if limit == "stopped":
        threading.Timer(0.5, stopping.set).start()
    began = time.monotonic()
    compile_imported(new, python, 2, stopping)
    assert time.monotonic() - began < 100
    for pid in (new / "started").read_text().split():
        assert not Path(f"/proc/{pid}").exists()


def test_nearly_all_files_that_importing_jax_reads_are_listed():
    code = "import sys, jax.export; print(*(getattr(one, '__file__', '') for one in list(sys.modules.values())))"
    variables = {**passed_variables(), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables)
    packages = {name.partition("/")[0] for name in LISTED}
    read = {path.partition("/site-packages/")[2] for path in done.stdout.split() if path.endswith(".py")}
    read = {name for name in read if name.partition("/")[0] in packages}
    assert len(read) > 300
    assert len(read - set(LISTED)) < len(read) / 20, sorted(read - set(LISTED))
