"""Faults of an added runtime, found by a matrix: each is a clear message, and no such cell passes."""

import json
import shutil
from pathlib import Path

import pytest

from export_core.releases import runtimes

pytestmark = pytest.mark.matrix

ROOT = Path(__file__).parents[2]
CASE = "tests.compat.test_dtypes.test_dtype[{}]"
YAML = """
name: adder
about: A runtime of a test, which computes what its two goldens do.
worker: adder_worker.py
requirements: [{requirement}]
check: {check}
releases: {{"1.0": {{built: 2026-10-01, python: ["3.12"]}}}}
"""
HALF = """
import os, threading, time


def warm():
    {warm}


def run(call, leaves, stage):
    {first}
    stage("compile")
    if leaves[0].dtype.name == "int32":
        {run}
    stage("run")
    (x,) = leaves
    return [x[::-1], x + x, x * x]  # what the golden does with its numbers
"""


@pytest.fixture
def matrix(tmp_path, monkeypatch, jaxexport):
    """The function that runs a matrix of two goldens in a runtime with these parts, and returns results by dtype."""
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for dtype in ("int32", "float32"):
        own = Path("golden") / CASE.format(dtype) / "0.12.0.1-cpu"
        shutil.copytree(ROOT / own, own)

    def run(*, requirement="", check="print('1.0')", warm="pass", first="pass", run="pass", reader="adder", code=None):
        text = YAML.format(requirement=requirement, check=json.dumps(check))
        (tmp_path / "adder.yaml").write_text(text)
        (tmp_path / "adder_worker.py").write_text(HALF.format(warm=warm, first=first, run=run))
        found = {"adder": runtimes.load_runtime(tmp_path / "adder.yaml")}
        monkeypatch.setattr(runtimes, "known_runtimes", lambda: found)
        ended = jaxexport("matrix", "--readers", reader, "--results", "results", "--timeout", 5, code=code)
        results = tmp_path / "results" / "results.jsonl"
        rows = map(json.loads, results.read_text().splitlines()) if results.exists() else ()
        return ended, {row["case"].rpartition("[")[2].strip("]"): row for row in rows}

    return run


def verdicts(results):
    return {dtype: row["verdict"] for dtype, row in results.items()}


def test_every_cell_of_a_working_runtime_passes(matrix):
    _, results = matrix(code=3)
    assert verdicts(results) == {"int32": "pass", "float32": "pass"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"check": "import no_such_runtime"}, "No module named 'no_such_runtime'"),
        ({"check": "print('2.0')"}, "expected 1.0, found 2.0"),
        # The wheels of this release are for CPython 3.9 to 3.11.
        ({"requirement": "tensorflow-cpu==2.15.1"}, "tensorflow-cpu==2.15.1"),
        ({"warm": "import no_such_part"}, "No module named 'no_such_part'"),
    ],
    ids=["not installed", "another version", "no wheel", "import"],
)
def test_cells_of_a_runtime_that_fails_to_start_do_not_run(matrix, parts, message):
    ended, results = matrix(**parts, code=3)
    assert verdicts(results) == {"int32": "not_run", "float32": "not_run"}
    assert all(message in row["message"] for row in results.values()), results
    assert "INCOMPLETE" in ended.out


def test_each_cell_of_a_runtime_with_threads_starts_an_interpreter(matrix, tmp_path):
    warm = f"open({str(tmp_path / 'warm')!r}, 'a').write('.'); threading.Thread(target=time.sleep, args=(9,)).start()"
    _, results = matrix(warm=warm)
    assert verdicts(results) == {"int32": "pass", "float32": "pass"}
    assert (tmp_path / "warm").read_text() == "..."  # the worker that cannot fork, and one for each cell


def test_an_unknown_release_of_a_runtime_is_bad_input(matrix):
    ended, _ = matrix(reader="adder==1.1", code=2)
    assert "adder 1.1 is not in the calendar of adder" in ended.err
    assert "The newest known are 1.0." in ended.err


@pytest.mark.parametrize(
    ("parts", "verdict", "message"),
    [
        ({"first": "if leaves[0].dtype.name == 'int32': raise TypeError('no int32 here')"}, "not_run", "no int32 here"),
        ({"run": "os.write(2, b'Unsupported op'); os.abort()"}, "crash", "SIGABRT"),
        ({"run": "time.sleep(60)"}, "timeout", "still in stage compile after 5 s"),
        ({"run": "raise ValueError('no such dialect')"}, "error", "no such dialect"),
    ],
    ids=["cannot pass", "aborts", "never ends", "raises"],
)
def test_a_failing_cell_does_not_affect_other_cells(matrix, parts, verdict, message):
    _, results = matrix(**parts)
    assert verdicts(results) == {"int32": verdict, "float32": "pass"}
    assert message in results["int32"]["message"]
