"""The page of libraries is what `libraries_table.py` prints, and each library has the tests of all columns."""

import re
from pathlib import Path

import pytest
from making import result

from export_core.matrix import Verdict
from studies.libraries import libraries_table as program

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "libraries.md").read_text()


def rows_in(page):
    """Return the rows that the table of a page shows, with the messages of the list below the table."""
    rows = {}
    for line in re.findall(r"^\| (.+) \|$", page.partition("\n| library |")[2], re.M):
        library, version, *outcomes = line.split(" | ")
        for test, outcome in zip(program.COLUMNS, outcomes, strict=False):
            rows[library, test] = program.Row(library, version, test, outcome)
    for line in re.findall(r"^- (.+(?:\n  .+)*)", page, re.M):
        library, what, outcome, message = re.fullmatch(
            r"(\w+), ([\w ]+): ([^:]+)(?:: (.+))?", " ".join(line.split())
        ).groups()
        test = "test_" + what.replace(" ", "_")
        rows[library, test] = program.Row(library, rows[library, "test_forward"].version, test, outcome, message or "")
    return list(rows.values())


def test_the_page_of_libraries_is_what_its_session_writes():
    start = re.escape(program.PAGE)
    for field in ("jax", "jaxlib", "readers"):
        start = start.replace(re.escape(f"{{{field}}}"), r"[\w., ()]+")
    head = re.match(start, PAGE)
    assert head, "docs/reference/libraries.md: nox -s libraries -- --docs docs/reference/libraries.md"
    in_order = sorted(rows_in(PAGE), key=lambda row: (order_of(row.library), row.test not in program.COLUMNS))
    assert PAGE[head.end() :] == "\n".join(program.table(in_order)) + "\n" + program.NOTES


def order_of(library):
    return list(program.LIBRARIES).index(library)


def test_every_result_of_a_library_on_the_page_is_an_expected_one():
    assert [row for row in rows_in(PAGE) if not row.expected] == []


@pytest.mark.parametrize("library", program.LIBRARIES)
def test_each_library_has_a_test_of_each_column(library):
    names = [test.partition("::")[2] for test in program.LIBRARIES[library].tests]
    assert [name for name in names if name in program.COLUMNS] == list(program.COLUMNS)


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ({"0.10.2": "pass", "0.6.2": "pass"}, "works"),
        ({"0.10.2": "pass", "0.6.2": "error"}, "works, outside not in 0.6.2"),
        ({"0.10.2": "crash", "0.6.2": "error"}, "fails in 0.10.2, 0.6.2"),
    ],
)
def test_only_a_promised_reader_that_fails_is_a_failure(verdicts, outcome):
    cells = [
        result(Verdict(verdict), reader=reader, promised=reader == "0.10.2") for reader, verdict in verdicts.items()
    ]
    assert program.outcome_of("keras", "test_forward", cells, "")[0] == outcome


@pytest.mark.parametrize(
    ("test", "outcome", "message", "expected"),
    [
        ("test_forward", "works", "", True),
        ("test_forward", "works, outside not in 0.6.2", "unsupported version", True),
        ("test_forward", "refused by JAX", "host_callbacks", False),
        ("test_forward", "fails in 0.10.2", "signal 11", False),
        ("test_model_argument", "refused by JAX", "Too many leaves for PyTreeDef", True),
        ("test_model_argument", "refused by JAX", "another message", False),
        ("test_model_argument", "works", "", False),
    ],
)
def test_only_listed_failures_of_a_library_are_expected(test, outcome, message, expected):
    assert program.Row("distrax", "0.1.9", test, outcome, message).expected is expected
