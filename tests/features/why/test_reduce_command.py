"""What `jaxexport reduce` refuses before it builds or runs anything."""

from __future__ import annotations

import pytest
from commands import assert_bad_input
from making import manifest, write_golden

from export_core.features.why import choice
from export_core.goldens import GoldenStore

CASE = "tests.test_a.test_f"


@pytest.fixture
def reduce(jaxexport, tmp_path, monkeypatch):
    """The command on a golden by 0.9.2 in the reader 0.10.2, where no environment can be built."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(choice, "ReaderEnvironments", None)
    write_golden(GoldenStore(tmp_path / "golden"), manifest(CASE, "0.9.2"))
    return lambda *words: jaxexport("reduce", "--case", CASE, "--reader", "0.10.2", *words)


def test_a_folder_is_asked_for(reduce):
    assert_bad_input(reduce(), "Missing option", "--output")


def test_a_folder_of_something_else_is_not_overwritten(reduce, tmp_path):
    notes = tmp_path / "out" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    assert_bad_input(reduce("-o", "out"), "out: expected no folder or an empty one, found something.", "--resume")
    assert notes.read_text() == "mine"


def test_the_current_folder_is_not_replaced(reduce, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    for name in (".", "link"):
        assert_bad_input(reduce("-o", name), f"{name}: is the current folder, which is not replaced.")


def test_the_second_reader_is_another_one(reduce):
    assert_bad_input(reduce("-o", "out", "--good", "0.10.2"), "--good 0.10.2: is the release in which the cell fails.")
    assert_bad_input(reduce("-o", "out", "--good", "0.10.3"), "0.10.3")
