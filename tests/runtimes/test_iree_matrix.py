"""IREE in a matrix: dtypes that its half must support, and a fault that is IREE's own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHOUT_DEMOTION = "iree==3.13.0[--iree-input-demote-f64-to-f32=false]"
CASES = {
    "tests.compat.test_dtypes.test_wide_dtype[[]float64]": "pass",
    "tests.compat.test_dtypes.test_wide_dtype[[]complex128]": "pass",
    "tests.compat.test_dtypes.test_tiny_dtype[[]int4]": "pass",  # two numbers a byte
    "tests.compat.test_dtypes.test_tiny_dtype[[]float8_e3m4]": "refused",
    "tests.compat.test_dtypes.test_random_key[[]rbg]": "refused",  # Shardy's dialect is in it
    "tests.compat.test_types_alone.test_several_dtypes": "numerics",  # its gather does not clamp an index out of range
}

pytestmark = pytest.mark.matrix


def test_verdicts_of_iree_are_as_documented(tmp_path):
    words = [word for case in CASES for word in ("--cases", case)]
    command = ["matrix", "--readers", WITHOUT_DEMOTION, "--writers", "0.12.0.1", "--results", str(tmp_path / "results")]
    done = subprocess.run(
        [sys.executable, "-m", "export_core", *command, *words], cwd=ROOT, capture_output=True, text=True
    )
    lines = (tmp_path / "results" / "results.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    found = {result["case"].replace("[", "[[]"): result["verdict"] for result in results}
    assert found == CASES, done.stderr
