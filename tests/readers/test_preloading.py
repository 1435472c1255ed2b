"""A worker imports before its first cell what earlier cells of its environment have imported."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import making
import pytest

from export_core.matrix import Cell
from export_core.readers.cell import Limits, request_of
from export_core.readers.environment import Environment, this_interpreter
from export_core.readers.worker.client import ForkingWorker, WorkerDied, notes_file
from export_core.readers.worker.program import read_notes

MARKING = "import os, pathlib\npathlib.Path(os.environ['MARK']).write_text('imported')\n"


@pytest.fixture
def environment(here, tmp_path, monkeypatch) -> Environment:
    """This interpreter with a module of ours to import, and a cache in which nothing is noted."""
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "marking.py").write_text(MARKING)
    (tmp_path / "threading_at_import.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    plain = this_interpreter(here)
    more = {"PYTHONPATH": str(tmp_path), "MARK": str(tmp_path / "mark")}
    return dataclasses.replace(plain, variables={**plain.variables, **more})


def ends(worker: ForkingWorker, golden, folder: Path) -> str:
    request = request_of(Cell(golden, making.release(making.NEWEST), "cpu"), folder, Limits(timeout=60, memory=0))
    try:
        return worker.submit(request).result().end
    finally:
        worker.close()


def test_imports_of_the_first_cell_are_noted_for_the_next_worker(environment, goldens, tmp_path):
    notes = Path(notes_file(environment))
    notes.write_text("{")  # no notes
    assert ends(ForkingWorker(environment), goldens["waves"], tmp_path) == "ok"
    noted = json.loads(notes.read_text())
    assert "jax._src.interpreters.mlir" in noted
    assert [path.name for path in notes.parent.iterdir()] == [notes.name]
    notes.write_text(json.dumps(["marking", "no.such.module", *noted]))
    worker = ForkingWorker(environment)
    assert (tmp_path / "mark").read_text() == "imported"
    assert ends(worker, goldens["waves"], tmp_path) == "ok"


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '"marking"', "\0", "[" * 100_000])
def test_notes_that_are_none_are_no_notes(tmp_path, text):
    (tmp_path / "notes").write_text(text)
    assert read_notes(str(tmp_path / "notes")) == []
    assert read_notes(str(tmp_path)) == read_notes("") == []


def test_without_a_folder_for_notes_cells_run_all_the_same(environment, goldens, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert notes_file(environment) == ""
    assert ends(ForkingWorker(environment), goldens["waves"], tmp_path) == "ok"


@pytest.mark.parametrize(
    ("module", "problem"),
    [("threading_at_import", "the worker has 2 threads, so its forks could hang"), ("dying", "exit status 7")],
)
def test_a_note_that_the_worker_dies_of_is_dropped(environment, tmp_path, module, problem):
    (tmp_path / "dying.py").write_text("import os\nos._exit(7)\n")
    notes = Path(notes_file(environment))
    notes.write_text(json.dumps([module]))
    with pytest.raises(WorkerDied, match=problem):
        ForkingWorker(environment)
    assert not notes.exists()
