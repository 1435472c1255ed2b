"""The page docs/evidence/surface.md says who runs what is exported: what it says is what a matrix run says."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import making
import pytest

from export_core.goldens import GoldenStore
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.run.results import read_results

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence" / "surface.md"
CASE = "tests.compat.test_derivatives."


@pytest.fixture(scope="module")
def surface():
    spec = importlib.util.spec_from_file_location("surface", ROOT / "tools" / "surface_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section_of(page: str, module: str) -> str:
    (found,) = [part for part in page.split("\n## ") if f"`tests/compat/{module}.py`" in part]
    return found


def test_a_number_is_what_passed_and_words_are_what_did_not(surface):
    crash = making.result(
        Verdict.CRASH, Judgement.KNOWN, case=f"{CASE}test_b", stage=Stage.RUN, message="died by signal 11\nsomewhere"
    )
    results = [making.result(case=f"{CASE}test_a"), making.result(case=f"{CASE}test_c"), crash]
    results.append(making.result(judgement=Judgement.BONUS, case=f"{CASE}test_a", reader="0.12.0.1", promised=False))
    text = surface.section("test_derivatives", results)
    assert "| writer ↓ reader → | 0.10.2 | 0.12.0.1 |\n|---|---|---|\n| 0.9.2 | 2, 1 crash, known | (1) |" in text
    assert "- test_b by 0.9.2 in 0.10.2: crash in stage run, known: `died by signal 11`" in text
    assert "`tests/compat/test_derivatives.py`: test_a, test_c, test_b." in text


def test_each_module_of_cases_has_a_table_with_two_writers():
    page = PAGE.read_text(encoding="utf-8")
    goldens = GoldenStore(ROOT / "golden").goldens()
    modules = {each.manifest.case.split(".")[2] for each in goldens if "cpu" in each.manifest.replayed_on}
    for module in modules:
        rows = re.findall(r"^\| (\d[\d.]*) \|.*\d", section_of(page, module), re.MULTILINE)
        assert len(rows) >= 2, module


def row_of(section: str, writer: str) -> dict[str, str]:
    """What a section says of a writer's goldens, by reader."""
    rows = [re.split(r" ?\| ?", line)[1:-1] for line in section.splitlines() if line.startswith("| ")]
    (cells,) = [row for row in rows if row[0] == writer]
    return {reader: cell for reader, cell in zip(rows[0][1:], cells[1:], strict=True) if cell}


@pytest.mark.matrix
def test_the_page_says_what_runs_say_today(surface, tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    day = re.search(r"--as-of (\S+)`", page)
    assert day
    kept = row_of(section_of(page, "test_derivatives"), "0.9.2")
    words = ["--cases", f"{CASE}*", "--writers", "0.9.2", "--readers", ",".join(kept), "--as-of", day[1]]
    command = [sys.executable, "-m", "export_core", "matrix", *words, "--results", str(tmp_path), "--quiet"]
    subprocess.run(command, cwd=ROOT, check=False)
    assert row_of(surface.section("test_derivatives", list(read_results(tmp_path))), "0.9.2") == kept
