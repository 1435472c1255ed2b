"""The programs of closed issues: each has a link of its own, and only a run that names their folder collects them."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import making

from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from studies.corpus import regressions_table
from tools.marked import csv_rows

FOLDER = Path(__file__).parents[1] / "corpus" / "regressions"
LINK = re.compile(r"https://github\.com/(jax-ml/jax|openxla/xla)/(?:issues|pull)/\d+")
STATE = re.compile(r"\((?:open|closed|merged)\): bad (?:in|between|up to) ")


def programs() -> dict[str, str]:
    """Return the docstring of each program of a closed issue, by its file and name."""
    return {
        f"{path.name}::{node.name}": ast.get_docstring(node) or ""
        for path in sorted(FOLDER.glob("[!_]*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_program_has_a_link_and_its_bad_releases():
    links = [LINK.search(text) for text in programs().values()]
    assert all(links), dict(zip(programs(), links, strict=True))
    assert len({link.group() for link in links if link}) == len(links) >= 30
    assert [name for name, text in programs().items() if not STATE.search(text)] == []


def test_a_writers_environment_collects_all_programs():
    # Such an environment has jax, pytest and this project, but not the packages of the project's own tests.
    bare = """if True:
        import sys
        from importlib.machinery import PathFinder
        find = PathFinder.find_spec
        def but_hypothesis(finder, name, *where):
            return None if name == "hypothesis" else find(name, *where)
        PathFinder.find_spec = classmethod(but_hypothesis)
        import pytest
        sys.exit(pytest.main(sys.argv[1:]))
    """
    words = ["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", str(FOLDER)]
    command = [sys.executable, "-c", bare, *words]
    done = subprocess.run(command, cwd=FOLDER.parents[2], capture_output=True, text=True, check=True)
    found = [line.rpartition("/")[2] for line in done.stdout.splitlines() if "::" in line]
    assert sorted(found) == sorted(programs())


def test_a_run_of_other_tests_collects_no_program():
    collect = runpy.run_path(str(FOLDER / "conftest.py"))["pytest_collect_file"]
    elsewhere = SimpleNamespace(session=SimpleNamespace(isinitpath=lambda path: path == FOLDER.parent))
    for path in FOLDER.glob("[!_]*.py"):
        assert not path.name.startswith("test_")  # what pytest collects by itself
        assert collect(path, elsewhere) is None


def test_data_and_page_have_a_row_for_every_program():
    rows = csv_rows(regressions_table.DATA)
    assert [row["program"] for row in rows] == [name.replace(".py::", ".") for name in programs()]
    page = regressions_table.PAGE.read_text(encoding="utf-8")
    assert page == regressions_table.page(rows, page)


def test_a_row_says_right_or_lists_the_bad_verdicts_of_releases():
    def ran(verdict, stage=Stage.COMPARE, **cell):
        return making.result(
            verdict, case="studies.corpus.regressions.fusions.test_arctan_of_many", stage=stage, **cell
        )

    results = [
        ran(Verdict.PASS, reader="0.12.0.1"),
        ran(Verdict.NUMERICS, reader="0.11.0"),
        ran(Verdict.CRASH, Stage.RUN, reader="0.11.0", writer="0.10.1"),
        ran(Verdict.ERROR, Stage.DESERIALIZE, reader="0.10.2"),  # not loaded: nothing that it computes is known
        ran(Verdict.NUMERICS, reader="0.10.1"),
    ]
    (row,) = [row for row in regressions_table.rows(results) if row["program"] == "fusions.test_arctan_of_many"]
    assert list(row.items())[4:] == [
        ("0.12.0.1", "right"),
        ("0.11.0", "crash, numerics"),
        ("0.10.2", ""),
        ("0.10.1", "numerics"),
    ]
    text = regressions_table.PAGE.read_text(encoding="utf-8")
    page = regressions_table.page([row, {**row, "0.11.0": "right", "0.10.1": ""}], text)
    assert "| 1 | numerics |\n| 1 | crash |\n| 1 | all give the right answer |\n" in page
    assert "| `fusions.test_arctan_of_many` | numerics: 0.10.1, 0.11.0; crash: 0.11.0 |\n" in page
