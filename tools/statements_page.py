"""The page docs/evidence/statements.md, from tests/statements.yaml: ``python tools/statements_page.py``.

What JAX's documents say of exporting, statement by statement, with the tests that show each.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "tests" / "statements.yaml"
PAGE = ROOT / "docs" / "evidence" / "statements.md"

HEAD = """# What JAX's documents say of exporting

Made by `python tools/statements_page.py` of [tests/statements.yaml](../../tests/statements.yaml): {total} statements,
each in our own words and with the tests that show it. A test checks that this page is current and that they exist.

| outcome | statements | what it means |
|---|---|---|
| works | {works} | JAX does what the document says |
| refused | {refused} | JAX itself refuses it, with this message |
| judged | {judged} | a promise, or advice that follows from one: the tool judges by it |
| differs | {differs} | today's JAX does something else, and the tool follows JAX |

{mutated} statements are shown by a mutation: a change to this program's code that breaks the statement, with which the
test in bold fails. `nox -s statements` tries each. {jax_alone} are about jax alone, as their rows say: no code of this
program could break them.

Tests of `tests/compat` are cases with goldens by several writers; [surface.md](surface.md) has who runs them.
"""


class Mutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change to this program's code that breaks a statement, and the test of the row that fails with it."""

    file: str
    replace: str
    by: str
    test: str
    """``file::name``, or ``file::name[parameters]``."""


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: what a document says, what comes of it, and the tests, each as ``file::name``.

    It has either a mutation, or the reason why it is about jax alone.
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
        """The word in the page's first table."""
        return next((name for name in ("refused", "differs", "judged") if getattr(self, name)), "works")


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One document, its sections in the document's order."""

    document: str
    about: str
    sections: dict[str, tuple[Statement, ...]]
    url: str = ""


def load_documents(path: Path = ROWS) -> tuple[Document, ...]:
    """All rows, by document and section. Raises `msgspec.ValidationError` where a field is missing or unknown."""
    return msgspec.yaml.decode(path.read_bytes(), type=tuple[Document, ...])


def statements(documents: Sequence[Document]) -> list[Statement]:
    """All rows, in the page's order."""
    return [row for document in documents for rows in document.sections.values() for row in rows]


def files_by_test(rows: Sequence[Statement]) -> dict[str, Path]:
    """The file of every test function, by ``file::name``, of the files that rows name. Nothing is imported."""
    named = {name.partition("::")[0] for row in rows for name in row.tests}
    return {
        f"{path.stem}::{node.name}": path
        for folder in ("tests", "studies")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.stem in named
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def page(documents: Sequence[Document]) -> str:
    """The page. Raises `KeyError` with the name of a test that does not exist."""
    rows = statements(documents)
    counts = {name: sum(row.outcome == name for row in rows) for name in ("works", "refused", "judged", "differs")}
    shown = {
        "mutated": sum(row.mutation is not None for row in rows),
        "jax_alone": sum(bool(row.jax_alone) for row in rows),
    }
    return "\n".join([HEAD.format(total=len(rows), **counts, **shown), *tables(documents, files_by_test(rows))])


def tables(documents: Sequence[Document], files: dict[str, Path]) -> Iterator[str]:
    """A heading for each document and section, and a table under each section."""
    for document in documents:
        title = f"[{document.document}]({document.url})" if document.url else document.document
        yield f"## {title}\n\n{document.about}\n"
        for section, rows in document.sections.items():
            yield f"### {section}\n\n| statement | outcome | tests |\n|---|---|---|"
            yield from (f"| {row.says} | {outcome(row)} | {links(row, files)} |" for row in rows)
            yield ""


def outcome(row: Statement) -> str:
    """The outcome as the table has it, with JAX's message or with the difference."""
    # Two backquotes and blanks, since a message may have backquotes of its own.
    texts = {"refused": f"refused: `` {row.refused} ``", "differs": f"differs: {row.differs}"}
    alone = f"; about jax alone: {row.jax_alone}" if row.jax_alone else ""
    return texts.get(row.outcome, row.outcome) + alone


def links(row: Statement, files: dict[str, Path]) -> str:
    """The tests of a row, each with a link to its file, and in bold the one that notices the row's mutation."""
    noticing = row.mutation.test.partition("[")[0] if row.mutation else ""
    texts = (f"[{name.partition('::')[2]}](../../{files[name].relative_to(ROOT).as_posix()})" for name in row.tests)
    return ", ".join(f"**{text}**" if name == noticing else text for name, text in zip(row.tests, texts, strict=True))


if __name__ == "__main__":
    PAGE.write_text(page(load_documents()), encoding="utf-8")
