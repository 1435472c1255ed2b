"""The benchmarks: their command and tables, and that they count each result and each process."""

import datetime
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import growth, writing
from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from benchmarks.page_table import BEGIN, END, PageTable
from benchmarks.processor import processor_seconds
from export_core.goldens import GoldenStore


def test_the_help_of_the_benchmarks_names_their_options(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--help"])
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_module("benchmarks", run_name="__main__")
    assert "--only" in capsys.readouterr().out


def test_the_benchmark_command_prints_all_budgets_in_use():
    """Run it outside of pytest, which adds folders of tests to the path."""
    command = [sys.executable, "-m", "benchmarks", "--budgets"]
    text = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True).stdout
    assert len(text.splitlines()) == 2 + len(BUDGETS)
    sources = "".join(path.read_text() for path in Path(growth.__file__).parent.glob("*.py"))
    assert [name for name in BUDGETS if f'"{name}"' not in sources.replace(f'    "{name}": Budget(', "")] == []


def test_a_benchmark_of_stub_cells_runs_one_shard_of_the_plan(tmp_path):
    run = growth._run(tmp_path, 2 * growth.READERS, growth.READERS)
    assert run.cells == 2
    assert run.memory > 0


def test_benchmarks_can_write_goldens_without_noise(tmp_path):
    programs = writing.programs()
    assert {"scalar", *writing.OWN_BUDGETS} < {*programs}
    project = writing.make_project(tmp_path / "project")
    assert writing.write_goldens(project, programs["scalar"], *writing.PLAIN) > 0
    (golden,) = GoldenStore(project / "golden").goldens()
    assert golden.manifest.noise is None


def test_processor_time_of_children_left_behind_is_counted(tmp_path):
    """The measured process leaves a child that outlives it."""
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    leaving = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"
    assert 0.3 < processor_seconds([sys.executable, "-c", leaving], tmp_path, os.environ) < 3


def test_the_page_shows_budgets_and_the_csv_file_all_measurements(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Budgets.\n{BEGIN}old\n{END}More.\n")
    reading = Line("reading", "1 ms", "2 ms", "0.5 times", "1 time", True)
    lines = {"reading": [reading], "cells": [Line("a fork, alone", "3 ms", "", "", "", True)]}
    PageTable.of(page).write(lines, "a machine")
    text = page.read_text()
    assert (text.startswith("Budgets.\n" + BEGIN), text.endswith(END + "More.\n")) == (True, True)
    assert "| reading | 0.5 times | 1 time | ok |" in text
    assert "old" not in text
    assert "a fork" not in text
    rows = (tmp_path / "page.csv").read_text().splitlines()
    day = datetime.date.today()
    assert rows[1:] == [f"reading,{day},reading,1 ms,2 ms,0.5 times,1 time,ok", f'cells,{day},"a fork, alone",3 ms,,,,']


def test_measuring_one_benchmark_again_replaces_only_its_lines(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}{END}")
    first = {kind: [Line(f"{kind} {limit}", "", "", "old", limit, True) for limit in "12"] for kind in ("a", "b", "c")}
    PageTable.of(page).write(first, "a machine")
    PageTable.of(page).write({"b": [Line("b 3", "", "", "new", "1", False)]}, "a machine")
    lines = [
        line.split(" | ")[0] for line in page.read_text().splitlines() if line.count(" | ") == 3 and line[2:3] in "abc"
    ]
    assert lines == ["| a 1", "| a 2", "| b 3", "| c 1", "| c 2"]
    assert "| b 3 | new | 1 | MISSED |" in page.read_text()


def test_the_page_shows_the_measurement_nearest_to_each_limit(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}{END}")
    costs = [Line(f"cost {number}", "", "", f"+{number} ms", "+20 ms", True) for number in (5, 7.5, 6)]
    speeds = [Line(f"speed {number}", "", "", f"{number} times faster", "10 times", True) for number in (13, 11, 12)]
    PageTable.of(page).write({"costs": costs, "speeds": speeds}, "a machine")
    text = page.read_text()
    assert [name for name in ("cost 5", "cost 7.5", "cost 6") if name in text] == ["cost 7.5"]
    assert [name for name in ("speed 13", "speed 11", "speed 12") if name in text] == ["speed 11"]
    assert "cost 5" in (tmp_path / "page.csv").read_text()


def test_a_benchmark_page_without_marks_for_its_table_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}no end\n")
    with pytest.raises(ValueError, match="found none"):
        PageTable.of(page)


def test_a_missing_benchmark_page_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        PageTable.of(tmp_path / "page.md")
