"""The writer of docs/evidence/statements.md, from tests/statements.yaml: `python -m tools.statements_page`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tools import renew
from tools.marked import filled, table

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "tests" / "statements.yaml"
PAGE = ROOT / "docs" / "evidence" / "statements.md"
OUTCOMES = ("works", "refused", "judged", "differs")


class Mutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change to this program's code that makes a documented statement false, and the test that must fail then.

    In `file`, the text `replace` is replaced by the text `by`.
    """

    file: str
    replace: str
    by: str
    test: str
    """The test, as ``file::name`` or ``file::name[parameters]``."""


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row: a statement of a document, what was found out about it, and the tests that show it, as ``file::name``.

    A row has either a mutation, or in `jax_alone` the reason why the statement is about jax alone.
    """

    says: str
    tests: tuple[str, ...]
    refused: str = ""
    differs: str = ""
    judged: bool = False
    jax_alone: str = ""
    mutation: Mutation | None = None

    @property
    def outcome(self) -> str:
        """What was found out about the statement, as one of `OUTCOMES`."""
        return next((name for name in OUTCOMES[1:] if getattr(self, name)), OUTCOMES[0])


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document of JAX, and the statements in each of its sections, in order."""

    document: str
    about: str
    sections: dict[str, tuple[Statement, ...]]
    url: str = ""


def load_documents(path: Path = ROWS) -> tuple[Document, ...]:
    """Read the documents with their statements from a file.

    Raises:
        msgspec.ValidationError: a field is missing or unknown.
    """
    return msgspec.yaml.decode(path.read_bytes(), type=tuple[Document, ...])


def statements(documents: Sequence[Document]) -> list[Statement]:
    """Return the statements of all documents, in the order of the page."""
    return [row for document in documents for rows in document.sections.values() for row in rows]


def files_by_test(rows: Sequence[Statement]) -> dict[str, Path]:
    """Return the path of every test function in the files that rows name, by ``file::name``.

    Files are found and parsed, not imported.
    """
    named = {name.partition("::")[0] for row in rows for name in row.tests}
    return {
        f"{path.stem}::{node.name}": path
        for folder in ("tests", "studies")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.stem in named
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def page(documents: Sequence[Document], text: str) -> str:
    """Return `text`, the page, with its tables replaced by tables of these documents."""
    rows = statements(documents)
    named = [(f"[{one.document}]({one.url})" if one.url else one.document, statements([one])) for one in documents]
    head = "document", "statements", *OUTCOMES, "with a mutation", "about jax alone"
    tables = {
        "counts": table(head, ((title, *_counts(some)) for title, some in (*named, ("**all**", rows)))),
        "differing": table(
            ("the document says", "what JAX does"), ((row.says.rstrip("."), row.differs) for row in rows if row.differs)
        ),
    }
    return filled(text, tables)


def _counts(rows: Sequence[Statement]) -> list[int]:
    outcomes = Counter(row.outcome for row in rows)
    mutated = sum(row.mutation is not None for row in rows)
    return [len(rows), *(outcomes[name] for name in OUTCOMES), mutated, sum(bool(row.jax_alone) for row in rows)]


if __name__ == "__main__":
    renew(PAGE, page(load_documents(), PAGE.read_text(encoding="utf-8")))
