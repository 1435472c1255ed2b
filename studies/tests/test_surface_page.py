"""The page docs/evidence/surface.md shows surface.csv, which has the outcomes of a run of the matrix."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import making
import pytest

from export_core.goldens import GoldenStore
from export_core.judge import Judgement
from export_core.matrix import Verdict
from tools import surface_page
from tools.stored_results import read_results

ROOT = Path(__file__).parents[2]
CASE = "tests.compat.test_derivatives."
FOUND = surface_page.read(surface_page.DATA)


def day_of(page: str) -> str:
    found = re.search(r"window of (\S+):", page)
    assert found
    return found[1]


def test_an_outcome_tells_window_verdict_and_cause_or_message():
    results = [
        making.result(case=f"{CASE}test_a"),
        making.result(judgement=Judgement.BONUS, case=f"{CASE}test_a", reader="0.12.0.1", promised=False),
        making.result(Verdict.CRASH, Judgement.KNOWN, case=f"{CASE}test_b", cause="cpu-rank-8"),
        making.result(Verdict.ERROR, Judgement.OUTSIDE, case=f"{CASE}test_c", promised=False, message="No\nthing"),
    ]
    assert surface_page.outcomes(results) == {
        f"{CASE}test_a/0.9.2-cpu": {"0.12.0.1": "outside pass", "0.10.2": "promised pass"},
        f"{CASE}test_b/0.9.2-cpu": {"0.10.2": "promised crash, known: cpu-rank-8"},
        f"{CASE}test_c/0.9.2-cpu": {"0.10.2": "outside error: No"},
    }


def test_the_surface_page_counts_cells_by_release_cause_and_module():
    found = {
        f"{CASE}test_a/0.9.2-cpu": {"0.12.0.1": "outside pass", "0.10.2": "promised pass"},
        f"{CASE}test_b/0.9.2-cpu": {"0.12.0.1": "outside error: No", "0.10.2": "promised crash, known: cpu-rank-8"},
    }
    text = surface_page.page(found, "2026-11-26", surface_page.PAGE.read_text(encoding="utf-8"))
    assert (
        "2 goldens in each release of the window of 2026-11-26: **1 of 2 promised cells pass**; of the others 1" in text
    )
    assert "| 0.12.0.1 | 0 | 0 | 2 | 1 |\n| 0.10.2 | 2 | 1 | 0 | 0 |\n" in text
    assert "| 1 | 0 | Reductions of arrays of rank 8 crash on a CPU (`cpu-rank-8`) | 0.10.2 |\n" in text
    assert "| 0 | 1 | something else | 0.12.0.1 |\n" in text
    assert "| Derivatives that the artifact carries | 2 | 1 |\n" in text


def test_the_surface_page_shows_its_recorded_data():
    page = surface_page.PAGE.read_text(encoding="utf-8")
    assert page == surface_page.page(FOUND, day_of(page), page), "python -m tools.surface_page"


def test_each_module_of_cases_has_goldens_by_two_writers():
    goldens = GoldenStore(ROOT / "golden").goldens()
    modules = {each.manifest.case.split(".")[2] for each in goldens if "cpu" in each.manifest.replayed_on}
    for module in modules:
        writers = {golden.partition("/")[2] for golden in FOUND if golden.split(".")[2] == module}
        assert len(writers) >= 2, module


@pytest.mark.weekly
def test_a_run_today_gives_the_recorded_outcomes(tmp_path):
    day = day_of(surface_page.PAGE.read_text(encoding="utf-8"))
    words = ["--cases", f"{CASE}*", "--writers", "0.9.2", "--readers", "0.12.0.1,0.10.0,0.8.1", "--as-of", day]
    command = [sys.executable, "-m", "export_core", "matrix", *words, "--results", str(tmp_path), "--quiet"]
    subprocess.run(command, cwd=ROOT, check=False)
    today = surface_page.outcomes(read_results(tmp_path))
    assert today
    for golden, by_reader in today.items():
        assert {reader: FOUND[golden][reader] for reader in by_reader} == by_reader
