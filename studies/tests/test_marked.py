"""Tables that programs write into pages, each between its comments; a table without comments is an error."""

from __future__ import annotations

import pytest

from tools.marked import csv_rows, csv_text, filled, table

PAGE = "Before.\n<!-- a -->\nold\n<!-- end -->\n<!-- b, c -->\nkept\n<!-- end -->\n"


def test_filled_replaces_only_the_named_table():
    made = filled(PAGE, {"a": table(("x", "y"), [(1, "z")])})
    assert made == PAGE.replace("old", "| x | y |\n| - | - |\n| 1 | z |")
    assert filled(PAGE, {"b, c": "new"}) == PAGE.replace("kept", "new")


def test_a_table_without_its_comments_is_an_error():
    with pytest.raises(KeyError, match="<!-- d -->"):
        filled(PAGE, {"a": "new", "d": "new"})


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [{"name": "a, b", "count": "1"}, {"name": 'says "no"', "count": ""}]
    (tmp_path / "rows.csv").write_text(csv_text(rows), encoding="utf-8")
    assert csv_rows(tmp_path / "rows.csv") == rows
