"""Every statement of JAX's documents has a test that exists; docs/evidence/statements.md counts them."""

from __future__ import annotations

import functools
import re

import pytest

from tools import statements_page

DOCUMENTS = statements_page.load_documents()
ROWS = statements_page.statements(DOCUMENTS)


@functools.cache  # it reads all tests, and each process collects this file
def files():
    return statements_page.files_by_test(ROWS)


def _source(row):
    """Return the text of the files that have the tests of a row, without the backslashes of regular expressions."""
    return "".join(files()[name].read_text(encoding="utf-8") for name in row.tests).replace("\\", "")


def test_the_page_of_statements_is_what_its_tool_writes():
    page = statements_page.PAGE.read_text(encoding="utf-8")
    assert page == statements_page.page(DOCUMENTS, page), "python -m tools.statements_page"


def test_every_statement_has_tests_that_exist():
    assert len(ROWS) >= 131
    assert [row.says for row in ROWS if not row.tests] == []
    assert sorted({name for row in ROWS for name in row.tests} - files().keys()) == []


def test_each_statement_is_listed_once_in_its_section():
    for document in DOCUMENTS:
        for section, rows in document.sections.items():
            assert len({row.says for row in rows}) == len(rows), section


def test_a_statement_has_at_most_one_outcome_besides_true():
    assert [row.says for row in ROWS if bool(row.refused) + bool(row.differs) + row.judged > 1] == []


def test_a_statement_has_a_mutation_or_is_about_jax_alone():
    assert [row.says for row in ROWS if bool(row.jax_alone) + (row.mutation is not None) != 1] == []


MUTATIONS = {row.mutation: row for row in ROWS if row.mutation}


@pytest.mark.parametrize("path", sorted({mutation.file for mutation in MUTATIONS}))
def test_a_mutation_changes_one_place_and_still_compiles(path):
    source = (statements_page.ROOT / path).read_text(encoding="utf-8")
    for mutation, row in MUTATIONS.items():
        if mutation.file == path:
            assert source.count(mutation.replace) == 1, f"{row.says} {mutation.replace}"
            if path.endswith(".py"):
                compile(source.replace(mutation.replace, mutation.by), path, "exec")


def test_the_test_of_a_mutation_is_a_test_of_its_row():
    unlisted = {m.test for row in ROWS if (m := row.mutation) and m.test.partition("[")[0] not in row.tests}
    assert unlisted == set()


def test_a_message_of_jax_is_in_a_test_of_its_row():
    assert [row.says for row in ROWS if row.refused not in _source(row)] == []


def test_a_document_is_counted_by_outcome():
    rows = (
        statements_page.Statement("It works.", ("test_a::test_b",), jax_alone="it is"),
        statements_page.Statement("It is blue.", ("test_a::test_c",), differs="it is green"),
    )
    documents = (statements_page.Document("A document", "About it.", {"A section": rows}),)
    text = statements_page.page(documents, statements_page.PAGE.read_text(encoding="utf-8"))
    assert "| A document | 2 | 1 | 0 | 0 | 1 | 0 | 1 |\n" in text
    assert "| It is blue | it is green |\n" in text


def test_every_test_of_the_documents_belongs_to_a_statement():
    # These files have only tests of the documents.
    named = {name for row in ROWS for name in row.tests}
    ours = {name for name in files() if re.match(r"(test_documented_\w+|apart)::", name)}
    assert sorted(ours - named) == []
