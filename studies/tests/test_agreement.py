"""The comparison with JAX's own test: differences are problems, and three goldens of the newest release agree."""

import subprocess
import sys
from pathlib import Path

import pytest
from making import NEWEST, result

from export_core.matrix import Verdict
from studies.from_jax import agreement
from tools.marked import csv_rows

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "agreement-with-jax.md"


def one(verdict: Verdict, reader: str = NEWEST, **fields: str):
    return result(verdict, case="jax.cpu_a.data", reader=reader, **fields)


@pytest.mark.parametrize(
    ("ours", "theirs", "agree"),
    [
        (Verdict.PASS, "pass", True),
        (Verdict.NUMERICS, "numerics: Not equal to tolerance", True),
        (Verdict.REFUSED, "error: ValueError: too old", True),
        (Verdict.PASS, "numerics: Not equal to tolerance", False),
        (Verdict.NUMERICS, "pass", False),
        (Verdict.CRASH, "error: ValueError: too old", False),
    ],
)
def test_a_verdict_other_than_that_of_jaxs_own_test_is_a_problem(ours, theirs, agree):
    cells = {"cpu_a.data": [one(ours), one(Verdict.PASS, "0.10.2")]}
    rows, problems = agreement.compared(cells, {"cpu_a.data": theirs}, NEWEST)
    assert len(rows) == 1
    assert bool(problems) is not agree


def test_a_golden_that_only_one_of_two_tests_ran_is_a_problem():
    cells = {"cpu_a.data": [one(Verdict.PASS)]}
    for results, theirs in ((cells, {}), ({}, {"cpu_a.data": "pass"})):
        rows, problems = agreement.compared(results, theirs, NEWEST)
        assert (len(rows), len(problems)) == (1, 1)


def test_the_page_shows_no_difference_to_jaxs_own_test_on_cpu():
    rows = csv_rows(PAGE.with_suffix(".csv"))
    text = PAGE.read_text(encoding="utf-8")
    assert text == agreement.page(rows, text)
    on_cpu = [row for row in rows if row["on"] == "cpu"]
    assert len(on_cpu) >= 48
    assert [row for row in on_cpu if row["JAX's own test"] != row["here"]] == []


def test_goldens_are_counted_by_platform_and_on_cpu_by_file():
    on_cpu = [("cpu_a.f32", "cpu", "pass", "pass", "2 pass"), ("cpu_a.f64", "cpu", "pass", "pass", "2 pass")]
    on_cuda = [("cuda_a.f32", "cuda", "", "error", "1 error"), ("cuda_b.f32", "cuda", "", "compiled", "1 compiled")]
    rows = [dict(zip(agreement.HEAD, row, strict=True)) for row in (*on_cpu, *on_cuda)]
    assert [line for line in agreement.counts(rows).splitlines() if line[2:5] in ("cpu", "cud", "`cp")] == [
        "| cpu | 2 | 2 pass | 2 pass |",
        "| cuda | 2 | cannot be run | 1 error, 1 compiled |",
        "| `cpu_a` | 2 | 2 pass |",
    ]


@pytest.mark.weekly
def test_goldens_of_the_newest_release_agree_with_its_own_test(tmp_path):
    words = ["--only", "top_k", "--readers", NEWEST, "--compiling", "none", "--release", NEWEST, "--work", tmp_path]
    done = subprocess.run(
        [sys.executable, "-m", agreement.__name__, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "3 CPU goldens of jax 0.12.0.1: JAX's own test and this project agree on each" in done.stdout
