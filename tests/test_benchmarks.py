"""The benchmarks measure what they say: each stub has its result, goldens are written with and without noise."""

from __future__ import annotations

import pytest
from warm_pytest import LITTLE_NOISE

from benchmarks import growth, writing
from benchmarks.line import Line
from benchmarks.page_table import BEGIN, END, PageTable
from export_core.goldens import GoldenStore


def test_a_small_plan_of_stubs_passes_whole(tmp_path):
    run = growth._run(tmp_path, 2 * growth.READERS)
    assert run.cells == 2 * growth.READERS
    assert run.memory > 0


def test_a_shard_of_stubs_has_its_part_of_the_plan(tmp_path):
    assert growth._run(tmp_path, 2 * growth.READERS, growth.READERS).cells == 2


def test_goldens_are_written_with_noise_and_without(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "TESTS", writing.TESTS.partition("def test_gradient")[0])
    for name, conftest in (("with", LITTLE_NOISE), ("without", writing.WITHOUT)):
        project = writing._project(tmp_path / name, conftest)
        assert writing.write_goldens(project, "goldens") > 0
    noises = [
        [golden.manifest.noise for golden in GoldenStore(tmp_path / name / "goldens").goldens()]
        for name in ("with", "without")
    ]
    assert [len(side) for side in noises] == [2, 2]
    assert None not in noises[0]
    assert noises[1] == [None] * 2


def test_the_table_of_a_page_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Budgets.\n{BEGIN}old\n{END}More.\n")
    PageTable.of(page).write([Line("reading", "1 ms", "2 ms", "0.5 times", "1 time", True)], "a machine")
    text = page.read_text()
    assert (text.startswith("Budgets.\n" + BEGIN), text.endswith(END + "More.\n")) == (True, True)
    assert "| reading | 1 ms | 2 ms | 0.5 times | 1 time | ok |" in text
    assert "old" not in text


def test_a_page_without_a_table_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}no end\n")
    with pytest.raises(ValueError, match="found no such table"):
        PageTable.of(page)


def test_a_missing_page_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        PageTable.of(tmp_path / "page.md")
